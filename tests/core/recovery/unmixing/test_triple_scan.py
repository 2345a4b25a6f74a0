"""The set of items whose triples stand out, where its pairs look honest."""

import math
from itertools import combinations

import numpy as np
import pytest
from tests.core.recovery.poisoned_round import estimates_of

from ldprecover import OUE
from ldprecover.recovery.reports import ReportSource
from ldprecover.recovery.sample import Sample
from ldprecover.recovery.unmixing.filters import set_search
from ldprecover.recovery.unmixing.filters.report_filters import filter_reports
from ldprecover.recovery.unmixing.filters.set_scans import best_set_of_triples, triple_scores
from ldprecover.recovery.unmixing.prior import Thresholds

D = 40
ORACLE = OUE(0.5, D)
TARGETS = (2, 5, 9, 13, 17, 21, 24, 28, 30, 34, 38)


def packed(bits: np.ndarray) -> np.ndarray:
    return np.packbits(bits, axis=1, bitorder="little")


def camouflaged(n: int, each: int, rng: np.random.Generator) -> np.ndarray:
    """Return reports of honest sizes, each of which supports this many of the targets and no
    more.
    """
    sizes = rng.choice(D + 1, n, p=ORACLE.laws.size_law().probabilities())
    bits = np.zeros((n, D), np.uint8)
    others = np.setdiff1d(np.arange(D), TARGETS)
    for row, size in zip(bits, sizes, strict=True):
        row[rng.choice(TARGETS, each, replace=False)] = 1
        row[rng.choice(others, min(max(size - each, 0), others.size), replace=False)] = 1
    return packed(bits)


def honest(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(
        ORACLE.perturb(rng.choice(D, n, p=np.arange(1.0, D + 1) / (D * (D + 1) / 2)), rng)
    )


def test_honest_triples_are_noise_of_deviation_one() -> None:
    """9,880 triples, nearly independent: their deviation is within 4 % of 1 but once in 10^8, and
    none beyond 6.5.
    """
    rng = np.random.default_rng(2)
    rows = honest(60_000, rng)
    triples = Sample(ORACLE, rows).triple_counts(np.arange(D))
    scores = triple_scores(triples, ORACLE.p, ORACLE.q)
    values = scores[tuple(np.array(list(combinations(range(D), 3))).T)]
    assert values.std() == pytest.approx(1, abs=0.04)
    assert np.abs(values).max() < 6.5
    assert max(best_set_of_triples(scores)[1], best_set_of_triples(-scores)[1]) < 12


def test_attack_whose_pairs_cancel_is_dropped_by_triples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Six of eleven targets in each report: a pair by 30 in 110 of the malicious ones, which is
    near q twice.
    """
    rng = np.random.default_rng(3)
    rows = np.concatenate([honest(120_000, rng), camouflaged(6_000, 6, rng)])
    with monkeypatch.context() as patch:
        patch.setattr(set_search, "THRESHOLDS", Thresholds(triple_items=3))  # too few for a set
        assert not filter_reports(ReportSource(ORACLE, rows)).dropped
    result = filter_reports(ReportSource(ORACLE, rows))
    assert tuple(result.suspects) == TARGETS
    truth = np.arange(1.0, D + 1) / (D * (D + 1) / 2)
    plain = estimates_of(ORACLE, rows)
    targets = list(TARGETS)
    # 0.05 (6/11 - q)/(p - q) each: 0.75 in all.
    assert (plain - truth)[targets].sum() > 0.6
    # What is left is noise, of standard deviation sd each: 5 of them for the sum, once in 3e6.
    assert (
        abs((result.z - truth)[targets].sum())
        < 5 * math.sqrt(float((result.sd[targets] ** 2).sum())) + 0.03
    )
