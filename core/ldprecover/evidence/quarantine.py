"""Reports that no honest user sends, which a round may set aside: of impossible sizes, and of seeds
that recur.

Both rules have a stated probability of hitting honest reports: below 10^-9 for a report by its
size, and for a whole round by its seeds.
"""

import secrets
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.items import items_in_words
from ldprecover.laws.distributions import binomial_threshold
from ldprecover.protocols import FrequencyOracle
from ldprecover.types import BoolArray, Int64Array, Reports, UInt32Array

IMPOSSIBLE = 1e-9
"""Probability below which something is taken for impossible."""

_SEEDS = 1 << 32
_MOST = 1 << 63
_LEAST_BITS, _MOST_BITS = 10, 26  # of the bins' number: 64 MiB at the most
_FULL = 255  # what a bin counts up to; no threshold is above


@dataclass(frozen=True)
class Quarantined:
    """How many reports of a round were set aside for their size, and for their seed: None while
    that is not known.

    Raises ParameterError for numbers that are not from 0.
    """

    sizes: int
    seeds: int | None

    def __post_init__(self) -> None:
        for number in (self.sizes, 0 if self.seeds is None else self.seeds):
            if type(number) is not int or not 0 <= number < _MOST:
                raise ParameterError("the numbers of quarantined reports must be integers from 0")

    def __add__(self, other: "Quarantined") -> "Quarantined":
        """Return both together; of the seeds nothing is known where it is not known of both."""
        unknown = self.seeds is None or other.seeds is None
        return Quarantined(
            self.sizes + other.sizes, None if unknown else (self.seeds or 0) + (other.seeds or 0)
        )


def unfit(oracle: FrequencyOracle) -> str | None:
    """Return why no report of a protocol can be set aside, None where some can."""
    if judges_seeds(oracle):
        return None
    if oracle.fixed_size is not None:
        return (
            f"every {oracle.protocol} report supports {items_in_words(oracle.fixed_size)}, so "
            "no size is impossible"
        )
    try:
        sizes = impossible_sizes(oracle)
    except ParameterError as error:
        return str(error)
    return (
        None
        if sizes.any()
        else f"of {oracle.domain_size} items an honest report may support any number"
    )


def judges_seeds(oracle: FrequencyOracle) -> bool:
    """Tell whether reports carry hash seeds of which honest ones have each about equally often."""
    return oracle.traits.seeded


@lru_cache(maxsize=256)
def impossible_sizes(oracle: FrequencyOracle) -> BoolArray:
    """Return, for k = 0..d, whether a report that supports k items is impossible.

    An honest report is of any of the impossible sizes together with a probability below 10^-9,
    whatever item its user holds: they are the least probable ones. Raises ParameterError where the
    protocol has no law of sizes.
    """
    law = oracle.laws.size_law().probabilities()
    order = np.argsort(law, kind="stable")
    impossible = np.zeros(law.size, np.bool_)
    impossible[order] = np.cumsum(law[order]) < IMPOSSIBLE
    impossible.flags.writeable = False
    return impossible


def split_by_size(oracle: FrequencyOracle, reports: Reports) -> tuple[BoolArray, Tally]:
    """Return which of checked reports support an impossible number of items, and the tally of the
    others.

    It takes hardly longer than counting them. Raises ParameterError as `impossible_sizes` does.
    """
    impossible = impossible_sizes(oracle)
    if not impossible.any():
        return np.zeros(len(reports), np.bool_), Tally.of(oracle, reports)
    summary, sizes = oracle.summarise_with_sizes(reports)
    bad: BoolArray = impossible[sizes]
    everything = Tally(summary, len(reports))
    return bad, everything - Tally.of(oracle, reports[bad]) if bad.any() else everything


def seed_threshold(n: int) -> int:
    """Return t: of n honest reports so many share a seed, any of the 2^32, with a probability of at
    most 10^-9.

    By 2^32 P(Binomial(n, 2^-32) >= t), which bounds it.
    """
    return binomial_threshold(n, 1 / _SEEDS, IMPOSSIBLE / _SEEDS)


def of_seeds(oracle: FrequencyOracle, reports: Reports, seeds: UInt32Array) -> BoolArray:
    """Return which reports have one of these seeds, which are in ascending order."""
    found: BoolArray = np.isin(oracle.seeds(reports), seeds)
    return found


class SeedScreen:
    """Finds the seeds that n reports have too often, in two passes over the same reports, block by
    block.

    `count` takes each block of the first pass, and `compare` each of the second, in any order.
    Memory is 64 MiB at the most, and 4 bytes for each report under a seed that recurs. The first
    pass throws seeds into bins by a hash with a random key, so that nobody can fill bins with seeds
    of others; the second counts exactly.
    """

    def __init__(self, n: int) -> None:
        bits = min(max((2 * n).bit_length(), _LEAST_BITS), _MOST_BITS)
        self.threshold = seed_threshold(n)
        self._shift = np.uint32(32 - bits)
        self._key = np.uint32(secrets.randbits(32) | 1)
        self._bins = np.zeros(1 << bits, np.uint8)
        self._candidates: list[UInt32Array] = []

    def count(self, seeds: UInt32Array) -> None:
        """Take a block of the first pass."""
        places, times = np.unique(self._places(seeds), return_counts=True)
        self._bins[places] = np.minimum(self._bins[places] + times, _FULL)

    def compare(self, seeds: UInt32Array) -> None:
        """Take a block of the second pass."""
        self._candidates.append(seeds[self._bins[self._places(seeds)] >= self.threshold])

    def found(self) -> UInt32Array:
        """Return the seeds that come `threshold` times or more, in ascending order."""
        candidates = (
            np.concatenate(self._candidates) if self._candidates else np.empty(0, np.uint32)
        )
        seeds, times = np.unique(candidates, return_counts=True)
        return seeds[times >= self.threshold].astype(np.uint32)

    def _places(self, seeds: UInt32Array) -> Int64Array:
        return ((seeds * self._key) >> self._shift).astype(np.int64)
