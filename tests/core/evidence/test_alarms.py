"""Alarms: silent on honest rounds up to their rate, raised by the attacks that they are for."""

import pickle
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from tests.power import most_failures

from ldprecover import OLH, ParameterError, Tally, frequency_oracle
from ldprecover.distributions import sum_law
from ldprecover.evidence import seed_pairs
from ldprecover.evidence.alarms import LEAST_RATE, Alarm, alarm_sentences, raise_alarms
from ldprecover.evidence.seed_pairs import SeedPairs, pairs_quantile
from ldprecover.protocols import FrequencyOracle
from ldprecover.reports import tally_sampler
from ldprecover.reports.source import ReportSource

D = 60
SPREAD = 1 / np.arange(1, D + 1) / (1 / np.arange(1, D + 1)).sum()
CONCENTRATED = np.concatenate([[0.6, 0.4], np.zeros(D - 2)])
PROTOCOLS = ["grr", "oue", "olh"]


def honest(
    oracle: FrequencyOracle, n: int, rng: np.random.Generator, frequencies: np.ndarray = SPREAD
) -> np.ndarray:
    return oracle.perturb(rng.choice(oracle.domain_size, n, p=frequencies), rng)


def raised_by(oracle: FrequencyOracle, reports: np.ndarray, rate: float = 1e-3) -> dict[str, bool]:
    alarms = raise_alarms(
        oracle, Tally.of(oracle, reports), ReportSource(oracle, reports), rate=rate
    )
    return {alarm.name: alarm.raised for alarm in alarms}


PINNED: dict[str, dict[str, tuple[float, float]]] = {
    "grr": {"excess": (0.94818, 1.2418), "canaries": (1.0154, 2.5423)},
    "oue": {
        "sum-drift": (5.0657, 2.5758),
        "excess": (0.95132, 1.2164),
        "support-size": (75.504, 20.121),
        "canaries": (1.7919, 2.5939),
    },
    "olh": {
        "sum-drift": (3.1345, 2.5758),
        "excess": (0.98777, 1.2685),
        "support-size": (37.019, 20.121),
        "duplicate-seeds": (0, 0),
        "canaries": (1.3785, 2.581),
    },
    "sue": {
        "sum-drift": (4.2807, 2.5758),
        "excess": (0.92314, 1.2265),
        "support-size": (88.961, 20.121),
        "canaries": (1.6308, 2.5739),
    },
    "ss": {"excess": (0.96518, 1.2086), "canaries": (0.18887, 2.5596)},
    "hr": {
        "sum-drift": (3.9615, 2.6124),
        "excess": (0.9597, 1.2313),
        "all-supporting": (354, 321),
        "support-size": (19.43, 9.2205),
    },
    "llh": {
        "sum-drift": (4.6843, 2.6187),
        "excess": (1.0281, 1.2104),
        "all-supporting": (102, 86),
        "support-size": (28.052, 13.306),
    },
}
"""Statistics and thresholds of one round."""


@pytest.mark.parametrize("protocol", PINNED)
def test_alarms_of_a_round(protocol: str) -> None:
    """3,000 users, and 100 reports that support the most items, to five digits."""
    d, rng = 12, np.random.default_rng(1)
    oracle, frequencies = frequency_oracle(protocol, 1.0, d), np.arange(d, 0, -1.0)
    frequencies[-2:] = 0
    reports = honest(oracle, 3_000, rng, frequencies / frequencies.sum())
    pool = oracle.perturb(np.full(2_000, 3), rng)
    large = pool[np.argsort(-oracle.support_sizes(pool), kind="stable")[:100]]
    reports = np.concatenate([reports, large])
    tally, source = Tally.of(oracle, reports), ReportSource(oracle, reports)
    alarms = raise_alarms(oracle, tally, source, rate=0.01, canaries=(d - 2, d - 1))
    assert [each.name for each in alarms] == list(PINNED[protocol])
    for each in alarms:
        expected = PINNED[protocol][each.name]
        assert (each.statistic, each.threshold) == pytest.approx(expected, rel=1e-4)
        assert each.raised is (expected[0] > expected[1])


