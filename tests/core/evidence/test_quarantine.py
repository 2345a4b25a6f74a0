"""Quarantine: sizes and seeds that honest reports hardly ever have, by their exact laws."""

import tracemalloc
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ldprecover import OLH, OUE, ParameterError, RoundParameters, Tally, frequency_oracle
from ldprecover.evidence.quarantine import (
    IMPOSSIBLE,
    Quarantined,
    Repeats,
    SeedFilter,
    impossible_sizes,
    judges_sizes,
    report_threshold,
    seed_threshold,
    split_by_size,
    unfit,
)
from ldprecover.protocols.llh import LLH
from ldprecover_attacker import MGA


@pytest.mark.parametrize("protocol", ["oue", "olh", "sue"])
@pytest.mark.parametrize(("d", "epsilon"), [(40, 0.5), (102, 0.5), (102, 3.0), (5000, 1.0)])
def test_impossible_sizes_are_the_rarest_with_total_below_1e_9(
    protocol: str, d: int, epsilon: float
) -> None:
    oracle = frequency_oracle(protocol, epsilon, d)
    impossible = impossible_sizes(oracle)
    others = stats.binom(d - 1, oracle.q)
    k = np.arange(d + 1)
    law = oracle.p * others.pmf(k - 1) + (1 - oracle.p) * others.pmf(k)
    assert 0 < law[impossible].sum() < IMPOSSIBLE
    assert law[impossible].max() <= law[~impossible].min()
    assert law[impossible].sum() + law[~impossible].min() >= IMPOSSIBLE * (
        1 - 1e-6
    )  # no more of them could be


def test_extreme_sizes_are_impossible_and_usual_ones_are_not() -> None:
    oracle = OUE(0.5, 102)
    sizes = np.array([1, 10, 11, 38, 69, 70, 102])
    rows = np.packbits(np.arange(102) < sizes[:, None], axis=1, bitorder="little")
    bad, tally = split_by_size(oracle, rows)
    assert bad.tolist() == [True, True, False, False, False, True, True]
    assert tally == Tally.of(oracle, rows[2:5])


def test_honest_reports_are_of_possible_sizes() -> None:
    """100,000 reports of each protocol: one is quarantined with a probability below 1e-4 a
    protocol.
    """
    rng = np.random.default_rng(1)
    for protocol in ("oue", "olh", "sue"):
        oracle = frequency_oracle(protocol, 0.5, 102)
        reports = oracle.perturb(rng.integers(102, size=100_000), rng)
        bad, tally = split_by_size(oracle, reports)
        assert not bad.any()
        assert tally == Tally.of(oracle, reports)


@pytest.mark.parametrize(
    ("protocol", "d", "reason"),
    [
        ("grr", 102, "every grr report supports one item"),
        ("ss", 102, "every ss report supports 39 items"),
        ("oue", 12, "of 12 items an honest report may support any number"),
    ],
)
def test_protocol_without_sizes_or_repeats_has_no_quarantine(
    protocol: str, d: int, reason: str
) -> None:
    oracle = frequency_oracle(protocol, 0.5, d)
    assert str(unfit(oracle)).startswith(reason)
    with pytest.raises(ParameterError, match="quarantine: "):
        RoundParameters(protocol, 0.5, tuple(map(str, range(d))), quarantine=True)


@pytest.mark.parametrize("protocol", ["olh", "hr", "llh"])
def test_repeats_are_counted_also_where_every_size_is_possible(protocol: str) -> None:
    oracle = frequency_oracle(protocol, 0.5, 4)
    assert unfit(oracle) is None
    assert not judges_sizes(oracle)
    reports = oracle.perturb([0, 1, 2, 3])
    bad, tally = split_by_size(oracle, reports)
    assert not bad.any()
    assert tally == Tally.of(oracle, reports)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 100, 5_000, 410_414, 10**7, 10**8])
