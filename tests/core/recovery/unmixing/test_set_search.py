"""Sets of items that reports share: the reports dropped, and the items that join."""

import math
from functools import cache

import numpy as np
import pytest

from ldprecover import OLH, OUE, Tally
from ldprecover.protocols import SUE
from ldprecover.recovery import ReportSource
from ldprecover.recovery.unmixing.filters.mass_balance import mass_balance
from ldprecover.recovery.unmixing.filters.report_filters import (
    _impossible,
    _too_frequent,
    filter_reports,
)
from ldprecover.recovery.unmixing.filters.rules import ReportFilter
from ldprecover.recovery.unmixing.filters.set_search import SetSearch, _test, shared_sets
from ldprecover_attacker import APA2, MGA

D, N = 48, 40_000
OUE_, OLH_ = OUE(1.0, D), OLH(1.0, D, 4)
TARGETS = (5, 11, 17, 23, 29, 35, 41, 46)


@cache
def rows(protocol: str, m: int) -> np.ndarray:
    """Return honest reports, and m of an attacker who raises the targets. Seeded."""
    oracle, rng = {"oue": OUE_, "olh": OLH_}[protocol], np.random.default_rng(20)
    items = rng.choice(D, N, p=0.9 ** np.arange(D) / (0.9 ** np.arange(D)).sum())
    return np.concatenate([oracle.perturb(items, rng), MGA(TARGETS).reports(oracle, m, rng)])


def mask(*members: int) -> np.ndarray:
    chosen = np.zeros(D, np.bool_)
    chosen[list(members)] = True
    return chosen


@pytest.mark.parametrize(
    ("members", "joined", "bins"),
    [
        (TARGETS[:5], TARGETS, [8]),
        (TARGETS, TARGETS, [8]),
        ((1, 2, 3, 4), (1, 2, 3, 4), []),
    ],
    ids=["joined", "complete", "honest"],
)
def test_items_that_the_dropped_reports_raise_join_the_set(
    members: tuple[int, ...], joined: tuple[int, ...], bins: list[int]
) -> None:
    """A set that nobody raises is not dropped."""
    source = ReportSource(OUE_, rows("oue", 2_000))
    (result,) = SetSearch(source, ReportFilter(), np.arange(D)).tested([(np.array(members), 0.0)])
    assert np.flatnonzero(result.members).tolist() == list(joined)
    assert np.flatnonzero(result.bins).tolist() == bins
    assert (result.score > 0) == bool(bins)


@pytest.mark.parametrize("protocol", ["oue", "olh"])
def test_reports_that_pass_are_those_of_the_rule(protocol: str) -> None:
    oracle, reports = {"oue": OUE_, "olh": OLH_}[protocol], rows(protocol, 2_000)
    result = shared_sets(ReportSource(oracle, reports), ReportFilter(), Tally.of(oracle, reports))
    assert tuple(sorted(result.report_filter.sets[0].items)) == TARGETS
    assert result.tally == Tally.of(oracle, reports[result.report_filter.of(oracle, reports)])
    assert result.dropped == (len(reports) - result.tally.n,)


def test_set_is_suspicious_even_without_dropped_reports() -> None:
    """Honest reports often support as many of five targets as those by fair coins do."""
    rng, targets = np.random.default_rng(21), (20, 21, 22, 23, 24)
    crafted = APA2(targets).reports(OUE_, 4_000, rng)
    reports = np.concatenate([OUE_.perturb(rng.integers(D, size=100_000), rng), crafted])
    result = filter_reports(ReportSource(OUE_, reports))
    assert (result.n, tuple(result.suspects), result.dropped) == (len(reports), targets, ())


def test_items_supported_together_too_seldom_are_found() -> None:
    """Each of eleven items as often as honest reports support it, but always exactly three: that
    lowers all pairs.
    """
    rng, targets = np.random.default_rng(22), np.arange(20, 31)
    bits = rng.random((4_000, D)) < OUE_.q
    bits[:, targets] = rng.permuted(np.tile(np.arange(11) < 3, (4_000, 1)), axis=1)
    crafted = np.packbits(bits, axis=1, bitorder="little")
    result = filter_reports(
        ReportSource(OUE_, np.concatenate([OUE_.perturb(rng.integers(D, size=N), rng), crafted]))
    )
    assert list(result.suspects) == targets.tolist()


def test_sizes_that_no_report_is_expected_to_have_are_impossible() -> None:
    """0.99e-6 reports of the first size are expected of 990, and 2e-6 of 2,000."""
    law = np.array([1e-9, 5e-5, 5e-5, 1 - 1e-4 - 1e-9])
    for sizes, first in (([0, 4, 2, 984], True), ([1, 4, 2, 1_993], False)):
        assert _impossible(np.array(sizes), law).tolist() == [first, False, False, False]


def test_rare_sizes_that_are_far_too_frequent_are_impossible() -> None:
    """20 reports and ten times what is expected, here 5, are few enough."""
    law = np.array([5e-5, 2e-4, 1 - 2.5e-4])
    assert _impossible(np.array([70, 9_000, 90_930]), law).tolist() == [False, False, False]
    assert _impossible(np.array([71, 9_000, 90_929]), law).tolist() == [True, False, False]


def test_sizes_are_not_dropped_with_half_of_the_honest_reports() -> None:
    law, sizes_passing = np.array([0.3, 0.6, 0.1]), np.ones(3, np.bool_)
    assert not _too_frequent(np.array([3_000, 16_000, 1_000]), law, sizes_passing).any()


def test_set_is_not_dropped_with_half_of_the_honest_reports() -> None:
    """Numbers of supported items that most honest reports have do not tell reports apart."""
    hits = np.zeros((25, D + 1), np.int64)
    hits[:4, -1] = [90_000, 10_000, 2_000, 100]  # honest ones seldom support none of the three
    result = _test(OUE(math.log(1.5), D), mask(0, 1, 2), hits)
    assert result.bins[0]
    assert result.score == 0


def test_reports_that_lower_items_are_not_dropped() -> None:
    """Many of a fifth of the reports support none of these eight items, which takes from them."""
    observed = np.array([2793, 15222, 40548, 63889, 64273, 41930, 16949, 3985, 411])
    assert not mass_balance(SUE(0.5, 100), observed).is_separable
