"""Alarms: tests of a round for reports that honest users would not have sent.

Each test has a null law that holds for any values of honest users, so its false-alarm rate is
bounded. An alarm says that something is wrong, not what the frequencies are without it. Silence
proves nothing: malicious users who only lie about their value and perturb it honestly raise none.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ldprecover._checks import real
from ldprecover.distributions import binomial_threshold, chi_squared_quantile, skewed_quantile
from ldprecover.errors import ParameterError
from ldprecover.estimation.simplex import project_simplex
from ldprecover.evidence.canaries import canary_shift
from ldprecover.evidence.seed_pairs import SeedPairs, pairs_quantile
from ldprecover.items import canary_indices, items_in_words
from ldprecover.protocols import FrequencyOracle
from ldprecover.reports import Tally, tally_sampler
from ldprecover.reports.sample import Sample
from ldprecover.reports.source import ReportSource
from ldprecover.sentences import counted, percent
from ldprecover.types import FloatArray, Int64Array, Reports

DEFAULT_RATE = 1e-3
LEAST_RATE = 1e-9
"""The thresholds are not known for smaller rates."""

_SIMULATED = 200  # honest rounds behind the excess alarm's threshold
_LEAST_EXPECTED = 10.0  # reports in a bin of the chi-squared test
_MOST_BINS = 16  # where each takes two transforms
_LEAST_OF_BIN = 40.0  # reports, where what the bins measure is skewed more than their counts
_SINGULAR = 1e-9  # share of the largest variance, below which a direction is one of rounding


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
class _Round:
    """The data of a test, and its false-alarm rate."""

    oracle: FrequencyOracle
    tally: Tally
    reports: ReportSource | None
    rate: float
    canaries: tuple[int, ...] = ()


_Finding = tuple[float, float, str] | None
"""Statistic, threshold and meaning; None for a round that the test does not apply to."""


def raise_alarms(
    oracle: FrequencyOracle,
    tally: Tally,
    reports: Reports | ReportSource | None = None,
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
    if not LEAST_RATE <= (real(rate) or 0) < 0.5:
        raise ParameterError(f"rate must be at least {LEAST_RATE:g} and below 0.5, not {rate}")
    if tally.n < 1:
        raise ParameterError("alarms need at least one report")
    indices = canary_indices(canaries, oracle.domain_size)
    source = None if reports is None else ReportSource.of(oracle, reports, tally)
    round = _Round(oracle, tally, source, rate, indices)
    results = ((name, test(round)) for name, test in ALARMS.items())
    return tuple(
        Alarm(name, *result[:2], rate, result[2]) for name, result in results if result is not None
    )


def alarm_sentences(alarms: Sequence[Alarm], n: int, *, has_reports: bool) -> list[str]:
    """Return texts: how many alarms of n reports are raised, what that means, and what was tested.

    `has_reports` says whether the reports were read, not only their counts.
    """
    raised = sum(alarm.raised for alarm in alarms)
    tests = counted(len(alarms), "alarm")
    if raised:
        finding = f"{raised} of {tests} raised: honest users would hardly have sent these reports."
        meaning = "An alarm says that something is wrong, not what the frequencies are without it."
    else:
        finding = f"None of {tests} raised."
        meaning = "That proves nothing: users who perturb a false value honestly raise none."
    source = "" if has_reports else ", from their counts alone, as not all are stored"
    tested = f"Tested at {counted(n, 'report')}{source}"
    if alarms:
        tested += f", with a false-alarm rate of at most {percent(alarms[0].rate)} each"
    return [finding, meaning, f"{tested}."]


def _sum_drift(round: _Round) -> _Finding:
    """Test |sum of f~ - 1|, in standard deviations: the mean support size, from counts alone.

    If the law of sizes depends on the users' items, its largest variance and skewness are taken.
    """
    oracle, tally, rate = round.oracle, round.tally, round.rate
    moments = oracle.laws.largest_sum_moments(tally.n)
    if oracle.fixed_size is not None or moments is None:
        return None
    deviation, skewness = math.sqrt(moments[0]), moments[1]
    total = float(tally.frequencies(oracle).sum())
    return (
        abs(total - 1) / deviation,
        skewed_quantile(1 - rate / 2, skewness),
        (
            f"the estimates sum to {100 * total:.4g} %; of honest reports to 100 % within "
            f"{100 * deviation:.3g} points, one standard deviation"
        ),
    )


def _excess(round: _Round) -> _Finding:
    """Test the sum of the estimates that stand out from the noise: frequencies sum to one.

    After the statistic of Li et al. (CCS 2025), who compare it with one. On concentrated data the
    sum is one, and noise alone raises it above one every other time. So the threshold adds the
    effect of noise, from rounds simulated from the projection of the estimates on the simplex.
    """
    oracle, tally, rate = round.oracle, round.tally, round.rate
    n, d = tally.n, oracle.domain_size
    noise = math.sqrt(float(oracle.variance(0.0, n)))
    estimates = tally.frequencies(oracle)
    least = NormalDist().inv_cdf(1 - 1 / (2 * max(d, 10))) * noise

    def statistic(values: FloatArray) -> float:
        shifted = values + (1 - values.sum()) / d
        return float(shifted[shifted > least].sum())

    honest = project_simplex(estimates)
    rng = np.random.default_rng(n)  # the same answer to the same round
    # Reports are simulated, not normal noise: counts of few reports are skewed, and normal noise
    # would raise the alarm in half of all rounds.
    weights, sampler = honest / honest.sum(), tally_sampler(oracle)
    rounds = (sampler.population_tally(weights, n, rng) for _ in range(_SIMULATED))
    simulated = np.array([statistic(each.frequencies(oracle)) for each in rounds])
    deviation = float(simulated.std(ddof=1))
    skewness = (
        float(((simulated - simulated.mean()) ** 3).mean() / deviation**3) if deviation > 0 else 0.0
    )
    # The quantile of the simulated moments, plus three standard errors of 200 simulations.
    wide = skewed_quantile(1 - rate, max(0.0, skewness)) + 3 / math.sqrt(_SIMULATED)
    # Items that stand out may hold all the mass, including what the projection puts on noise.
    noise_mean = simulated.mean() - honest[honest > least].sum()
    threshold = 1 + noise_mean + wide * deviation * (1 + 3 / math.sqrt(2 * _SIMULATED))
    return (
        statistic(estimates),
        float(threshold),
        f"the sum of the estimates above {100 * least:.3g} %, shifted to sum to one over all items",
    )


def _support_sizes(round: _Round) -> _Finding:
    """Test the reports' support sizes against their law by Pearson's chi-squared."""
    laws = round.oracle.laws
    if round.oracle.fixed_size is not None:
        return None
    if laws.sizes is None:
        return _sizes_given_estimates(round) if round.oracle.traits.histogram else None
    if round.reports is None:
        return None
    sizes = round.reports.total(Sample.size_counts)
    law = laws.sizes.probabilities()
    observed, expected = _bins(sizes, law * sizes.sum())
    statistic = float(((observed - expected) ** 2 / expected).sum())
    freedom = max(1, expected.size - 1)
    return (
        statistic,
        chi_squared_quantile(1 - round.rate, freedom),
        f"chi-squared of how many items each report supports, {freedom} degrees of freedom",
    )


def _sizes_given_estimates(round: _Round) -> _Finding:
    """Test the support sizes where their law depends on the users' items.

    The law of sizes is linear in the frequencies, and the estimates are unbiased. So the numbers of
    reports in bins of sizes, less those that the estimates predict, are sums over the reports with
    mean 0, whatever users hold. Their covariance is that at the estimates projected.
    """
    oracle, laws, sums = round.oracle, round.oracle.laws, round.oracle.laws.report_sums
    tally, d = round.tally, oracle.domain_size
    n, estimates = tally.n, tally.frequencies(oracle)
    law = laws.report_law(project_simplex(estimates))
    if sums is None or law is None:
        return None
    size_of = np.rint(sums.masses(np.ones(d))).astype(np.int64)
    expected = n * np.bincount(size_of, law, d + 1).astype(np.float64)
    starts = _starts(expected, max(_LEAST_OF_BIN, n / _MOST_BINS))
    bin_of = np.searchsorted(starts, size_of, side="right") - 1
    residuals = []
    for number in range(len(starts)):
        inside = (bin_of == number).astype(np.float64)
        of_items = laws.item_means(inside)
        assert of_items is not None  # the law above is not None
        predicted = (sums.masses(of_items) - oracle.q * of_items.sum()) / (oracle.p - oracle.q)
        residuals.append(inside - predicted)
    of_report = np.array(residuals)
    variances, axes = np.linalg.eigh(n * (of_report * law) @ of_report.T)
    regular = variances > _SINGULAR * variances.max()
    freedom = int(regular.sum())
    statistic = float(
        ((axes.T @ (of_report @ tally.summary))[regular] ** 2 / variances[regular]).sum()
    )
    return (
        statistic,
        chi_squared_quantile(1 - round.rate, freedom),
        (
            "chi-squared of how many items each report supports, beyond what the estimates "
            f"predict, {freedom} degrees of freedom"
        ),
    )


def _bins(observed: Int64Array, expected: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Join neighbouring sizes until each bin expects 10 reports."""
    starts = _starts(expected, _LEAST_EXPECTED)
    return np.add.reduceat(observed, starts).astype(np.float64), np.add.reduceat(expected, starts)


