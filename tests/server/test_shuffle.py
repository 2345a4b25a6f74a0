"""Random orders have every row once, and every row anywhere."""

from typing import Any

import numpy as np
import pytest

from ldprecover_server.shuffle import permutation, shuffled


@pytest.mark.parametrize("n", [0, 1, 2, 16, 512, 513, 10_000])
def test_a_permutation_has_every_number_once(n: int) -> None:
    assert np.array_equal(np.sort(permutation(n)), np.arange(n))


@pytest.mark.parametrize("n", [16, 600])
def test_permutations_vary_and_any_number_may_be_first(n: int) -> None:
    """Pearson's statistic of the first of 40 n; above its mean by 6 standard deviations and 12 once
    in 10^7.
    """
    permutations = [permutation(n) for _ in range(40 * n)]
    counts = np.bincount([int(order[0]) for order in permutations], minlength=n)
    statistic = float(((counts - 40) ** 2 / 40).sum())
    assert statistic < (n - 1) + 6 * np.sqrt(2 * (n - 1)) + 12
    assert len({order.tobytes() for order in permutations}) == len(permutations)


_ROWS = {
    "numbers": np.dtype("<u4"),
    "pairs": np.dtype([("seed", "<u4"), ("bucket", "<u2")]),
}


def shuffled_rows(*pieces: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.frombuffer(shuffled(pieces), pieces[0].dtype).reshape(-1, *pieces[0].shape[1:])


def as_numbers(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    digits = rows.view(np.uint8).reshape(len(rows), rows.dtype.itemsize).astype(np.uint64)
    return digits @ (np.uint64(256) ** np.arange(rows.dtype.itemsize, dtype=np.uint64))


@pytest.mark.parametrize("n", [0, 1, 2, 16, 512, 513, 9_999, 10_000, 600_000])
@pytest.mark.parametrize("dtype", _ROWS.values(), ids=_ROWS)
def test_shuffled_rows_are_the_rows(n: int, dtype: np.dtype[Any]) -> None:
    rows = np.frombuffer(np.random.default_rng(1).bytes(n * dtype.itemsize), dtype=dtype)
    for pieces in ([rows], [rows[: n // 3], rows[n // 3 :]], [rows[::2], rows[1::2], rows[:0]]):
        assert np.array_equal(
            np.sort(as_numbers(shuffled_rows(*pieces))), np.sort(as_numbers(rows))
        )


def test_shuffled_rows_of_several_bytes_stay_whole() -> None:
    rows = np.arange(4_000, dtype=np.uint8).reshape(1_000, 4)
    assert sorted(map(bytes, shuffled_rows(rows[:10], rows[10:]))) == sorted(map(bytes, rows))


@pytest.mark.parametrize("dtype", _ROWS.values(), ids=_ROWS)
def test_every_row_may_come_first_of_many(dtype: np.dtype[Any]) -> None:
    """Pearson's statistic as above, of rows that are shuffled themselves."""
    n = 600
    rows = np.zeros(n, dtype)
    numbers = rows[dtype.names[0]] if dtype.names else rows
    numbers[:] = np.arange(n)
    permutations = [shuffled_rows(rows[:200], rows[200:]) for _ in range(40 * n)]
    for place in (0, n - 1):
        counts = np.bincount(
            [
                int(order[place][dtype.names[0]] if dtype.names else order[place])
                for order in permutations
            ]
        )
        statistic = float(((counts - 40) ** 2 / 40).sum())
        assert statistic < (n - 1) + 6 * np.sqrt(2 * (n - 1)) + 12
