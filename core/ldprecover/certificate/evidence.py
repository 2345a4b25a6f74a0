"""The evidence of a round's reports about the frequencies of its honest users, at an error."""

import math
from dataclasses import dataclass, replace

import numpy as np

from ldprecover.certificate.region import Region, frequency_limits
from ldprecover.protocols import FrequencyOracle
from ldprecover.types import FloatArray

_SPLIT, _COUNTS = 1 / 20, 1 / 5  # of the error: each of both limits of the split, and the counts
_SCORES = 1 - _COUNTS - 2 * _SPLIT
_ROUNDING = 1e-6  # of a number of reports: 0.29 of 100 is 29
_LEAST = 1e-6  # of a row's range, relative to its largest loss


def scores_log_tail(scores: int, error: float) -> float:
    """Return log(1/error) of each of several scores, whose bounds hold together (Bonferroni)."""
    return math.log(scores / (_SCORES * error))


@dataclass(frozen=True)
class HonestPart:
    """A lower bound `n` of the number of honest reports among those that are scored.

    `distance` is an upper bound of the total variation between the frequencies of their users and
    those of all honest users.
    """

    n: float
    distance: float

    @classmethod
    def of(cls, n: int, scored: int, share: float, d: int, error: float) -> "HonestPart | None":
        """Return the bounds for `scored` of n reports over d items; None for less than two.

        Both hold for a draw without replacement, but for a part of the error.
        Hoeffding 1963, section 6, limits the malicious reports. The mean distance follows from
        Cauchy and Schwarz, and it is exceeded as McDiarmid's inequality says.
        """
        malicious, log_tail = math.floor(share * n + _ROUNDING), math.log(1 / (_SPLIT * error))
        sampled = malicious * scored / n + math.sqrt(malicious * log_tail / 2)
        honest, others = scored - min(sampled, malicious), n - scored
        if honest < 2:
            return None
        mean = math.sqrt((d - 1) * others / (honest * (honest + others - 1))) / 2
        return cls(honest, min(1.0, mean + math.sqrt(others * log_tail / 2) / honest))

    def region(self, box: Region, losses: FloatArray, sums: FloatArray, log_tail: float) -> Region:
        """Return the frequencies in a box that scores allow, by their losses and their sums."""
        low, high = losses.min(axis=1), losses.max(axis=1)
        scale = np.maximum(high - low, _LEAST * high)
        ends = self.distance * (high - low) - np.expm1(-(sums + log_tail) / self.n) - low
        return replace(box, rows=((losses.T - low) / scale).T, ends=ends / scale + 1e-9)


@dataclass(frozen=True, eq=False)
class Scored:
    """The `sums` of k scores over `n` reports, and the `losses`, (k, d), of a user of each item."""

    n: int
    losses: FloatArray
    sums: FloatArray


@dataclass(frozen=True, eq=False)
class RoundEvidence:
    """The evidence of support counts, of any pure protocol, and of scores of the reports.

    An honest report supports v, or does not, as often as the frequencies say, and malicious reports
    only add to either number: so both bound f_v. All bounds hold together but for the `error`.
    """

    oracle: FrequencyOracle
    counts: FloatArray
    n: int
    error: float
    scored: Scored | None = None

    @property
    def events(self) -> int:
        """The number of events: 2d of the counts, one a score, and both limits of the split."""
        return 2 * self.counts.size + (0 if self.scored is None else self.scored.sums.size + 2)

    def region(self, malicious_share: float) -> Region | None:
        """Return all frequencies that are possible with this share of malicious reports.

        None if no frequencies are: the share is larger. Regions of larger shares contain it. O(d)
        for counts; one linear programme with scores.
        """
        d, n, error, scored = self.counts.size, self.n, self.error, self.scored
        log_tail = math.log(2 * d / (error if scored is None else _COUNTS * error))
        others = n - self.counts
        honest_n = (1 - malicious_share) * n
        box = Region.of(*frequency_limits(self.oracle, self.counts, others, honest_n, log_tail))
        honest = None if scored is None else HonestPart.of(n, scored.n, malicious_share, d, error)
        if box is None or scored is None or honest is None or not scored.sums.size:
            return box
        log_tail = scores_log_tail(scored.sums.size, error)
        region = honest.region(box, scored.losses, scored.sums, log_tail)
        return region if region.is_possible else None
