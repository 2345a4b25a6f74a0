"""Reports crafted to support chosen items while looking like honest ones (Cao et al., USENIX Security 2021)."""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ParameterError
from ldprecover.types import FloatArray, Int64Array, Reports, UInt8Array, UInt32Array
from ldprecover_attacker.seed_law import exhaustive_hits, most_hits_law
from ldprecover_attacker.seed_search import exhaustive_seeds, fullest_buckets, sampled_seeds

__all__ = [
    "DEFAULT_SEARCH",
    "MAX_SEARCH",
    "check_search",
    "craft",
    "expected_hits",
    "expected_size",
    "lowest_keys",
    "padded_rows",
    "unknown_protocol",
    "wanted_support",
]

DEFAULT_SEARCH = 1_000
MAX_SEARCH = 1_000_000

_CELLS = 1 << 20  # random keys held at once while padding


def check_search(search: object, *, exhaustive: bool = True) -> None:
    """Raise ParameterError when `search` is neither a number of seeds nor, where that is known, "exhaustive"."""
    whole = isinstance(search, int | np.integer) and not isinstance(search, bool)
    if not (exhaustive and search == "exhaustive") and not (whole and 1 <= search <= MAX_SEARCH):  # type: ignore[operator]
        also = ', or "exhaustive"' if exhaustive else ""
        raise ParameterError(f"search must be a number of seeds from 1 to {MAX_SEARCH}{also}, not {search!r}")


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
        return padded_rows(oracle, wanted, np.full(m, max(expected_size(oracle), r)), rng)
    if isinstance(oracle, GRR) or (isinstance(oracle, OLH) and r == 1):
        return oracle.encode(wanted[np.arange(m), rng.integers(r, size=m)], rng)
    if isinstance(oracle, OLH):
        items, g = wanted.astype(np.uint32), oracle.hash_range
        seeds = _exhaustive(items, g, rng) if search == "exhaustive" else sampled_seeds(items, g, search, rng)
        return oracle.reports(seeds, fullest_buckets(seeds, items, g, rng))
    raise unknown_protocol(oracle)


def expected_hits(
    oracle: FrequencyOracle, r: int, search: int | Literal["exhaustive"] = DEFAULT_SEARCH, m: int = 1
) -> tuple[float, float]:
    """Return how many of its r wanted items, and of the others, a report of `craft` supports on average.

    For OLH under an ideal hash. The hits of an exhaustive search fall when m exceeds the perfect seeds.
    """
    d = oracle.domain_size
    if isinstance(oracle, OUE):
        return float(r), float(max(expected_size(oracle) - r, 0))
    if isinstance(oracle, GRR):
        return 1.0, 0.0
    if isinstance(oracle, OLH):
        others = (d - r) * oracle.q
        if r == 1:
            return 1.0, others
        if search == "exhaustive":
            return exhaustive_hits(r, oracle.hash_range, m), others
        return float(most_hits_law(r, oracle.hash_range, int(search)) @ np.arange(r + 1)), others
    raise unknown_protocol(oracle)


def wanted_support(included: FloatArray, size: int, hits: float, others: float) -> FloatArray:
    """Return pi for reports that each want a set W of `size` items.

    `included` is w(v) = P(v in W). Of the wanted items a report supports `hits` on average, of the
    others `others`, each alike: pi(v) = w(v) hits/|W| + (1 - w(v)) others/(d - |W|).
    """
    d = included.size
    return included * (hits / size) + (1 - included) * (others / max(d - size, 1))


def expected_size(oracle: FrequencyOracle) -> int:
    """Return L = floor(p + (d-1)q), the items that an honest report supports on average, in whole items."""
    return math.floor(oracle.honest_support_size)


def unknown_protocol(oracle: FrequencyOracle) -> ParameterError:
    """Return the refusal of a protocol that crafting knows nothing of."""
    return ParameterError(f"no crafted reports are known for {oracle.protocol}")


def padded_rows(oracle: OUE, wanted: Int64Array, sizes: Int64Array, rng: np.random.Generator) -> UInt8Array:
    """Return OUE reports with as many ones as `sizes` (m,) says: the wanted items (m, r) first, then random others.

    Where a size is below r, the ones are a random subset of the wanted items.
    """

    def wanted_first(keys: FloatArray, users: Int64Array) -> None:
        rows = wanted[users]
        np.put_along_axis(keys, rows, np.take_along_axis(keys, rows, axis=1) - 1.0, axis=1)

    return lowest_keys(oracle, sizes, rng, wanted_first)


def lowest_keys(
    oracle: OUE,
    sizes: Int64Array,
    rng: np.random.Generator,
    change: Callable[[FloatArray, Int64Array], None],
) -> UInt8Array:
    """Return OUE reports whose ones are the places of the `sizes[i]` lowest of d keys.

    Keys are random from [0, 1), so that their lowest are a uniformly random set; `change(keys, users)`
    may move some of those users' keys, in place, so that they come first or last.
    """
    d = oracle.domain_size
    rows = np.empty((len(sizes), oracle.row_bytes), dtype=np.uint8)
    step = max(1, _CELLS // d)
    order = np.argsort(sizes, kind="stable")
    ends = np.flatnonzero(np.diff(sizes[order])) + 1
    for alike in np.split(order, ends):
        for start in range(0, len(alike), step):
            users = alike[start : start + step]
            ones = int(sizes[users[0]])
            keys = rng.random((len(users), d))
            change(keys, users)
            bits = np.zeros((len(users), d), dtype=np.uint8)
            if ones:
                np.put_along_axis(bits, np.argpartition(keys, ones - 1, axis=1)[:, :ones], 1, axis=1)
            rows[users] = np.packbits(bits, axis=1, bitorder="little")
    return rows


def _exhaustive(wanted: UInt32Array, g: int, rng: np.random.Generator) -> UInt32Array:
    """Return a seed for each row, scanning once for each distinct row."""
    seeds = np.empty(len(wanted), dtype=np.uint32)
    rows, group = np.unique(wanted, axis=0, return_inverse=True)
    for i, items in enumerate(rows):
        members = np.flatnonzero(group == i)
        seeds[members] = exhaustive_seeds(items, g, members.size, rng)
    return seeds
