"""Sets of items that reports share: how they are found, and what malicious reports add to them."""

from itertools import combinations

import numpy as np
import pytest
from tests.core.recovery.poisoned_round import Round, play

from ldprecover import OLH, OUE, FrequencyOracle
from ldprecover.distributions import binomial_law
from ldprecover.protocols import SS, SUE
from ldprecover.recovery.unmixing.filters import set_search
from ldprecover.recovery.unmixing.filters.raised import RaisedSet
from ldprecover.recovery.unmixing.filters.rules import set_laws
from ldprecover.recovery.unmixing.filters.set_search import SetSearch, _dropped, _words, found_sets
from ldprecover.reports import ReportSource
from ldprecover.reports.sample import Sample
from ldprecover_attacker import APA2, MGA, RPA, Attack, Cancel

D, N = 48, 40_000
OUE_, OLH_ = OUE(1.0, D), OLH(1.0, D, 4)
TARGETS = (5, 11, 17, 23, 29, 35, 41, 46)
CANCEL = Cancel(TARGETS)


def sizes_of(round: Round) -> np.ndarray:
    """Return how many reports support k items, k = 0..D."""
    return np.bincount(round.oracle.support_sizes(round.data), minlength=D + 1)


@pytest.mark.parametrize(
    ("oracle", "attack"),
    [
        *[(oracle, MGA(TARGETS)) for oracle in (OUE_, SUE(2.0, D), SS(1.0, D, 13))],
        (OLH_, CANCEL),
        (OUE_, APA2(TARGETS, rate=0.7)),
    ],
    ids=lambda each: getattr(each, "protocol", None),
)
def test_exactly_the_targets_are_found(oracle: FrequencyOracle, attack: Attack) -> None:
    """With evidence beyond 20 nats, as strong as of one clean round in 10^8."""
    round = play(oracle, 0.9 ** np.arange(D), N, attack, m=3_000)
    (first, *_), log_p = found_sets(
        ReportSource(oracle, round.data), round.estimates, sizes_of(round)
    )
    assert tuple(first.items) == TARGETS
    assert log_p < -20


def test_tables_are_sums_of_centred_products() -> None:
    round = play(OUE_, np.ones(D), 500)
    items, q = np.array([3, 8, 21, 30, 44]), OUE_.q
    words = _words(Sample(OUE_, round.data), items=items, n=500)
    search = SetSearch(OUE_, words, round.estimates[items])
    bits = OUE_.supports(round.data, items) - q
    pairs = {pair: float(bits[:, pair].prod(axis=1).sum()) for pair in combinations(range(5), 2)}
    scale = np.sqrt(500 * (q * (1 - q)) ** np.arange(4))
    for (u, v), pair in pairs.items():
        usual = np.median(list(pairs.values()))
        assert search.pairs[u, v] == pytest.approx((pair - usual) / scale[2], abs=1e-4)
    for triple in combinations(range(5), 3):
        exact = bits[:, triple].prod(axis=1).sum() / scale[3]
        assert search.triples[triple] == pytest.approx(exact, abs=1e-4)
        assert search.triples[triple[::-1]] == search.triples[triple]