@pytest.mark.parametrize("rate", [0.2, 1e-3, 1e-6])
def test_sum_drift_is_raised_at_its_rate(rate: float) -> None:
    """The exact law of the sum of 20,000 reports, within a twentieth of the logarithm."""
    oracle, n = frequency_oracle("oue", 0.5, D), 20_000
    first, law = sum_law(oracle.laws.size_law().probabilities(), n)
    totals = (np.arange(first, first + law.size) / n - D * oracle.q) / (oracle.p - oracle.q)
    tally = Tally(np.full(D, 9_000), n)
    (drift, *_) = raise_alarms(oracle, tally, rate=rate)
    deviation = abs(tally.frequencies(oracle).sum() - 1) / drift.statistic
    exact = law[np.abs(totals - 1) / deviation > drift.threshold].sum()
    assert np.log(exact) == pytest.approx(np.log(rate), rel=0.05)


def test_support_sizes_have_pearsons_statistic() -> None:
    """Sizes of fewer than ten expected reports are joined with the next larger ones."""
    oracle, n, d = frequency_oracle("oue", 1.0, 14), 500, 14
    reports = honest(oracle, n, np.random.default_rng(1), np.full(d, 1 / d))
    law = n * oracle.laws.size_law().probabilities()
    joined = np.array([0, 0, 1, 2, 3, 4, 5, 6, *[7] * 7])
    sizes = np.bincount(oracle.support_sizes(reports), minlength=d + 1)
    expected = stats.chisquare(np.bincount(joined, sizes), np.bincount(joined, law)).statistic
    alarms = raise_alarms(oracle, Tally.of(oracle, reports), reports, rate=1e-3)
    alarm = next(each for each in alarms if each.name == "support-size")
    assert alarm.statistic == pytest.approx(expected)
    assert alarm.threshold == pytest.approx(stats.chi2.isf(1e-3, 7), rel=0.02)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("protocol", "frequencies"),
    [
        ("grr", SPREAD),
        ("oue", CONCENTRATED),
        ("olh", SPREAD),
        ("hr", SPREAD),
        ("llh", np.eye(D)[0]),
    ],
    ids=["grr", "oue-concentrated", "olh", "hr", "llh-item-0"],
)
def test_honest_rounds_raise_each_alarm_at_no_more_than_its_rate(
    protocol: str, frequencies: np.ndarray
) -> None:
    """Item 0 of LLH is in bucket 0 under every seed."""
    oracle = frequency_oracle(protocol, 0.5, D)
    rng = np.random.default_rng(1)
    raised = Counter[str]()
    for _ in range(50):
        raised.update(raised_by(oracle, honest(oracle, 1_500, rng, frequencies), rate=0.04))
    assert len(raised) == {"grr": 1, "oue": 3}.get(protocol, 4)
    assert max(raised.values()) <= most_failures(50, 0.04, false_alarm=1e-5, missed=0.38)


@pytest.mark.statistical
@pytest.mark.parametrize("frequencies", ["point", "zipf"])
@pytest.mark.parametrize(
    ("protocol", "epsilon", "d", "n"),
    [
        ("grr", 1.0, 1000, 1),
        ("grr", 1.0, 1000, 100),
        ("grr", 0.5, 102, 102),
        ("oue", 3.0, 102, 50),
        ("ss", 1.0, 102, 50),
    ],
)
def test_honest_rounds_of_few_reports_an_item_raise_no_excess(
    protocol: str, epsilon: float, d: int, n: int, frequencies: str
) -> None:
    """Counts are far from normal: normal noise would raise the alarm in half of all rounds."""
    oracle, rng = frequency_oracle(protocol, epsilon, d), np.random.default_rng(7)
    shape = np.eye(d)[0] if frequencies == "point" else 1 / np.arange(1, d + 1)
    raised = 0
    for _ in range(30):
        tally = tally_sampler(oracle).honest_tally(rng.multinomial(n, shape / shape.sum()), rng)
        alarms = {alarm.name: alarm for alarm in raise_alarms(oracle, tally, rate=0.04)}
        raised += alarms["excess"].raised
    assert raised <= most_failures(30, 0.04, false_alarm=1e-5, missed=0.5)


