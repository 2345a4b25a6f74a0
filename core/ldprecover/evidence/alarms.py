"""Alarms: tests of a round for reports that honest users would not have sent.

Each has a null law that holds whatever the honest users' values are, so its false-alarm rate is
bounded. An alarm says that something is wrong, not what the frequencies are without it; silence
proves nothing: malicious users who lie about their value alone and perturb it honestly raise none
of these.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ldprecover.counting.seed_pairs import SeedPairs, pairs_quantile
from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.evidence.canaries import canary_shift
from ldprecover.items import canary_indices, items_in_words
from ldprecover.laws import HITS, SIZES
from ldprecover.laws.distributions import binomial_threshold, chi_squared_quantile, skewed_quantile
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.reports import ReportSource, size_counts
from ldprecover.recovery.simplex import project_simplex
from ldprecover.types import FloatArray, Int64Array, Reports

DEFAULT_RATE = 1e-3
LEAST_RATE = 1e-9
"""No threshold is known farther out."""

_SIMULATED = 200  # honest rounds behind the excess alarm's threshold
_LEAST_EXPECTED = 10.0  # reports in a bin of the chi-squared test


@dataclass(frozen=True)
class Alarm:
    """What a test found: it is raised when the statistic exceeds the threshold.

    `rate` is at least the probability that a round of honest reports raises it: that of `excess` is
    often far less. `meaning` says what the statistic is.
    """

    name: str
    statistic: float
    threshold: float
    rate: float
    meaning: str

    @property
    def raised(self) -> bool:
        """Whether honest users would hardly have given this."""
        return self.statistic > self.threshold


@dataclass(frozen=True)
class AlarmKind:
    """A test: its name, one line on it, why a protocol has none of it, whether it reads reports,
    and itself.

    `unfit` returns the reason, None where the protocol has it.
    """

    name: str
    summary: str
    unfit: Callable[[FrequencyOracle], str | None]
    needs_reports: bool
    run: Callable[[FrequencyOracle, Tally, ReportSource | None, float], Alarm]


def raise_alarms(
    oracle: FrequencyOracle,
    tally: Tally,
    reports: ReportSource | None = None,
    *,
    rate: float = DEFAULT_RATE,
    canaries: Iterable[int] = (),
) -> tuple[Alarm, ...]:
    """Run every test that is for this protocol, those that read reports where `reports` are given.

    `canaries` are indices of items that nobody holds: with some there is a test of them, unless the
    protocol has no law of their joint support. `rate` bounds the false-alarm rate of each; of k
    tests together it is at most k times that. Raises ParameterError for a rate outside [1e-9, 1/2)
    or a tally without a report.
    """
    if not LEAST_RATE <= rate < 0.5:
        raise ParameterError(f"rate must be at least {LEAST_RATE:g} and below 0.5, not {rate}")
    if tally.n < 1:
        raise ParameterError("alarms need at least one report")
    kinds = [kind for kind in ALARMS.values() if kind.unfit(oracle) is None]
    known = canary_indices(canaries, oracle.domain_size)
    found = [
        kind.run(oracle, tally, reports, rate)
        for kind in kinds
        if reports is not None or not kind.needs_reports
    ]
    if known and _others_unfit(oracle, known) is None:
        found.append(_canaries(oracle, tally, known, rate))
    return tuple(found)


def _sum_drift(
    oracle: FrequencyOracle, tally: Tally, reports: ReportSource | None, rate: float
) -> Alarm:
    """|sum of f~ - 1| in standard deviations: a test of the mean support size, from the counts
    alone.
    """
    variance = oracle.laws.sum_variance(tally.n)
    assert variance is not None  # else `_sum_unfit` has said why
    deviation = math.sqrt(variance)
    total = float(oracle.estimate(tally.counts(oracle), tally.n).sum())
    return Alarm(
        "sum-drift",
        abs(total - 1) / deviation,
        NormalDist().inv_cdf(1 - rate / 2),
        rate,
        f"the estimates sum to {total:.6g}; of honest reports to 1 within {deviation:.3g}, one "
        "standard deviation",
    )


def _excess(
    oracle: FrequencyOracle, tally: Tally, reports: ReportSource | None, rate: float
) -> Alarm:
    """The sum of the estimates that stand out from the noise: frequencies cannot sum to more than
    one.

    After the attack statistic of Li et al. (CCS 2025), who compare it with one. On concentrated
    data that sum is one, and noise alone takes it above every other time, so the threshold adds
    what noise does, in rounds simulated from the estimates' projection on the simplex.
    """
    n, d = tally.n, oracle.domain_size
    noise = math.sqrt(float(oracle.variance(0.0, n)))
    estimates = oracle.estimate(tally.counts(oracle), n)
    least = NormalDist().inv_cdf(1 - 1 / (2 * max(d, 10))) * noise

    def statistic(values: FloatArray) -> float:
        shifted = values + (1 - values.sum()) / d
        return float(shifted[shifted > least].sum())

    honest = project_simplex(estimates)
    rng = np.random.default_rng(n)  # the same answer to the same round
    # Reports, not normal noise: counts of few reports are skewed, and would raise the alarm in half
    # of all rounds.
    rounds = (oracle.population_tally(honest / honest.sum(), n, rng) for _ in range(_SIMULATED))
    simulated = np.array([statistic(oracle.estimate(its.counts(oracle), n)) for its in rounds])
    deviation = float(simulated.std(ddof=1))
    skewness = (
        float(((simulated - simulated.mean()) ** 3).mean() / deviation**3) if deviation > 0 else 0.0
    )
    # A quantile over the simulated moments, with what so many simulations leave open of them.
    wide = skewed_quantile(1 - rate, max(0.0, skewness)) + 3 / math.sqrt(_SIMULATED)
    # Items that stand out may have all the mass, also what the projection has put on noise.
    noise_mean = simulated.mean() - honest[honest > least].sum()
    threshold = 1 + noise_mean + wide * deviation * (1 + 3 / math.sqrt(2 * _SIMULATED))
    return Alarm(
        "excess",
        statistic(estimates),
        float(threshold),
        rate,
        f"the sum of the estimates above {least:.3g}, shifted to sum to one over all items",
    )


def _support_sizes(
    oracle: FrequencyOracle, tally: Tally, reports: ReportSource | None, rate: float
) -> Alarm:
    """Pearson's chi-squared of the reports' support sizes against their law."""
    assert reports is not None
    sizes = reports.total(size_counts)
    law = oracle.laws.size_law().probabilities()
    observed, expected = _bins(sizes, law * sizes.sum())
    statistic = float(((observed - expected) ** 2 / expected).sum())
    freedom = max(1, expected.size - 1)
    return Alarm(
        "support-size",
        statistic,
        chi_squared_quantile(1 - rate, freedom),
        rate,
        f"chi-squared of how many items each report supports, {freedom} degrees of freedom",
    )


def _bins(observed: Int64Array, expected: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Join neighbouring sizes until each bin expects enough; the rarest go to the bins at the
    ends.
    """
    edges, waiting = [0], 0.0
    for k, value in enumerate(expected):
        waiting += value
        if waiting >= _LEAST_EXPECTED:
            edges.append(k + 1)
            waiting = 0.0
    starts = edges[:-1] if len(edges) > 1 else [0]  # what is left over belongs to the last bin
    return np.add.reduceat(observed, starts).astype(np.float64), np.add.reduceat(expected, starts)


