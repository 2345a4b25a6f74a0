"""Data sets that are formulas: their size, their users, their concentration."""

import pytest

from ldprecover_experiments import dataset_of
from ldprecover_experiments.studies.cells import load_genuine_users


@pytest.mark.parametrize(
    ("name", "items", "users", "squares", "unheld"),
    [
        ("ipums-like", 102, 389_894, 0.064, 0),
        ("fire-like", 490, 667_574, 0.0198, 163),
        ("zipf", 1024, 1_000_000, 0.18488, 0),
        ("bump", 300, 150_000, 0.00698, 135),
        ("geometric", 57, 100_000, 0.05289, 0),
    ],
)
def test_synthetic_data_has_its_items_users_and_concentration(
    name: str, items: int, users: int, squares: float, unheld: int
) -> None:
    genuine_users = load_genuine_users(name)
    assert (genuine_users.name, len(genuine_users.items), genuine_users.n) == (name, items, users)
    assert (genuine_users.frequencies**2).sum() == pytest.approx(squares, rel=1e-3)
    assert (genuine_users.counts == 0).sum() == unheld


def test_zipf_falls_with_the_rank_to_the_power_of_three_halves() -> None:
    counts = dataset_of("zipf").counts
    assert counts[0] / counts[99] == pytest.approx(100**1.5, rel=1 / counts[99])


def test_bump_has_two_modes() -> None:
    f = dataset_of("bump").frequencies
    assert f.argmax() == 75
    assert f[75] > f[200] > 2 * f[130:150].min()


def test_number_of_users_can_be_chosen() -> None:
    assert load_genuine_users("zipf", users=5_000).n == 5_000
