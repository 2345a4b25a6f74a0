"""The post-processings, derived again from their definitions, and mle by a solver."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ParameterError, RecoveryRequest, recover

D, N = 12, 1000
ORACLE = OUE(0.5, D)


def processed(variant: str, f: np.ndarray, **options: float) -> np.ndarray:
    request = RecoveryRequest("norm", options={"variant": variant, **options})
    return recover(ORACLE, f, request, n=N).recovered


def add(f: list[float]) -> list[float]:
    """Wang et al. (NDSS 2020): add delta so that the sum is 1."""
    delta = (1 - sum(f)) / len(f)
    return [x + delta for x in f]


def mul(f: list[float]) -> list[float]:
    """Negative estimates to 0, a factor gamma so that the sum is 1."""
    positive = [max(x, 0.0) for x in f]
    return [x / sum(positive) for x in positive]


def cut(f: list[float]) -> list[float]:
    """Negative to 0; from the largest down until the total passes 1; the rest 0."""
    result, total = [0.0] * len(f), 0.0
    for v in sorted(range(len(f)), key=lambda v: -f[v]):
        if total >= 1 or f[v] <= 0:
            break
        result[v] = f[v]
        total += f[v]
    return result


def base_cut(f: list[float], alpha: float = 2) -> list[float]:
    """0 below T = Phi^-1(1 - alpha/d) sqrt(q(1-q)/n)/(p-q)."""
    p, q = ORACLE.p, ORACLE.q
    t = stats.norm.isf(alpha / len(f)) * np.sqrt(q * (1 - q) / N) / (p - q)
    return [x if x >= t else 0.0 for x in f]


def normalization(f: list[float]) -> list[float]:
    """(f - min)/sum(f - min) (Cao et al.)."""
    least = min(f)
    return [(x - least) / sum(y - least for y in f) for x in f]


def rsn(f: list[float]) -> list[float]:
    """Shift to sum 1; while one is negative, zero those, and take as much evenly from those in (0,
    3 sigma_0).
    """
    p, q = ORACLE.p, ORACLE.q
    small = 3 * np.sqrt(q * (1 - q) / N) / (p - q)
    values = add(f)
    while any(x < 0 for x in values):
        excess = -sum(x for x in values if x < 0)
        values = [max(x, 0.0) for x in values]
        segment = [v for v, x in enumerate(values) if 0 < x < small]
        if not segment:
            break
        for v in segment:
            values[v] -= excess / len(segment)
    return [x / sum(values) for x in values]


@pytest.mark.parametrize(
    "definition", [add, mul, cut, base_cut, normalization, rsn], ids=lambda f: f.__name__
)
@given(
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([0.01, 0.1, 1]),
    mean=st.sampled_from([-0.1, 0, 1 / D, 0.5]),
)
def test_post_processing_is_its_definition(
    definition: Callable[[list[float]], list[float]], seed: int, scale: float, mean: float
) -> None:
    """On random vectors: without ties, which rounding would break."""
    f = np.random.default_rng(seed).normal(mean, scale, D)
    f[0] = abs(f[0]) + 1e-3  # one is positive
    name = definition.__name__.replace("_", "-")
    np.testing.assert_allclose(processed(name, f), definition(f.tolist()), rtol=0, atol=1e-9)


def test_equal_estimates_stay_or_go_together_in_norm_cut() -> None:
    f = np.zeros(D)
    f[:4] = 0.4
    assert processed("cut", f).tolist() == f.tolist()


def test_equal_estimates_become_uniform() -> None:
    assert processed("normalization", np.full(D, -0.3)) == pytest.approx(np.full(D, 1 / D))


def test_nothing_positive_is_nothing_to_scale() -> None:
    with pytest.raises(ParameterError, match="norm: no estimate is positive"):
        processed("mul", np.full(D, -0.1))
    assert not processed("cut", np.full(D, -0.1)).any()


def test_alpha_is_the_noise_that_base_cut_allows() -> None:
    """Alpha items of frequency 0 are expected to stay: fewer where alpha is smaller."""
    f = np.linspace(-1, 1, D)
    remaining = [
        np.count_nonzero(processed("base-cut", f, alpha=alpha)) for alpha in (0.001, 2.0, 11.0)
    ]
    assert remaining == sorted(remaining)
    assert processed("base-cut", f, alpha=0.5) == pytest.approx(base_cut(f.tolist(), 0.5))
    # Half the items of frequency 0 are negative, and go for any alpha.
    for alpha in (6.0, 12.0, 100.0):
        assert processed("base-cut", f, alpha=alpha).tolist() == np.maximum(f, 0).tolist()


@pytest.mark.parametrize("d", [2, 3, 4])
def test_base_cut_takes_only_negative_estimates_of_few_items(d: int) -> None:
    f = np.linspace(-0.01, 0.6, d)
    request = RecoveryRequest("norm", options={"variant": "base-cut"})
    assert recover(GRR(1, d), f, request, n=10).recovered.tolist() == np.maximum(f, 0).tolist()


@pytest.mark.parametrize("variant", ["base-cut", "rsn"])
def test_noise_needs_the_number_of_reports(variant: str) -> None:
    request = RecoveryRequest("norm", options={"variant": variant})
    with pytest.raises(ParameterError, match=f"number of reports for the variant {variant}"):
        recover(ORACLE, np.full(D, 1 / D), request)


@pytest.mark.parametrize("variant", ["add", "mul", "cut", "normalization", "rsn"])
def test_huge_estimates_never_overflow(variant: str) -> None:
    f = np.zeros(D)
    f[:3] = 1.7e308, 1.7e308, -1.7e308
    try:
        result = processed(variant, f)
    except ParameterError:
        return
    assert np.isfinite(result).all()


@pytest.mark.parametrize(
    "oracle", [GRR(0.5, 5), OUE(0.5, 5), OLH(0.5, 5, 3)], ids=lambda o: o.protocol
)
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_no_solver_finds_more_likely_frequencies(oracle: FrequencyOracle, seed: int) -> None:
    """SLSQP over the simplex, on the log-likelihood as it is written."""
    rng = np.random.default_rng(seed)
    reports = oracle.perturb(rng.choice(5, 400, p=rng.dirichlet(np.ones(5))), rng)
    c = oracle.support_counts(reports) / 400
    p, q = oracle.p, oracle.q

    def cost(f: np.ndarray) -> float:
        s = np.clip(q + (p - q) * f, 1e-12, 1 - 1e-12)
        return -float(
            (c * np.log(s) + (0 if oracle.protocol == "grr" else (1 - c) * np.log(1 - s))).sum()
        )

    own = recover(oracle, oracle.estimate(c * 400, 400), "mle").recovered
    solved = minimize(
        cost,
        np.full(5, 0.2),
        bounds=[(0, 1)] * 5,
        constraints={"type": "eq", "fun": lambda f: f.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert cost(own) <= solved.fun + 1e-9