def _duplicate_seeds(
    oracle: FrequencyOracle, tally: Tally, reports: ReportSource | None, rate: float
) -> Alarm:
    """Pairs of reports with one hash seed, of which n honest reports have about n^2/2^33 (a Poisson
    number).
    """
    assert reports is not None
    found = reports.total(_seeds)
    pairs, places = found.counted()
    expected = found.n * (found.n - 1) / (2 * places)
    shared = (
        "share their hash seed"
        if places == 1 << 32
        else f"are in one of {places} bins by their hash seed"
    )
    return Alarm(
        "duplicate-seeds",
        pairs,
        pairs_quantile(1 - rate, found.n, places),
        rate,
        f"pairs of reports that {shared}; honest ones have {expected:.3g} on average",
    )


def _all_supporting(
    oracle: FrequencyOracle, tally: Tally, reports: ReportSource | None, rate: float
) -> Alarm:
    """Reports that support every item, of which n honest reports have a binomial number."""
    reports_of_all = oracle.laws.all_supporting
    assert reports_of_all is not None  # else `_all_unfit` has said why
    found, probability = tally.summary[reports_of_all.position], reports_of_all.probability
    return Alarm(
        "all-supporting",
        float(found),
        float(binomial_threshold(tally.n, probability, rate) - 1),
        rate,
        f"reports that support every item; honest ones are {tally.n * probability:.3g} on average",
    )


