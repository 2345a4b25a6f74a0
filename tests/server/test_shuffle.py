"""Random orders have every row once, and every row anywhere."""

from typing import Any

import numpy as np
import pytest

from ldprecover_server.shuffle import permutation, shuffled


@pytest.mark.parametrize("n", [0, 1, 2, 16, 512, 513, 10_000])
def test_a_permutation_has_every_number_once(n: int) -> None:
    assert np.array_equal(np.sort(permutation(n)), np.arange(n))


@pytest.mark.parametrize("n", [16, 600])
def test_every_number_may_come_first_and_no_permutation_comes_twice(n: int) -> None:
    """Pearson's statistic of the first of 40 n; above its mean by 6 standard deviations and 12 once in 10^7."""
    drawn = [permutation(n) for _ in range(40 * n)]
    counts = np.bincount([int(order[0]) for order in drawn], minlength=n)
    statistic = float(((counts - 40) ** 2 / 40).sum())
    assert statistic < (n - 1) + 6 * np.sqrt(2 * (n - 1)) + 12
    assert len({order.tobytes() for order in drawn}) == len(drawn)


_ROWS = {
    "numbers": np.dtype("<u4"),
    "pairs": np.dtype([("seed", "<u4"), ("bucket", "<u2")]),
}


@pytest.mark.parametrize("n", [0, 1, 2, 16, 512, 513, 9_999, 10_000])
@pytest.mark.parametrize("dtype", _ROWS.values(), ids=_ROWS)
def test_shuffled_rows_are_the_rows(n: int, dtype: np.dtype[Any]) -> None:
    rows = np.frombuffer(np.random.default_rng(1).bytes(n * dtype.itemsize), dtype=dtype)
    assert sorted(shuffled(rows).tolist()) == sorted(rows.tolist())


def test_shuffled_rows_of_several_bytes_stay_whole() -> None:
    rows = np.arange(4_000, dtype=np.uint8).reshape(1_000, 4)
    assert sorted(map(bytes, shuffled(rows))) == sorted(map(bytes, rows))


def test_every_number_may_come_first_of_many() -> None:
    """Pearson's statistic as above, of numbers that are shuffled themselves."""
    n = 600
    rows = np.arange(n, dtype="<u4")
    drawn = [shuffled(rows) for _ in range(40 * n)]
    for place in (0, n - 1):
        counts = np.bincount([int(order[place]) for order in drawn], minlength=n)
        statistic = float(((counts - 40) ** 2 / 40).sum())
        assert statistic < (n - 1) + 6 * np.sqrt(2 * (n - 1)) + 12
