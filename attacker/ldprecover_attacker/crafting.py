"""Reports crafted to support chosen items while looking like honest ones (Cao et al., USENIX Security 2021)."""

import math
from typing import Literal

import numpy as np

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ParameterError
from ldprecover._types import Int64Array, Reports, UInt8Array, UInt32Array
from ldprecover_attacker.seed_search import exhaustive_seeds, fullest_buckets, sampled_seeds

__all__ = ["DEFAULT_SEARCH", "MAX_SEARCH", "check_search", "craft"]

DEFAULT_SEARCH = 1_000
MAX_SEARCH = 1_000_000

_CELLS = 1 << 20  # random keys held at once while padding


def check_search(search: object) -> None:
    """Raise ParameterError when `search` is neither a number of seeds nor "exhaustive"."""
    whole = isinstance(search, int | np.integer) and not isinstance(search, bool)
    if search != "exhaustive" and not (whole and 1 <= search <= MAX_SEARCH):  # type: ignore[operator]
        raise ParameterError(
            f'search must be a number of seeds from 1 to {MAX_SEARCH}, or "exhaustive", not {search!r}'
        )


def craft(
    oracle: FrequencyOracle,
    wanted: Int64Array,
    rng: np.random.Generator,
    search: int | Literal["exhaustive"] = DEFAULT_SEARCH,
) -> Reports:
    """Return one report for each row of `wanted`, an (m, r) array of r distinct items to support.

    - GRR: one of the r items, drawn uniformly.
    - OUE: the r items, and a uniformly random set of others up to L = floor(p + (d-1)q) ones, drawn
      afresh for each report; no others when r is L or more.
    - OLH: a seed found by `search` that hashes many of the r items to one bucket, and that bucket. For
      one item every seed is perfect, so it is a random one.
    """
    m, r = wanted.shape
    if isinstance(oracle, OUE):
        return _padded_rows(oracle, wanted, rng)
    if isinstance(oracle, GRR) or (isinstance(oracle, OLH) and r == 1):
        return oracle.encode(wanted[np.arange(m), rng.integers(r, size=m)], rng)
    if isinstance(oracle, OLH):
        items, g = wanted.astype(np.uint32), oracle.hash_range
        seeds = _exhaustive(items, g, rng) if search == "exhaustive" else sampled_seeds(items, g, search, rng)
        return oracle.reports(seeds, fullest_buckets(seeds, items, g, rng))
    raise ParameterError(f"no crafted reports are known for {oracle.protocol}")


def _padded_rows(oracle: OUE, wanted: Int64Array, rng: np.random.Generator) -> UInt8Array:
    (m, r), d = wanted.shape, oracle.domain_size
    ones = max(math.floor(oracle.honest_support_size), r)
    rows = np.empty((m, oracle.row_bytes), dtype=np.uint8)
    step = max(1, _CELLS // d)
    for start in range(0, m, step):
        block = wanted[start : start + step]
        # The places of the smallest of d random keys are a uniformly random set; wanted items go first.
        keys = rng.random((len(block), d))
        np.put_along_axis(keys, block, -1.0, axis=1)
        chosen = np.argpartition(keys, ones - 1, axis=1)[:, :ones]
        bits = np.zeros((len(block), d), dtype=np.uint8)
        np.put_along_axis(bits, chosen, 1, axis=1)
        rows[start : start + step] = np.packbits(bits, axis=1, bitorder="little")
    return rows


def _exhaustive(wanted: UInt32Array, g: int, rng: np.random.Generator) -> UInt32Array:
    """Return a seed for each row, scanning once for each distinct row."""
    seeds = np.empty(len(wanted), dtype=np.uint32)
    rows, group = np.unique(wanted, axis=0, return_inverse=True)
    for i, items in enumerate(rows):
        members = np.flatnonzero(group == i)
        seeds[members] = exhaustive_seeds(items, g, members.size, rng)
    return seeds
