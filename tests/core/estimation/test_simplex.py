"""The projection on the probability simplex, against exact arithmetic and its conditions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ldprecover import ParameterError, project_simplex

VECTORS = st.lists(st.floats(-10, 10), min_size=1, max_size=40)
WILD = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40)


def exact_projection(x: list[float]) -> list[Fraction]:
    """Return the projection in rational arithmetic: tau is the greatest of the (x_(1) + ... + x_(k)
    - 1)/k.
    """
    values = [Fraction(v) for v in x]
    total, taus = Fraction(0), []
    for k, value in enumerate(sorted(values, reverse=True), start=1):
        total += value
        taus.append((total - 1) / k)
    return [max(value - max(taus), Fraction(0)) for value in values]


@given(x=VECTORS)
@example(x=[0.3, 0.3, 0.3])
@example(x=[1.0, 0.0])
@example(x=[0.5, 0.5, -1e-17])
def test_equals_the_projection_in_exact_arithmetic(x: list[float]) -> None:
    np.testing.assert_allclose(
        project_simplex(x), np.array(exact_projection(x), float), rtol=0, atol=1e-14
    )


@given(x=WILD)
@example(x=[1.7e308, -1.7e308])
@example(x=[1.7e308] * 40)
@example(x=[5e-324, 0.0])
def test_any_finite_vector_gives_a_distribution(x: list[float]) -> None:
    y = project_simplex(x)
    assert (y >= 0).all()
    assert y.sum() == pytest.approx(1, abs=1e-13)
    # Larger entries never get less.
    order = np.argsort(x)
    assert (np.diff(y[order]) >= 0).all()


def test_hundred_thousand_items_keep_their_digits(rng: np.random.Generator) -> None:
    """The optimality conditions: one tau is x - y wherever y is positive, and x <= tau
    elsewhere.
    """
    for scale in (1e-9, 1e-5, 1.0, 1e12):
        x = rng.normal(scale=scale, size=100_000)
        y = project_simplex(x)
        positive = y > 0
        tau = (x - y)[positive].mean()
        ulp = np.spacing(max(scale * 5, 1.0))
        assert y.sum() == pytest.approx(1, abs=1e-11)
        assert np.abs((x - y)[positive] - tau).max() <= 4 * ulp
        assert (x[~positive] <= tau + 4 * ulp).all()


def test_one_large_item_among_many_costs_no_digits(rng: np.random.Generator) -> None:
    """All are positive; their running sum below the maximum is -90,000, and would lose 1e-10."""
    x = np.concatenate([[0.9], rng.uniform(0, 1e-7, 99_999)])
    y = project_simplex(x)
    assert (y > 0).all()
    assert y.sum() == pytest.approx(1, abs=1e-13)
    np.testing.assert_allclose(y - y[1], x - x[1], rtol=0, atol=2e-16)


@pytest.mark.parametrize(
    "x",
    [
        [],
        [[1.0, 2.0]],
        3.0,
        [np.nan, 1.0],
        [np.inf, 1.0],
        [1.0, -np.inf],
        ["a"],
        [None],
        [1 + 1j],
        [[1], [1, 2]],
    ],
)
def test_rejects_what_is_not_a_finite_vector(x: object) -> None:
    with pytest.raises(ParameterError, match="x must be"):
        project_simplex(x)  # type: ignore[arg-type]