def _starts(expected: FloatArray, least: float) -> list[int]:
    """Return the first size of each bin of neighbouring sizes that expects `least` reports."""
    edges, expected_in_bin = [0], 0.0
    for k, value in enumerate(expected):
        expected_in_bin += value
        if expected_in_bin >= least:
            edges.append(k + 1)
            expected_in_bin = 0.0
    return edges[:-1] if len(edges) > 1 else [0]  # the remainder joins the last bin


def _duplicate_seeds(round: _Round) -> _Finding:
    """Test the pairs of reports with equal seeds: n honest reports have about n^2/2^33, Poisson."""
    oracle = round.oracle
    if round.reports is None or not oracle.traits.seeded:
        return None
    seeds = round.reports.total(_seeds)
    pairs, places = seeds.counted()
    expected = seeds.n * (seeds.n - 1) / (2 * places)
    shared = (
        "share their hash seed"
        if places == 1 << 32
        else f"are in one of {places} bins by their hash seed"
    )
    return (
        pairs,
        pairs_quantile(1 - round.rate, seeds.n, places),
        f"pairs of reports that {shared}; honest ones have {expected:.3g} on average",
    )


def _all_supporting(round: _Round) -> _Finding:
    """Test the number of reports that support every item: binomial among n honest reports."""
    tally, probability = round.tally, round.oracle.laws.all_supporting
    if probability is None:
        return None
    return (
        float(tally.summary[0]),
        float(binomial_threshold(tally.n, probability, round.rate) - 1),
        f"reports that support every item; honest ones are {tally.n * probability:.3g} on average",
    )


