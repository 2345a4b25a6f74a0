"""Sets of items that reports share: the reports dropped, and the items that join."""

import math
from functools import cache

import numpy as np
import pytest
from tests.core.recovery.poisoned_round import Round, play

from ldprecover import OLH, OUE, FrequencyOracle, Tally
from ldprecover.distributions import binomial_law
from ldprecover.protocols import SS, SUE
from ldprecover.recovery.unmixing.filters.raised import RaisedSet
from ldprecover.recovery.unmixing.filters.report_filters import filter_reports
from ldprecover.recovery.unmixing.filters.rules import set_laws
from ldprecover.recovery.unmixing.filters.set_search import _test, _tested, shared_sets
from ldprecover.reports import ReportSource
from ldprecover_attacker import APA2, MGA

D, N = 48, 40_000
OUE_, OLH_ = OUE(1.0, D), OLH(1.0, D, 4)
TARGETS = (5, 11, 17, 23, 29, 35, 41, 46)


@cache
def attacked(oracle: FrequencyOracle) -> Round:
    """Return a round with 2,000 reports of an attacker who raises the targets."""
    return play(oracle, 0.9 ** np.arange(D), N, MGA(TARGETS), m=2_000)


@pytest.mark.parametrize(
    ("members", "joined", "bins"),
    [(TARGETS[:5], TARGETS, [8]), (TARGETS, TARGETS, [8]), ((1, 2, 3, 4), (1, 2, 3, 4), [])],
    ids=["joined", "complete", "honest"],
)
def test_items_that_the_dropped_reports_raise_join_the_set(
    members: tuple[int, ...], joined: tuple[int, ...], bins: list[int]
) -> None:
    """A set that nobody raises is not dropped."""
    source = ReportSource(OUE_, attacked(OUE_).data)
    result = _tested(source, [], np.arange(D), np.array(members))
    assert result.items.tolist() == list(joined)
    assert np.flatnonzero(result.bins).tolist() == bins
    assert result.is_decided == bool(bins)


@pytest.mark.parametrize("oracle", [OUE_, OLH_], ids=lambda oracle: oracle.protocol)
def test_reports_that_pass_are_those_of_the_rule(oracle: FrequencyOracle) -> None:
    reports = attacked(oracle).data
    result = shared_sets(ReportSource(oracle, reports), Tally.of(oracle, reports))
    (dropped,) = result.decided
    assert tuple(sorted(dropped.items)) == TARGETS
    assert result.tally == Tally.of(oracle, reports[~dropped.chosen(oracle, reports)])
    assert dropped.dropped == len(reports) - result.tally.n


def test_set_is_suspicious_even_without_dropped_reports() -> None:
    """Honest reports often support as many of five targets as those by fair coins do."""
    targets = (20, 21, 22, 23, 24)
    round = play(OUE_, np.ones(D), 100_000, APA2(targets), m=4_000)
    result = filter_reports(ReportSource(OUE_, round.data))
    assert (result.n, tuple(result.suspects), result.dropped) == (104_000, targets, ())


def test_set_is_not_dropped_with_half_of_the_honest_reports() -> None:
    """Numbers of supported items that most honest reports have do not tell reports apart."""
    observed = np.array([90_000, 10_000, 2_000, 100])  # honest ones seldom support none of three
    result, score = _test(OUE(math.log(1.5), D), np.arange(3), observed)
    assert result.bins[0]
    assert score == 0


FITTED = [OUE_, OLH_, SUE(1.0, D), SS(1.0, D, 13)]
EACH = {
    "all": lambda oracle: np.eye(7)[6],
    "half": lambda oracle: (np.eye(7)[6] + np.eye(7)[0]) / 2,
    "framed": lambda oracle: oracle.q * np.eye(7)[6] + (1 - oracle.q) * np.eye(7)[0],
    "three": lambda oracle: np.append(np.zeros(3), set_laws(oracle, 3)[0]),
    "coins": lambda oracle: binomial_law(6, 0.8),
}


@pytest.mark.parametrize("oracle", FITTED, ids=lambda oracle: oracle.protocol)
@pytest.mark.parametrize("law", EACH)
def test_fit_tells_what_users_hold_and_fakes_add(oracle: FrequencyOracle, law: str) -> None:
    """Of six items that 30 % of the users hold, with 5 % of fakes: exact histograms, a fit that is
    exact. Framing adds nothing.
    """
    outsiders, holders = set_laws(oracle, 6)
    fakes = EACH[law](oracle)
    observed = 1e7 * (0.95 * (0.7 * outsiders + 0.3 * holders) + 0.05 * fakes)
    raised = RaisedSet.of(oracle, np.arange(6), np.rint(observed).astype(np.int64))
    best, added = raised.fits[0], float((fakes - outsiders) @ np.arange(7)) / (oracle.p - oracle.q)
    assert (best.holders, best.malicious) == pytest.approx((0.3, 0.05), abs=2e-3)
    assert best.raised - best.concealed == pytest.approx(0.05 * added, abs=5e-3)
    assert law == "half" or raised.is_certain == (law != "framed")