def test_seed_threshold_is_the_least_with_a_small_family_rate(
    n: int,
) -> None:
    share, seeds = Fraction(1, 2**32), 2**32

    def family_rate(t: int) -> Fraction:
        terms = range(t, min(n, t + 20) + 1)  # each is below a fortieth of the one before it
        return seeds * sum((comb(n, k) * share**k * (1 - share) ** 0 for k in terms), Fraction(0))

    t = seed_threshold(n)
    # (1 - 2^-32)^(n - k) is left out above: from 1 down to .977, so each rate is right within 2.4
    # %.
    assert family_rate(t) <= Fraction(1, 10**9) * Fraction(1024, 1000)
    assert t == 2 or family_rate(t - 1) > Fraction(1, 10**9)


SEEDS = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=60, unique=True)


@given(seeds=SEEDS, times=st.data(), cuts=st.integers(1, 7))
def test_seed_filter_finds_exactly_the_recurring_seeds(
    seeds: list[int], times: st.DataObject, cuts: int
) -> None:
    repeats = times.draw(st.lists(st.integers(1, 8), min_size=len(seeds), max_size=len(seeds)))
    reports = np.random.default_rng(1).permutation(np.repeat(np.array(seeds, np.uint32), repeats))
    seed_filter = SeedFilter(reports.size)
    for block in np.array_split(reports, cuts):
        seed_filter.count(block)
    for block in np.array_split(reports, cuts):
        seed_filter.compare(block)
    expected = [
        (seed, often)
        for seed, often in zip(seeds, repeats, strict=True)
        if often >= seed_filter.threshold
    ]
    assert pairs(seed_filter.repeats()) == sorted(expected)


def test_seed_filter_finds_seed_beyond_a_full_bin() -> None:
    reports = np.concatenate(
        [np.full(70_000, 5, np.uint32), np.arange(100, 1_100, dtype=np.uint32)]
    )
    seed_filter = SeedFilter(reports.size)
    seed_filter.count(reports)
    seed_filter.compare(reports)
    assert pairs(seed_filter.repeats()) == [(5, 70_000)]


def test_no_reports_have_no_seeds_that_recur() -> None:
    assert SeedFilter(0).repeats().n == 0


def pairs(repeats: Repeats) -> list[tuple[int, int]]:
    return list(zip(repeats.values.tolist(), repeats.numbers.tolist(), strict=True))


def test_repeats_are_found_by_their_seeds() -> None:
    oracle = OLH(0.5, 4, 3)
    reports = oracle.reports(np.array([7, 9, 7, 1], np.uint32), np.array([0, 1, 2, 0]))
    repeats = Repeats(np.array([1, 7], np.uint32), np.array([1, 3]))
    chosen, remaining = repeats.split(oracle, reports)
    assert np.flatnonzero(chosen).tolist() == [0, 2, 3]
    assert pairs(remaining) == [(1, 0), (7, 1)]


def test_no_repeats_leave_every_report_in_place() -> None:
    oracle = LLH(1.0, 3, 3)
    reports = np.array([1, 2, 2], oracle.wire.dtype)
    for values in ([], [0, 7]):
        repeats = Repeats(np.array(values, np.uint32), np.ones(len(values), np.int64))
        chosen, remaining = repeats.split(oracle, reports)
        assert not chosen.any()
        assert remaining is repeats


def test_split_of_one_report_does_not_copy_all_values() -> None:
    """A sort or a copy of the values would make one report as costly as all of them."""
    oracle = OLH(0.5, 4, 3)
    repeats = Repeats(np.arange(100_000, dtype=np.uint32), np.ones(100_000, np.int64))
    reports = oracle.reports(np.array([200_000], np.uint32), np.array([0]))
    repeats.split(oracle, reports)
    tracemalloc.start()
    try:
        chosen, _ = repeats.split(oracle, reports)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert not chosen.any()
    assert peak < repeats.values.nbytes / 4


REPORTS = st.lists(st.integers(0, 8), max_size=40)