def _canaries(round: _Round) -> _Finding:
    """Test |mean of the canaries' estimates|, in standard deviations, by their exact law.

    Both tails have at most rate/2; the threshold is that of the side of the mean.
    """
    oracle, tally, canaries = round.oracle, round.tally, round.canaries
    hits = oracle.laws.hits
    if not canaries or hits is None or hits.nonholder_law(np.array(canaries)) is None:
        return None
    shift = canary_shift(oracle, tally, canaries)
    low, high = shift.bounds(round.rate)
    shares = tally.n * len(canaries)
    above, below = ((end / shares - oracle.q) / (oracle.p - oracle.q) for end in (high, low))
    return (
        abs(shift.mean) / shift.standard_deviation,
        max(above if shift.mean > 0 else -below, 0.0) / shift.standard_deviation,
        (
            f"the estimates of {items_in_words(len(canaries))} that nobody holds are "
            f"{shift.mean:.6g} on average; of honest reports 0 within "
            f"{shift.standard_deviation:.3g}, one standard deviation"
        ),
    )


def _seeds(sample: Sample) -> SeedPairs:
    return SeedPairs(
        sample.oracle.seeds(sample.reports).copy()
    )  # a view would hold the whole block


ALARMS: dict[str, Callable[[_Round], _Finding]] = {
    "sum-drift": _sum_drift,
    "excess": _excess,
    "all-supporting": _all_supporting,
    "support-size": _support_sizes,
    "duplicate-seeds": _duplicate_seeds,
    "canaries": _canaries,
}
"""Every test by its name."""
