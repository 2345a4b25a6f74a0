"""Regions of frequencies beside linear programmes, and limits of one frequency by exact tails."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog

from ldprecover import frequency_oracle
from ldprecover.certificate.region import Region, frequency_limits


@pytest.mark.parametrize("seed", range(20))
def test_limits_are_those_of_the_linear_programme(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(2, 9)), seed % 3
    truth = rng.dirichlet(np.full(d, 0.4))
    lower, upper = (
        truth + sign * (rng.exponential(0.1, d) * rng.integers(0, 2, d) - 0.004 * (seed % 5 == 1))
        for sign in (-1, 1)
    )
    rows = rng.random((k, d))
    ends = rows @ truth + 0.05 * rng.exponential(1, k) - 0.05 * (seed % 4)
    bounds = np.stack([np.maximum(lower, 0), np.minimum(upper, 1)], axis=1)

    def largest(weights: np.ndarray) -> float:
        limits = {"A_ub": rows, "b_ub": ends} if k else {}
        result = linprog(-weights, **limits, A_eq=np.ones((1, d)), b_eq=[1], bounds=bounds)
        return math.nan if result.status == 2 else -result.fun

    box = Region.of(lower, upper)
    if (lower > upper).any() or math.isnan(largest(np.zeros(d))):
        assert box is None or not replace(box, rows=rows, ends=ends).is_possible
        return
    assert box is not None
    region = replace(box, rows=rows, ends=ends)
    assert region.is_possible
    for weights in (*np.eye(d), rng.integers(0, 2, d), rng.normal(size=d)):
        expected = -largest(-weights), largest(weights)
        assert region.limits(weights) == pytest.approx(expected, abs=1e-8)
    if not k:
        ends = np.array([region.limits(each) for each in np.eye(d)])
        np.testing.assert_allclose(ends, np.column_stack([box.lower, box.upper]), atol=1e-9)
    first, *others = rng.permutation(d)
    weights = np.isin(np.arange(d), others) - 1.0 * (np.arange(d) == first)
    assert region.total(others, (first,)) == region.limits(weights)
    assert region.total(others, others) == (0.0, 0.0)


def test_failing_solver_leaves_the_limits_of_the_box(monkeypatch: pytest.MonkeyPatch) -> None:
    box = Region.of(np.zeros(3), np.array([0.5, 0.5, 0.5]))
    assert box is not None
    region = replace(box, rows=np.array([[1.0, 0.0, 0.0]]), ends=np.array([0.1]))
    assert region.limits(np.eye(3)[0]) == pytest.approx((0, 0.1))
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: SimpleNamespace(status=4))
    assert region.limits(np.eye(3)[0]) == (0.0, 0.5)
    assert region.is_possible


@pytest.mark.parametrize("event", [0, 1])
@pytest.mark.parametrize("shares", [[1.0] * 3 + [0.0] * 297, [0.65] * 300, [1.0] * 299 + [0.0]])
def test_limits_miss_with_their_error(event: int, shares: list[float]) -> None:
    """Users hold the item with these probabilities: at all their reports' counts, enumerated.

    As large an error as 0.3 and as small a one as 1e-12, where Chernoff's exponent is within a
    third of the exact one. Malicious reports only add to either count.
    """
    oracle, n = frequency_oracle("grr", 1.0, 2), len(shares)
    law = np.ones(1)
    for share in shares:
        p = oracle.q + share * (oracle.p - oracle.q)
        law = np.convolve(law, [1 - p, p])
    counts = np.arange(n + 1.0)
    for log_tail in (-math.log(0.3), -math.log(1e-12)):
        limits = frequency_limits(oracle, counts, n - counts, n, log_tail)
        missed = (limits[0] > np.mean(shares), limits[1] < np.mean(shares))[event]
        exponent = -math.log(law[missed].sum())
        assert log_tail <= exponent
        assert exponent <= 1.4 * log_tail + 3 or len(set(shares)) > 1
    more = frequency_limits(oracle, counts + 5, n - counts + 7, n, log_tail)
    assert (more[0] <= limits[0]).all()
    assert (more[1] >= limits[1]).all()
