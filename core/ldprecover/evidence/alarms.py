"""Alarms: tests of a round for reports that honest users would not have sent.

Each test has a null law that holds for any values of honest users, so its false-alarm rate is
bounded. An alarm says that something is wrong, not what the frequencies are without it. Silence
proves nothing: malicious users who only lie about their value and perturb it honestly raise none.
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
"""The thresholds are not known for smaller rates."""

_SIMULATED = 200  # honest rounds behind the excess alarm's threshold
_LEAST_EXPECTED = 10.0  # reports in a bin of the chi-squared test


@dataclass(frozen=True)
class Alarm:
    """The result of a test; the alarm is raised if the statistic exceeds the threshold.

    `rate` bounds the probability that a round of honest reports raises it. `meaning` says what the
    statistic is.
    """

    name: str
    statistic: float
    threshold: float
    rate: float
    meaning: str

    @property
    def raised(self) -> bool:
        """Whether the statistic exceeds the threshold."""
        return self.statistic > self.threshold


@dataclass(frozen=True)
class AlarmTest:
    """A test: its name, a summary in one line, whether it reads reports, and its function.

    `unfit` returns why a protocol does not have the test, or None.
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
    """Run every test that the protocol has; tests that read reports need `reports`.

    `canaries` are the indices of items that nobody holds: they are tested too, if the protocol has
    a law of their joint support. `rate` bounds the false-alarm rate of each test; that of k tests
    together is at most k times the rate. Raises ParameterError for a rate outside [1e-9, 1/2) and
    for a tally without reports.

        [alarm.name for alarm in raise_alarms(oracle, tally) if alarm.raised]
    """
    if not LEAST_RATE <= rate < 0.5:
        raise ParameterError(f"rate must be at least {LEAST_RATE:g} and below 0.5, not {rate}")
    if tally.n < 1:
        raise ParameterError("alarms need at least one report")
    indices = canary_indices(canaries, oracle.domain_size)
    alarms = [
        test.run(oracle, tally, reports, rate)
        for test in ALARMS.values()
        if test.unfit(oracle) is None and (reports is not None or not test.needs_reports)
    ]
    if indices and _others_unfit(oracle, indices) is None:
        alarms.append(_canaries(oracle, tally, indices, rate))
    return tuple(alarms)


def _sum_drift(
    oracle: FrequencyOracle, tally: Tally, reports: ReportSource | None, rate: float
) -> Alarm:
    """Test |sum of f~ - 1|, in standard deviations: the mean support size, from counts alone."""
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
    """Test the sum of the estimates that stand out from the noise: frequencies sum to one.

    After the statistic of Li et al. (CCS 2025), who compare it with one. On concentrated data the
    sum is one, and noise alone raises it above one every other time. So the threshold adds the
    effect of noise, from rounds simulated from the projection of the estimates on the simplex.
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
    # Reports are simulated, not normal noise: counts of few reports are skewed, and normal noise
    # would raise the alarm in half of all rounds.
    weights, simulation = honest / honest.sum(), oracle.simulation
    rounds = (simulation.population_tally(weights, n, rng) for _ in range(_SIMULATED))
    simulated = np.array([statistic(oracle.estimate(each.counts(oracle), n)) for each in rounds])
    deviation = float(simulated.std(ddof=1))
    skewness = (
        float(((simulated - simulated.mean()) ** 3).mean() / deviation**3) if deviation > 0 else 0.0
    )
    # The quantile of the simulated moments, plus three standard errors of 200 simulations.
    wide = skewed_quantile(1 - rate, max(0.0, skewness)) + 3 / math.sqrt(_SIMULATED)
    # Items that stand out may hold all the mass, including what the projection puts on noise.
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
    """Test the reports' support sizes against their law by Pearson's chi-squared."""
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
    """Join neighbouring sizes until each bin expects 10 reports."""
    edges, expected_in_bin = [0], 0.0
    for k, value in enumerate(expected):
        expected_in_bin += value
        if expected_in_bin >= _LEAST_EXPECTED:
            edges.append(k + 1)
            expected_in_bin = 0.0
    starts = edges[:-1] if len(edges) > 1 else [0]  # the remainder joins the last bin
    return np.add.reduceat(observed, starts).astype(np.float64), np.add.reduceat(expected, starts)


def _duplicate_seeds(
    oracle: FrequencyOracle, tally: Tally, reports: ReportSource | None, rate: float
) -> Alarm:
    """Test the pairs of reports with equal seeds: n honest reports have about n^2/2^33, Poisson."""
    assert reports is not None
    seeds = reports.total(_seeds)
    pairs, places = seeds.counted()
    expected = seeds.n * (seeds.n - 1) / (2 * places)
    shared = (
        "share their hash seed"
        if places == 1 << 32
        else f"are in one of {places} bins by their hash seed"
    )
    return Alarm(
        "duplicate-seeds",
        pairs,
        pairs_quantile(1 - rate, seeds.n, places),
        rate,
        f"pairs of reports that {shared}; honest ones have {expected:.3g} on average",
    )


def _all_supporting(
    oracle: FrequencyOracle, tally: Tally, reports: ReportSource | None, rate: float
) -> Alarm:
    """Test the number of reports that support every item: binomial among n honest reports."""
    reports_of_all = oracle.laws.all_supporting
    assert reports_of_all is not None  # else `_all_unfit` has said why
    number, probability = tally.summary[reports_of_all.position], reports_of_all.probability
    return Alarm(
        "all-supporting",
        float(number),
        float(binomial_threshold(tally.n, probability, rate) - 1),
        rate,
        f"reports that support every item; honest ones are {tally.n * probability:.3g} on average",
    )


def _canaries(
    oracle: FrequencyOracle, tally: Tally, canaries: tuple[int, ...], rate: float
) -> Alarm:
    """Test |mean of the canaries' estimates|, in standard deviations, by their exact law.

    Both tails have at most rate/2; the threshold is that of the side of the mean.
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


ALARMS: dict[str, AlarmTest] = {
    test.name: test
    for test in (
        AlarmTest("sum-drift", "Sum of the estimates against one", _sum_unfit, False, _sum_drift),
        AlarmTest(
            "excess",
            "Sum of the estimates that stand out of the noise",
            lambda _: None,
            False,
            _excess,
        ),
        AlarmTest(
            "all-supporting", "Reports that support every item", _all_unfit, False, _all_supporting
        ),
        AlarmTest(
            "support-size",
            "Law of the number of items a report supports",
            _sizes_unfit,
            True,
            _support_sizes,
        ),
        AlarmTest(
            "duplicate-seeds",
            "Reports that share their hash seed",
            _seeds_unfit,
            True,
            _duplicate_seeds,
        ),
    )
}
"""Every test by its name, but that of canaries, which takes their indices."""
