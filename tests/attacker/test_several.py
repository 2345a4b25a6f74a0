"""Malicious users shared among attackers."""

import numpy as np
import pytest
from tests.randomness import rng

from ldprecover import GRR, ParameterError
from ldprecover_attacker import AA, MGA, InputPoisoning, Manip, Several


def test_each_attacker_draws_its_own_secret() -> None:
    """Five attackers with a single item each, five seeds: five times the same item has probability
    102^-4 a seed.
    """
    sent = [
        np.unique(Several([AA("peaked", 1)] * 5).reports(GRR(1.0, 102), 500, rng(s))).size
        for s in range(5)
    ]
    assert min(sent) >= 2
    assert max(sent) <= 5


def test_resolving_reaches_every_attacker() -> None:
    several = Several([MGA(["b"]), InputPoisoning(MGA(["c"])), Manip()])
    assert several.resolve(["a", "b", "c"]) == Several(
        [MGA([1]), InputPoisoning(MGA([2])), Manip(2)]
    )


@pytest.mark.parametrize("attacks", [[], [AA(), "mga"]])
def test_rejects_invalid_attackers(attacks: list[object]) -> None:
    with pytest.raises(ParameterError, match="at least one attack"):
        Several(attacks)  # type: ignore[arg-type]