def _canaries(
    oracle: FrequencyOracle, tally: Tally, canaries: tuple[int, ...], rate: float
) -> Alarm:
    """|mean of the canaries' estimates| in standard deviations, against the exact law of how often
    they are supported.

    Both tails have rate/2 at most; the threshold is that of the side on which the mean lies.
    """
    shift = canary_shift(oracle, tally, canaries)
    low, high = shift.bounds(rate)
    shares = tally.n * len(canaries)
    above, below = ((end / shares - oracle.q) / (oracle.p - oracle.q) for end in (high, low))
    return Alarm(
        "canaries",
        abs(shift.mean) / shift.standard_deviation,
        max(above if shift.mean > 0 else -below, 0.0) / shift.standard_deviation,
        rate,
        f"the estimates of {items_in_words(len(canaries))} that nobody holds are {shift.mean:.6g} "
        "on average; of "
        f"honest reports 0 within {shift.standard_deviation:.3g}, one standard deviation",
    )


def _seeds(oracle: FrequencyOracle, reports: Reports) -> SeedPairs:
    return SeedPairs(oracle.seeds(reports).copy())  # a view would hold the whole block


def _sizes_unfit(oracle: FrequencyOracle) -> str | None:
    if oracle.fixed_size is not None:
        return f"every {oracle.protocol} report supports {items_in_words(oracle.fixed_size)}"
    return f"{oracle.protocol} lacks {SIZES}" if oracle.laws.sizes is None else None


def _sum_unfit(oracle: FrequencyOracle) -> str | None:
    if oracle.fixed_size is not None:
        return f"estimates from {oracle.protocol} reports always sum to one"
    return f"{oracle.protocol} lacks {SIZES}" if oracle.laws.sum_variance(1) is None else None


def _seeds_unfit(oracle: FrequencyOracle) -> str | None:
    if oracle.listed_seeds is not None:
        return f"the seeds of {oracle.protocol} reports are given"
    return None if oracle.traits.seeded else f"{oracle.protocol} reports have no hash seed"


def _all_unfit(oracle: FrequencyOracle) -> str | None:
    if oracle.laws.all_supporting is not None:
        return None
    return f"{oracle.protocol} lacks a count of the reports that support every item"


def _others_unfit(oracle: FrequencyOracle, items: tuple[int, ...]) -> str | None:
    hits = oracle.laws.hits
    if hits is None or hits.of_others(np.array(items)) is None:
        return f"{oracle.protocol} lacks {HITS}"
    return None


def _fits(oracle: FrequencyOracle) -> None:
    """Return no reason: the test is for every protocol."""


ALARMS: dict[str, AlarmKind] = {
    kind.name: kind
    for kind in (
        AlarmKind("sum-drift", "Sum of the estimates against one", _sum_unfit, False, _sum_drift),
        AlarmKind(
            "excess", "Sum of the estimates that stand out of the noise", _fits, False, _excess
        ),
        AlarmKind(
            "all-supporting", "Reports that support every item", _all_unfit, False, _all_supporting
        ),
        AlarmKind(
            "support-size",
            "Law of the number of items a report supports",
            _sizes_unfit,
            True,
            _support_sizes,
        ),
        AlarmKind(
            "duplicate-seeds",
            "Reports that share their hash seed",
            _seeds_unfit,
            True,
            _duplicate_seeds,
        ),
    )
}
"""Name to test."""
