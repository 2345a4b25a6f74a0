"""Quarantine: sizes and seeds that honest reports hardly ever have, by their exact laws."""

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
    SeedFilter,
    impossible_sizes,
    seed_threshold,
    split_by_size,
    unfit,
    with_seeds,
)


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
        (
            "hr",
            102,
            "honest users send each of the 128 hr reports with a probability of 0.0059 or more",
        ),
        ("oue", 12, "of 12 items an honest report may support any number"),
    ],
)
def test_protocol_without_sizes_or_seeds_has_no_quarantine(
    protocol: str, d: int, reason: str
) -> None:
    oracle = frequency_oracle(protocol, 0.5, d)
    assert str(unfit(oracle)).startswith(reason)
    with pytest.raises(ParameterError, match="quarantine: "):
        RoundParameters(protocol, 0.5, tuple(map(str, range(d))), quarantine=True)


def test_seeds_are_judged_also_where_every_size_is_possible() -> None:
    oracle = OLH(0.5, 4, 3)
    assert unfit(oracle) is None
    assert not split_by_size(oracle, oracle.perturb([0, 1, 2, 3]))[0].any()


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
    screen = SeedFilter(reports.size)
    for block in np.array_split(reports, cuts):
        screen.count(block)
    for block in np.array_split(reports, cuts):
        screen.compare(block)
    expected = [
        seed for seed, often in zip(seeds, repeats, strict=True) if often >= screen.threshold
    ]
    assert screen.found().tolist() == sorted(expected)


def test_seed_filter_finds_seed_beyond_a_full_bin() -> None:
    reports = np.concatenate(
        [np.full(70_000, 5, np.uint32), np.arange(100, 1_100, dtype=np.uint32)]
    )
    screen = SeedFilter(reports.size)
    screen.count(reports)
    screen.compare(reports)
    assert screen.found().tolist() == [5]


def test_no_reports_have_no_seeds_that_recur() -> None:
    assert SeedFilter(0).found().tolist() == []


def test_reports_are_found_by_their_seeds() -> None:
    oracle = OLH(0.5, 4, 3)
    reports = oracle.reports(np.array([7, 9, 7, 1], np.uint32), np.array([0, 1, 2, 0]))
    chosen = with_seeds(oracle, reports, np.array([1, 7], np.uint32))
    assert np.flatnonzero(chosen).tolist() == [0, 2, 3]


def test_seeds_near_each_other_do_not_fill_a_bin_together() -> None:
    """Consecutive seeds fall into bins as random ones do, whatever the random keys: a filter with
    one multiplication fails for 1 key of 31, so 200 of them pass with probability 0.001.
    """
    seeds = np.arange(1 << 15, dtype=np.uint32)
    for _ in range(200):
        seed_filter = SeedFilter(seeds.size)
        seed_filter.count(seeds)
        seed_filter.compare(seeds)
        assert seed_filter.found().size == 0
        assert sum(map(len, seed_filter._candidates)) < seeds.size // 10


@pytest.mark.parametrize(
    ("sizes", "seeds"), [(-1, 0), (0, -1), (0.0, 0), (True, 0), (0, "1"), (1 << 63, 0)]
)
def test_numbers_of_quarantined_reports_are_integers_from_0(sizes: object, seeds: object) -> None:
    with pytest.raises(ParameterError, match="integers from 0"):
        Quarantined(sizes, seeds)  # type: ignore[arg-type]