def test_each_attack_raises_the_alarm_that_is_for_it() -> None:
    """Every one is far beyond its threshold: 10 standard deviations or more."""
    rng = np.random.default_rng(2)
    n, m = 40_000, 4_000
    targets = np.arange(10, 20)

    grr = frequency_oracle("grr", 0.5, D)
    one_of_ten = rng.choice(targets, m).astype("<u4")
    assert raised_by(grr, np.concatenate([honest(grr, n, rng), one_of_ten])) == {"excess": True}

    oue = frequency_oracle("oue", 0.5, D)
    assert raised_by(
        oue, np.concatenate([honest(oue, n, rng), oue.encode(rng.choice(targets, m))])
    )["sum-drift"]
    bits = np.zeros((m, D), dtype=np.uint8)
    bits[:, targets] = 1
    bits[:, 20:33] = 1  # as many ones as an honest report has on average, and never more or fewer
    padded = np.concatenate([honest(oue, n, rng), np.packbits(bits, axis=1, bitorder="little")])
    assert raised_by(oue, padded, rate=1e-6) == {
        "sum-drift": False,
        "excess": True,
        "support-size": True,
    }

    for protocol in ("hr", "llh"):
        oracle: FrequencyOracle = frequency_oracle(protocol, 0.5, D)
        sizes = oracle.support_sizes(np.arange(oracle.summary_size, dtype="<u4"))
        usual = np.argsort(np.abs(sizes - oracle.laws.mean_size), kind="stable")[:5]
        crafted = rng.choice(usual.astype("<u4"), m)
        raised = raised_by(oracle, np.concatenate([honest(oracle, n, rng), crafted]), rate=1e-6)
        assert raised["support-size"]
        assert not raised["all-supporting"]
        large = rng.choice(np.argsort(-sizes, kind="stable")[1:6].astype("<u4"), 3 * m)
        assert raised_by(oracle, np.concatenate([honest(oracle, n, rng), large]))["sum-drift"]

    olh = frequency_oracle("olh", 0.5, D)
    assert isinstance(olh, OLH)
    same = olh.reports(np.full(m, 12345, dtype=np.uint32), np.ones(m, dtype=np.uint16))
    assert raised_by(olh, np.concatenate([honest(olh, n, rng), same]))["duplicate-seeds"]


@pytest.mark.parametrize("protocol", ["oue", "olh"])
def test_users_who_only_lie_about_their_item_raise_none(protocol: str) -> None:
    """Perturbed honestly, reports for one item look like any others to all but the excess alarm."""
    oracle = frequency_oracle(protocol, 0.5, D)
    rng = np.random.default_rng(3)
    liars = oracle.perturb(np.full(4_000, 30), rng)
    alarms = raised_by(oracle, np.concatenate([honest(oracle, 40_000, rng), liars]), rate=1e-6)
    assert not any(alarms.values())


def test_counts_alone_give_the_alarms_that_need_no_reports() -> None:
    oracle = frequency_oracle("olh", 0.5, D)
    tally = Tally.of(oracle, honest(oracle, 1_000, np.random.default_rng(5)))
    assert [alarm.name for alarm in raise_alarms(oracle, tally)] == ["sum-drift", "excess"]


@pytest.mark.parametrize(("n", "places"), [(300, 1 << 20), (3_000, 1_000), (1_000, 1_000)])
def test_quantile_of_pairs_is_exceeded_at_its_rate(n: int, places: int) -> None:
    """10,000 rounds at a rate of .01: outside 100 -+ 6 standard deviations with probability 2e-9,
    or a poor quantile. A rate of .02 is missed once in 100.

    Few reports in many places, where pairs are rare, and more reports than places.
    """
    rng = np.random.default_rng(8)
    threshold = pairs_quantile(0.99, n, places)
    exceeded = 0
    for _ in range(10_000):
        sample = rng.integers(0, places, n)
        times = np.bincount(sample) if places <= n else np.unique(sample, return_counts=True)[1]
        exceeded += (times * (times - 1)).sum() / 2 > threshold
    # A Poisson number jumps over its level: above 0 reports of 300 in 2^20 places, .0004 + .042 of
    # rounds.
    expected = 10_000 * (
        stats.poisson.sf(threshold, n * (n - 1) / 2 / places) if n * 1000 <= places else 0.01
    )
    assert abs(exceeded - expected) < 6 * np.sqrt(expected)


