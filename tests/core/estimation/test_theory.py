"""How far attacks can move sums of estimates."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.core.protocols.listed import listed

from ldprecover import GRR, ParameterError, frequency_oracle
from ldprecover.estimation.theory import worst_change
from ldprecover.protocols import PROTOCOLS


@pytest.mark.parametrize("items", [1, 2, 4, 5])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_worst_change_is_of_the_extreme_reports(protocol: str, items: int) -> None:
    """Of all reports and all sets of this many of five items; HR and LLH support no fewer."""
    own, beta = {"ss": 3, "olh": 3, "llh": 3}.get(protocol), 0.1
    oracle = frequency_oracle(protocol, 1.0, 5, own)
    supports, _ = listed(oracle)
    hits = np.array([supports[:, each].sum(axis=1) for each in combinations(range(5), items)])
    changes = beta * ((hits - items * oracle.q) / (oracle.p - oracle.q) - 0.3)
    worst = worst_change(oracle, beta, items, 0.3)
    assert worst.rise == pytest.approx(changes.max())
    is_bound = protocol in ("hr", "llh") and items > 3
    assert worst.fall >= -changes.min() if is_bound else worst.fall == pytest.approx(-changes.min())
    anywhere = worst_change(oracle, beta, items)
    assert anywhere.rise == pytest.approx(worst.rise + 0.03)
    assert anywhere.fall == pytest.approx(worst.fall + 0.07)


@pytest.mark.parametrize(
    "arguments",
    [
        (-0.1, 1),
        (1.1, 1),
        (0.1, 0),
        (0.1, 13),
        (0.1, True),
        (0.1, 1.5),
        (0.1, 1, 2.0),
        (0.1, 1, -1.0),
    ],
)
def test_worst_change_rejects_bad_arguments(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ParameterError):
        worst_change(GRR(1.0, 12), *arguments)


@pytest.mark.parametrize(
    ("protocol", "printed"), [("grr", 5.92e-4), ("oue", 3.82e-5), ("olh", 3.86e-5)]
)
def test_lemma_2_gives_the_errors_of_the_papers_setting(protocol: str, printed: float) -> None:
    """The mean of the variances over the items, to three digits. No chance in it."""
    f = np.arange(1.0, 103) ** -1.02
    variance = frequency_oracle(protocol, 0.5, 102).variance(f / f.sum(), 410_415)
    assert float(f"{variance.mean():.2e}") == printed
