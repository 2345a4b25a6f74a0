"""The evidence that a round's reports hold of an attack, whatever its users hold.

An attack has an honest twin exactly if the law of all reports is that of honest users of some
frequencies. So nothing but three kinds of evidence is in the reports: items below zero, the sum of
the estimates, and the joint law of a report's items. Each gives a p-value that is valid for all
frequencies. No prior on the shape of frequencies or of attacks enters.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ldprecover.distributions import chi_squared_normal, log_normal_tail
from ldprecover.errors import ParameterError
from ldprecover.estimation.estimates import partial_sum_variance
from ldprecover.evidence.unseen import UnseenGain, unseen_gains
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import NEAR_CERTAIN, Attack
from ldprecover.recovery.contract import RecoveryInputs
from ldprecover.recovery.unmixing.filters.rules import MOST_ITEMS, hits_of, set_laws
from ldprecover.types import FloatArray, Int64Array

PRIOR = 0.1
"""Probability of a visible attack before the round."""
LEVEL = 0.05
"""p-value below which the evidence counts."""
_STEPS = 12  # of Newton's method
_TINY = 1e-300
_LEAST_OF_BIN = 10.0  # reports expected in the first and the last bin of sizes


@dataclass(frozen=True)
class Evidence:
    """The logarithm of the p-value of each kind of evidence at hand, and what has no evidence.

    `unseen` are the largest gains that these kinds do not see, of ten items first.
    """

    log_p: Mapping[str, float]
    unseen: tuple[UnseenGain, ...]

    @property
    def p_value(self) -> float:
        """The p-value of all kinds together, by Bonferroni."""
        return min(1.0, len(self.log_p) * math.exp(min(self.log_p.values())))

    @property
    def log_factor(self) -> float:
        """The logarithm of the Bayes factor of the p-value, 0 from `LEVEL` on.

        It is the largest one that a p-value can weigh, 1/(-e p ln p) (Sellke, Bayarri and Berger,
        2001).
        """
        if self.p_value < LEVEL:
            log_p = math.log(len(self.log_p)) + min(self.log_p.values())
            return -1 - log_p - math.log(-log_p)
        return 0.0

    @property
    def probability(self) -> float:
        """The probability of a visible attack, from `PRIOR` and the Bayes factor."""
        log_odds = math.log(PRIOR / (1 - PRIOR)) + self.log_factor
        return 1 / (1 + math.exp(-min(log_odds, 500.0)))

    @property
    def word(self) -> Attack:
        """What the evidence says of an attack."""
        if self.probability >= NEAR_CERTAIN:
            return "near_certain"
        if self.p_value < LEVEL:
            return "possible"
        return "cannot_be_seen" if self.unseen[0].is_blind else "none_seen"


def log_p_of_items(z: FloatArray, sd: float) -> float:
    """Return ln p of items below zero, from d estimates with noise sd of an item nobody holds.

    An honest estimate below zero is at most as far from it as noise is.
    """
    below = z[z < 0] / sd
    if not below.size:
        return 0.0
    return log_normal_tail(chi_squared_normal(float(below @ below), below.size))


def log_p_of_sum(oracle: FrequencyOracle, z: FloatArray, n: int) -> float | None:
    """Return ln p of the sum of the estimates, or None where every report has the same sum."""
    moments = oracle.laws.largest_sum_moments(n)
    if moments is None or not moments[0]:
        return None
    distance = abs(float(z.sum()) - 1)
    log_p = log_normal_tail(distance / math.sqrt(moments[0]))
    if oracle.laws.report_sums is not None:  # a few reports support all items: Bernstein's tail
        limit = z.size * distance / (oracle.p - oracle.q) / n
        log_p = -(distance**2) / (2 * (moments[0] + limit / 3))
    return min(0.0, math.log(2) + log_p)


def log_p_of_sizes(sizes: Int64Array, law: FloatArray) -> float:
    """Return ln p of the numbers of reports of each size, against the law of honest sizes."""
    expected = sizes.sum() * law
    first = int(np.searchsorted(np.cumsum(expected), _LEAST_OF_BIN))
    last = law.size - 1 - int(np.searchsorted(np.cumsum(expected[::-1]), _LEAST_OF_BIN))
    starts = np.append(0, np.arange(first + 1, last + 1))
    if starts.size < 2:
        return 0.0
    observed, fit = np.add.reduceat(sizes, starts), np.add.reduceat(expected, starts)
    score = float(((observed - fit) ** 2 / fit).sum())
    return log_normal_tail(chi_squared_normal(score, starts.size - 1))


def log_p_of_set(
    oracle: FrequencyOracle, holders: FloatArray | float, observed: Int64Array, *, price: float
) -> FloatArray:
    """Return ln p of how many items of a set of t honest reports support, by its pairs or by all.

    `observed[..., k]` reports support k of the items, k = 0..t, and `holders` is the sum of the
    estimates of these, without those below 0. `price` is the logarithm of the number of sets that
    were looked at. The bound may be above 0. It is the less of two: the caller
    counts both.
    """
    t = observed.shape[-1] - 1
    of_hits = log_p_of_hits(set_laws(oracle, t), observed)
    log_p = np.minimum(log_p_of_pairs(oracle, holders, observed), of_hits)
    return log_p + price + math.log(2 * t * (t + 1))


def log_p_of_pairs(
    oracle: FrequencyOracle, holders: FloatArray | float, observed: Int64Array
) -> FloatArray:
    """Return ln p that honest reports support pairs of the items as often, or as seldom.

    The statistic of a pair has mean zero for every honest report; the tail is Bernstein's.
    """
    none, holder = set_laws(oracle, 2)
    n, t = observed.sum(axis=-1), observed.shape[-1] - 1
    # A report scores 1 for both items, less `slope` for each of them, less `base`.
    slope = (holder[2] - none[2]) / (oracle.p - oracle.q)
    base = none[2] - 2 * oracle.q * slope
    of_number = np.array([0.0, -slope, 1 - 2 * slope]) - base
    k, pairs = np.arange(t + 1), math.comb(t, 2)
    total = np.abs(observed @ (k * (k - 1) / 2 - slope * (t - 1) * k - base * pairs))
    of_none, of_holder = float(none @ of_number**2), float(holder @ of_number**2)
    shares = np.minimum((t - 1) * np.asarray(holders), pairs)
    variance = n * (pairs * of_none + shares * max(of_holder - of_none, 0.0))
    bound = pairs * float(np.abs(of_number).max())
    return -(total**2) / (2 * (variance + bound * total / 3))


def log_p_of_hits(laws: FloatArray, observed: Int64Array) -> FloatArray:
    """Return ln p of the numbers of reports that support k of t items, if users may hold any.

    The bound is that of a multinomial's divergence from its law (Agrawal, 2020), and the law the
    nearest mixture of the two `laws`, for users of none of the items and of one.
    """
    t = observed.shape[-1] - 1
    distance = np.maximum(divergence(observed, laws), t)
    return t * np.log(math.e * distance / t) - distance


def divergence(observed: Int64Array, laws: FloatArray) -> FloatArray:
    """Return n times the divergence of histograms of n reports from the nearest mixture of two
    laws, by Newton's method within a bracket.
    """
    none, added = laws[0], laws[1] - laws[0]

    def slopes(share: FloatArray) -> tuple[FloatArray, FloatArray]:
        ratio = added / np.maximum(none + share[..., None] * added, _TINY)
        return (observed * ratio).sum(axis=-1), (observed * ratio**2).sum(axis=-1)

    zero = np.zeros(observed.shape[:-1])
    high = np.where(slopes(zero)[0] > 0, 1.0, 0.0)
    low = np.where(slopes(zero + 1)[0] > 0, high, 0.0)
    share = np.clip(0.1, low, high)
    for _ in range(_STEPS):
        gradient, curvature = slopes(share)
        low, high = np.where(gradient > 0, share, low), np.where(gradient > 0, high, share)
        share = share + gradient / np.maximum(curvature, _TINY)
        share = np.where((share >= low) & (share <= high), share, (low + high) / 2)
    expected = observed.sum(axis=-1)[..., None] * (none + share[..., None] * added)
    ratio = np.maximum(observed, 1) / np.maximum(expected, _TINY)
    return np.maximum((observed * np.log(ratio)).sum(axis=-1), 0.0)


def log_p_of_canaries(
    oracle: FrequencyOracle, z: FloatArray, n: int, canaries: Sequence[int]
) -> float | None:
    """Return ln p of the sum of the estimates of items that nobody holds, or None without a law."""
    if not canaries:
        return None
    try:
        variance = partial_sum_variance(oracle, len(canaries), 0.0, n)
    except ParameterError:
        return None
    total = abs(float(z[list(canaries)].sum()))
    return min(0.0, math.log(2) + log_normal_tail(total / math.sqrt(variance)))


def noise_of_none(oracle: FrequencyOracle, n: int) -> float:
    """Return the standard deviation of the estimate of an item that nobody holds."""
    return math.sqrt(float(oracle.variance(0.0, n)))


def evidence_of(inputs: RecoveryInputs, log_p: float | None = None) -> Evidence:
    """Return the evidence of an attack in all n reports; `log_p` is that of their joint law."""
    oracle, z, n = inputs.oracle, inputs.poisoned, inputs.number
    # Under linear hashing items of one line are supported together: their noise is not independent.
    is_linear = oracle.laws.report_sums is not None
    kinds = {
        "items": 0.0 if is_linear else log_p_of_items(z, noise_of_none(oracle, n)),
        "sum": log_p_of_sum(oracle, z, n),
        "reports": log_p,
        "canaries": log_p_of_canaries(oracle, z, n, inputs.canaries),
    }
    targets = np.array(inputs.targets, np.int64)
    reads = log_p is not None and not is_linear
    if reads and inputs.reports is not None and 2 <= targets.size <= MOST_ITEMS:
        observed = inputs.reports.total(partial(hits_of, items=targets))
        holders = float(np.maximum(z[targets], 0).sum())
        log_p_of_targets = math.log(2) + float(log_p_of_set(oracle, holders, observed, price=0.0))
        kinds["targets"] = min(log_p_of_targets, 0.0)
    at_hand = {kind: value for kind, value in kinds.items() if value is not None}
    return Evidence(at_hand, unseen_gains(oracle, n, reads_reports=log_p is not None))
