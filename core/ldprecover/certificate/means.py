"""Certificates for the mean of numbers in [-1, 1], collected by Harmony.

A user with the number x reports the item 1 with probability q + (p - q)(1 + x)/2: rounding and
perturbing are both in it, and it is linear in x. The inequalities of a certificate bound the mean
of such probabilities over the honest users, who may all have different ones (Hoeffding 1963,
Theorem 1). So the frequencies of the two items in a certificate are the means of (1 - x)/2 and
(1 + x)/2 over the honest users' numbers themselves, not over what these were rounded to, and their
difference is the mean of x.
"""

from dataclasses import dataclass

import numpy as np

from ldprecover.certificate.certificates import Certificate
from ldprecover.certificate.region import Region
from ldprecover.errors import ParameterError
from ldprecover.rounds.means import ITEMS

_SIGNS = np.array([-1.0, 1.0])  # of ITEMS


@dataclass(frozen=True)
class MeanAbove:
    """The mean of the honest users' numbers is above a number; of a round over ITEMS."""

    number: float

    def holds(self, region: Region) -> bool:
        return region.limits(_SIGNS)[0] > self.number


def mean_limits(certificate: Certificate) -> tuple[float, float]:
    """Return the interval of the mean of the honest users' numbers.

    NaN if the share is impossible. Raises ParameterError for another domain than two items.

        certificate = certify(oracle, tally, malicious_share=0.01)  # of a round for numbers
        mean_limits(certificate)                                    # (0.12, 0.31)
        certificate.tolerance(MeanAbove(0.0))                       # 0.027
    """
    if certificate.evidence.domain_size != len(ITEMS):
        raise ParameterError(f"a mean needs the {len(ITEMS)} items {' and '.join(ITEMS)}")
    return certificate.difference(1, 0)
