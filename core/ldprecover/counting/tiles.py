"""Blocks of the rows of a matrix that is never held whole."""

from collections.abc import Iterator

# Cells of a block: its intermediate arrays stay in the second-level cache.
_CELLS = 1 << 16


def tiles(shape: tuple[int, int], cells: int = _CELLS) -> Iterator[slice]:
    """Yield slices of the rows of a matrix of this shape, each of one row or at most `cells`."""
    n, width = shape
    step = max(1, cells // max(1, width))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))
