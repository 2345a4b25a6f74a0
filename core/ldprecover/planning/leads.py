"""The leads of one item over another that the certificate of a planned round can prove."""

import math
from dataclasses import dataclass

import numpy as np

from ldprecover.certificate.region import Region, frequency_limits
from ldprecover.estimation.bisection import bisect
from ldprecover.protocols import FrequencyOracle

_CONFIDENCE = 0.95
_HALVINGS = 40  # of a lead or a share: it is exact to 1e-12


@dataclass(frozen=True)
class Leads:
    """Leads in the estimates of a round of n users, and the shares of malicious reports they bear.

    A lead is safe from a share if the certificate of the round's counts proves it at that share,
    with a confidence of 95 %. The first item has the `frequency`, by default the lead above 1/d;
    the other items but the second have equal ones. Without noise a lead x is safe from
    shares below x (p - q).

        Leads(frequency_oracle("oue", 1.0, 102), 100_000).least_safe(0.01)  # 0.104
    """

    oracle: FrequencyOracle
    n: int
    frequency: float | None = None

    def is_safe(self, lead: float, malicious_share: float) -> bool:
        """Return whether a lead is safe from this share of malicious reports."""
        oracle, d, n = self.oracle, self.oracle.domain_size, self.n
        if malicious_share >= 1:
            return False
        first = 1 / d + lead if self.frequency is None else self.frequency
        first = min(max(first, lead), (1 + lead) / 2) if d > 2 else (1 + lead) / 2
        others = max(d - 2, 0)
        rest = max(1 - 2 * first + lead, 0.0)
        frequencies = np.array([first, first - lead, rest / max(others, 1)])
        counts = n * (oracle.q + (oracle.p - oracle.q) * frequencies)
        log_tail = math.log(2 * d / (1 - _CONFIDENCE))
        lower, upper = frequency_limits(
            oracle, counts, n - counts, (1 - malicious_share) * n, log_tail
        )
        # The other items have equal limits, and only their total matters.
        total = np.array([1, 1, others])
        region = Region.of(lower * total, upper * total)
        return region is not None and region.total((0,), (1,))[0] > 0

    def least_safe(self, malicious_share: float) -> float | None:
        """Return the least lead that is safe from this share; None if no lead is."""
        if not self.is_safe(1.0, malicious_share):
            return None
        return bisect(lambda lead: self.is_safe(lead, malicious_share), 1.0, 0.0, _HALVINGS)

    def tolerance(self, lead: float) -> float | None:
        """Return the largest share that a lead is safe from; None if its noise hides it."""
        if not self.is_safe(lead, 0.0):
            return None
        return bisect(lambda share: self.is_safe(lead, share), 0.0, 1.0, _HALVINGS)
