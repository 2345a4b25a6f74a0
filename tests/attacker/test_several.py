"""Malicious users shared among attackers."""

import numpy as np
import pytest

from ldprecover import GRR, ParameterError
from ldprecover_attacker import AA, MGA, RPA, InputPoisoning, Manip, Several


def rng(seed: int = 6) -> np.random.Generator:
    return np.random.default_rng(seed)


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


def test_users_are_shared_out_as_the_shares_say() -> None:
    """30,000 users, shares of 1 and 5: a sixth sends item 0, and of the first half as well, to 6 sd
    (4e-9). The support is weighted as well.
    """
    m = 30_000
    mixed = Several([MGA([0]), MGA([1])], [1, 5])
    reports = mixed.reports(GRR(1.0, 3), m, rng())
    for users in (reports, reports[: m // 2]):
        counts, n = np.bincount(users, minlength=3), len(users)
        assert counts[0] + counts[1] == n
        assert abs(counts[0] - n / 6) <= 6 * (n * 5 / 36) ** 0.5
    assert mixed.support(GRR(1.0, 3), rng()).tolist() == pytest.approx([1 / 6, 5 / 6, 0])


@pytest.mark.parametrize(
    "shares", [[1], [1, 0], [1, -1], [1, float("nan")], [1, float("inf")], [1, 1, 1], ["1", "2"]]
)
def test_rejects_invalid_shares(shares: list[float]) -> None:
    with pytest.raises(ParameterError, match="shares must be"):
        Several([AA(), RPA()], shares)