@given(
    reports=REPORTS,
    numbers=st.dictionaries(st.integers(0, 8), st.integers(0, 9), max_size=5),
    cut=st.integers(0, 40),
)
def test_repeats_are_the_first_of_each_value(
    reports: list[int], numbers: dict[int, int], cut: int
) -> None:
    oracle = LLH(1.0, 3, 3)
    values = sorted(numbers)
    repeats = Repeats(np.array(values, np.uint32), np.array([numbers[x] for x in values], int))
    array = np.array(reports, oracle.wire.dtype)
    first, others = repeats.split(oracle, array[:cut])
    second, others = Repeats.from_bytes(others.to_bytes()).split(oracle, array[cut:])
    remaining, expected = dict(numbers), []
    for report in reports:
        expected.append(remaining.get(report, 0) > 0)
        remaining[report] = remaining.get(report, 0) - expected[-1]
    assert np.concatenate([first, second]).tolist() == expected
    assert pairs(others) == [(x, remaining[x]) for x in values]


@pytest.mark.parametrize(("protocol", "d", "x"), [("hr", 102, 2 / 128), ("llh", 102, 1 / 243)])
def test_report_threshold_is_the_least_with_a_small_family_rate(
    protocol: str, d: int, x: float
) -> None:
    oracle = frequency_oracle(protocol, 1.0, d)
    law = stats.binom(200_000, x * oracle.p)
    t = report_threshold(oracle, 200_000)
    rates = oracle.summary_size * law.sf([t - 1, t - 2])
    assert rates[0] <= IMPOSSIBLE < rates[1]


@pytest.mark.parametrize("protocol", ["hr", "llh"])
@pytest.mark.parametrize("item", [0, 7, None], ids=str)
def test_honest_reports_do_not_repeat(protocol: str, item: int | None) -> None:
    """Users of one item fill its reports the most; a round loses a report once in 10^9."""
    oracle = frequency_oracle(protocol, 1.0, 30)
    rng = np.random.default_rng(1)
    items = rng.integers(30, size=100_000) if item is None else np.full(100_000, item)
    tally = Tally.of(oracle, oracle.perturb(items, rng))
    assert Repeats.of_tally(oracle, tally).n == 0


@pytest.mark.parametrize("protocol", ["hr", "llh"])
def test_repeats_are_no_more_than_the_malicious_reports(protocol: str) -> None:
    """Of each value; it fails once in 10^9."""
    oracle, rng = frequency_oracle(protocol, 0.5, 102), np.random.default_rng(1)
    honest = Tally.of(oracle, oracle.perturb(rng.integers(102, size=100_000), rng))
    malicious = Tally.of(oracle, MGA([3, 40, 70]).reports(oracle, 5_000, rng))
    everything = Tally.of(oracle, np.zeros(1_000, oracle.wire.dtype))
    repeats = Repeats.of_tally(oracle, honest + malicious + everything)
    assert (repeats.numbers <= (malicious + everything).summary[repeats.values]).all()
    assert pairs(repeats)[0][0] == 0
    assert repeats.numbers[0] > 500


def test_other_protocols_have_no_repeated_reports() -> None:
    with pytest.raises(ParameterError, match="oue lacks a list of all its reports"):
        report_threshold(OUE(1.0, 4), 10)


def test_seeds_near_each_other_do_not_fill_a_bin_together() -> None:
    """Consecutive seeds fall into bins as random ones do, whatever the random keys: a filter with
    one multiplication fails for 1 key of 31, so 200 of them pass with probability 0.001.
    """
    seeds = np.arange(1 << 15, dtype=np.uint32)
    for _ in range(200):
        seed_filter = SeedFilter(seeds.size)
        seed_filter.count(seeds)
        seed_filter.compare(seeds)
        assert seed_filter.repeats().n == 0
        assert sum(map(len, seed_filter._candidates)) < seeds.size // 10


@pytest.mark.parametrize(
    ("sizes", "repeats"), [(-1, 0), (0, -1), (0.0, 0), (True, 0), (0, "1"), (1 << 63, 0)]
)
def test_numbers_of_quarantined_reports_are_integers_from_0(sizes: object, repeats: object) -> None:
    with pytest.raises(ParameterError, match="integers from 0"):
        Quarantined(sizes, repeats)  # type: ignore[arg-type]