@pytest.mark.parametrize("size", [1, 900, 10_000])
def test_more_seeds_than_are_held_are_counted_in_bins(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exact up to the bound; beyond it in bins, the same for any cut into blocks."""
    monkeypatch.setattr(seed_pairs, "_MAX_SEEDS", 2_000)
    monkeypatch.setattr(seed_pairs, "_BINS", 1 << 12)
    rng = np.random.default_rng(9)
    seeds = rng.integers(0, 1 << 32, 5_000, dtype=np.uint32)
    seeds[1_900:2_000] = seeds[0]

    def counted(array: np.ndarray) -> tuple[float, int]:
        total = SeedPairs(array[:size])
        for start in range(size, len(array), size):
            total += SeedPairs(array[start : start + size])
        total = pickle.loads(pickle.dumps(total))
        assert total.n == len(array)
        return total.counted()

    assert counted(seeds[:2_000]) == (100 * 101 / 2, 1 << 32)
    pairs, places = counted(seeds)
    assert places == 1 << 12
    in_one_bin = 5_000 * 4_999 / 2 / places
    assert (
        abs(pairs - in_one_bin - 100 * 101 / 2) < 6 * np.sqrt(in_one_bin) + 2 * 101 * 5_000 / places
    )
    several = np.array([5, 5, 5, 9, 9, 7, 1, 1, 1, 1], np.uint32)
    assert counted(several) == (3 + 1 + 6, 1 << 32)
    assert counted(several[:1]) == (0, 1 << 32)
    threshold = pairs_quantile(0.999, 5_000, places)
    assert pairs > threshold
    assert counted(rng.integers(0, 1 << 32, 5_000, dtype=np.uint32))[0] < threshold


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_least_rate_has_a_threshold(protocol: str) -> None:
    oracle = frequency_oracle(protocol, 0.5, D)
    reports = honest(oracle, 1_000, np.random.default_rng(6))
    alarms = raise_alarms(
        oracle, Tally.of(oracle, reports), ReportSource(oracle, reports), rate=LEAST_RATE
    )
    assert all(np.isfinite(alarm.threshold) and not alarm.raised for alarm in alarms)


def test_rejects_rounds_that_cannot_be_tested() -> None:
    oracle = frequency_oracle("grr", 0.5, D)
    with pytest.raises(ParameterError, match="at least one report"):
        raise_alarms(oracle, Tally.empty(D))
    for rate in (0.0, 1e-10, 0.5, float("nan")):
        with pytest.raises(ParameterError, match="rate"):
            raise_alarms(oracle, Tally(np.ones(D, dtype=np.int64), D), rate=rate)


@pytest.mark.parametrize(
    ("statistics", "finding", "meaning"),
    [
        ((2.0, 0.5), "1 of 2 alarms raised: honest users", "An alarm says that something is wrong"),
        ((0.5,), "None of 1 alarm raised.", "That proves nothing"),
        ((), "None of 0 alarms raised.", "That proves nothing"),
    ],
)
def test_alarms_in_sentences(statistics: tuple[float, ...], finding: str, meaning: str) -> None:
    alarms = [Alarm("test", statistic, 1.0, 1e-3, "") for statistic in statistics]
    rate = ", with a false-alarm rate of at most 0.1 % each" if alarms else ""
    first, second, third = alarm_sentences(alarms, 1234, has_reports=True)
    assert first.startswith(finding)
    assert second.startswith(meaning)
    assert third == f"Tested at 1,234 reports{rate}."
    source = "from their counts alone, as not all are stored"
    assert source in alarm_sentences(alarms, 1, has_reports=False)[2]