@pytest.mark.parametrize("size", [300, 1000, 10**6])
def test_words_of_blocks_add_up_to_those_of_all_reports(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more reports than are sampled each part of the round has as many."""
    monkeypatch.setattr(set_search, "_SAMPLED", size)
    data, items = play(OUE_, np.ones(D), 1000).data, np.array([3, 8, 21])
    blocks = [Sample(OUE_, data[i : i + 170], first=i) for i in range(0, 1000, 170)]
    parts = [_words(block, items=items, n=1000) for block in blocks]
    words = np.sum(parts, axis=0)
    assert np.array_equal(words, _words(Sample(OUE_, data), items=items, n=1000))
    rows = -(-np.arange(min(size, 1000)) * 1000 // min(size, 1000))
    bits = OUE_.supports(data[rows], items)
    assert np.array_equal(words, bits @ np.array([1, 2, 4]))


def test_set_is_suspicious_even_without_dropped_reports() -> None:
    """Honest reports often support as many of five targets as those by fair coins do."""
    targets = (20, 21, 22, 23, 24)
    round = play(OUE_, np.ones(D), 100_000, APA2(targets), m=4_000)
    (only,), _ = found_sets(ReportSource(OUE_, round.data), round.estimates, sizes_of(round))
    assert tuple(only.items) == targets
    assert not only.bins.any()


def test_set_is_not_dropped_with_half_of_the_honest_reports() -> None:
    """Numbers of supported items that most honest reports have do not tell reports apart."""
    assert not _dropped(OUE(0.4, D), np.array([90_000, 10_000, 2_000, 100])).any()


FITTED = [OUE_, OLH_, SUE(1.0, D), SS(1.0, D, 13)]
EACH = {
    "all": lambda oracle: np.eye(7)[6],
    "half": lambda oracle: (np.eye(7)[6] + np.eye(7)[0]) / 2,
    "framed": lambda oracle: oracle.q * np.eye(7)[6] + (1 - oracle.q) * np.eye(7)[0],
    "three": lambda oracle: np.append(np.zeros(3), set_laws(oracle, 3)[0]),
    "coins": lambda oracle: binomial_law(6, 0.8),
    "cancelling": lambda oracle: 0.7 * np.eye(7)[3] + 0.3 * np.eye(7)[4],
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
    raised = RaisedSet.of(oracle, np.rint(observed).astype(np.int64))
    best, added = raised.fits[0], float((fakes - outsiders) @ np.arange(7)) / (oracle.p - oracle.q)
    assert (best.holders, best.malicious) == pytest.approx((0.3, 0.05), abs=2e-3)
    assert best.raised - best.concealed == pytest.approx(0.05 * added, abs=5e-3)
    assert law == "half" or raised.is_certain == (law != "framed")


@pytest.mark.parametrize(
    "oracle", [OUE(0.5, D), OLH(0.5, D, 3), SUE(0.5, D), SS(0.5, D, 18)], ids=lambda o: o.protocol
)
def test_fit_of_any_mixture_of_numbers_tells_what_users_hold(oracle: FrequencyOracle) -> None:
    """Four of ten items and others by chance, as APA sends, which no single law describes."""
    outsiders, holders = set_laws(oracle, 10)
    fakes = np.array([0, 0, 0, 0, 1547, 4892, 6686, 4935, 1997, 419, 45]) / 20_521
    observed = 400_000 * (0.95 * (0.9 * outsiders + 0.1 * holders) + 0.05 * fakes)
    best = RaisedSet.of(oracle, np.rint(observed).astype(np.int64)).fits[0]
    assert best.holders == pytest.approx(0.1, abs=0.01)
    assert best.malicious == pytest.approx(0.05, abs=0.005)
    assert 0.05 < best.error < 0.1  # of 400,000 reports: a single law would state half of it


@pytest.mark.parametrize("lows", [[4], [4, 5, 6]])
def test_set_that_others_conceal_is_not_certain(lows: list[int]) -> None:
    """Of 24 items honest reports support 9: reports of fewer conceal what others raise."""
    oracle, fakes = OUE(0.5, 102), np.zeros(25)
    fakes[lows], fakes[20:] = 0.09 / len(lows), 0.007
    outsiders, holders = set_laws(oracle, 24)
    observed = 400_000 * (0.875 * (0.9 * outsiders + 0.1 * holders) + fakes)
    assert not RaisedSet.of(oracle, np.rint(observed).astype(np.int64)).is_certain


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_unusual_sizes_are_no_set(epsilon: float) -> None:
    """Reports of random bits support more items of any set."""
    round = play(SUE(epsilon, D), 0.9 ** np.arange(D), 60_000, RPA(), m=3_000)
    sets, _ = found_sets(ReportSource(round.oracle, round.data), round.estimates, sizes_of(round))
    assert sets == []
