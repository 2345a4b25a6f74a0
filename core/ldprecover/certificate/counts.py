"""The evidence of a round's support counts."""

import math
from dataclasses import dataclass

from ldprecover.certificate.bounds import upper_means
from ldprecover.certificate.regions import Box
from ldprecover.protocols import FrequencyOracle
from ldprecover.types import FloatArray


@dataclass(frozen=True, eq=False)
class CountEvidence:
    """The evidence of support counts, of any pure protocol.

    An honest report supports v, or does not, as often as the frequencies say, and malicious reports
    only add to either number: so both bound f_v. All 2d bounds hold together with the confidence.
    The `counts` are those of all n reports but the `quarantined` ones, which may be honest and
    support anything.
    """

    oracle: FrequencyOracle
    counts: FloatArray
    n: int
    confidence: float
    quarantined: int = 0

    @property
    def domain_size(self) -> int:
        """The number of items."""
        return self.oracle.domain_size

    @property
    def events(self) -> int:
        """The number of events: each item is supported by a report, or not."""
        return 2 * self.domain_size

    def region(self, malicious_share: float) -> Box | None:
        """Return the box of the frequencies that are possible, or None; O(d)."""
        p, q, honest = self.oracle.p, self.oracle.q, (1 - malicious_share) * self.n
        log_tail = math.log(self.events / (1 - self.confidence))
        supporting = upper_means(self.counts + self.quarantined, honest, log_tail)
        others = upper_means(self.n - self.counts, honest, log_tail)
        return Box.of((1 - q - others) / (p - q), (supporting - q) / (p - q))
