"""Counts that add, to the bit, in any split and order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldprecover import GRR, FrequencyOracle, ParameterError, Tally


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(0, 300), max_size=6))
def test_any_split_of_the_reports_gives_the_same_tally(
    oracle: FrequencyOracle, seed: int, cuts: list[int]
) -> None:
    rng = np.random.default_rng(seed)
    reports = oracle.perturb(rng.integers(0, oracle.domain_size, 300), rng)
    parts = [Tally.of(oracle, part) for part in np.split(reports, sorted(cuts))]
    whole = Tally.of(oracle, reports)
    assert sum(parts, Tally.empty(oracle.domain_size)) == whole
    assert sum(reversed(parts), Tally.empty(oracle.domain_size)) == whole
    assert (whole - parts[0]) + parts[0] == whole
    shuffled = Tally.of(oracle, rng.permutation(reports))
    assert shuffled == whole


def test_counts_travel_as_little_endian_64_bit_integers() -> None:
    tally = Tally(np.array([1, 258, 0]), 300)
    assert tally.to_bytes().hex() == "010000000000000002010000000000000000000000000000"
    assert Tally.from_bytes(tally.to_bytes(), 300) == tally
    assert tally.summary.dtype == np.dtype("<i8")
    assert Tally(np.array([1, 258, 0], ">u2"), 300).to_bytes() == tally.to_bytes()


@pytest.mark.parametrize(
    ("counts", "n"),
    [
        ([0, 3], 2),
        ([-1, 0], 2),
        ([0.0, 1.0], 2),
        ([[0, 1]], 2),
        ([True, False], 2),
        ([2**63], 2),
        ([], -1),
    ],
)
def test_impossible_counts_are_rejected(counts: list[object], n: int) -> None:
    with pytest.raises(ParameterError):
        Tally(np.array(counts), n)


@pytest.mark.parametrize("n", [-1, 1.0, True, None, 2**63])
def test_the_number_of_reports_is_an_integer(n: object) -> None:
    with pytest.raises(ParameterError, match="n must be"):
        Tally(np.array([0, 0]), n)  # type: ignore[arg-type]


def test_subtraction_below_zero_is_rejected() -> None:
    with pytest.raises(ParameterError):
        Tally(np.array([1, 1]), 2) - Tally(np.array([2, 0]), 2)
    with pytest.raises(ParameterError):
        Tally(np.array([0, 0]), 1) - Tally(np.array([0, 0]), 2)


def test_tallies_of_different_domains_do_not_add() -> None:
    """numpy would stretch a domain of one item over the other."""
    with pytest.raises(ParameterError, match="do not add"):
        Tally(np.array([1]), 1) + Tally(np.array([1, 2]), 2)
    with pytest.raises(ParameterError, match="do not add"):
        Tally(np.array([1, 2]), 2) - Tally(np.array([1]), 1)


def test_equal_tallies_have_equal_counts_and_number() -> None:
    tally = Tally(np.array([1, 2]), 3)
    assert tally == Tally(np.array([1, 2], np.uint8), 3)
    assert tally != Tally(np.array([1, 2]), 4)
    assert tally != Tally(np.array([2, 1]), 3)
    assert tally != (1, 2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(tally)


def test_counts_that_change_later_leave_a_tally_alone() -> None:
    counts = np.array([1, 2])
    tally = Tally(counts, 5)
    counts += 3
    assert tally == Tally(np.array([1, 2]), 5)
    with pytest.raises(ValueError, match="read-only"):
        tally.counts(GRR(1.0, 2))[0] = 0
