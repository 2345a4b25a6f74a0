"""Quarantine: reports of impossible sizes, and reports under seeds that recur too often.

Both rules state the probability that honest reports are quarantined: below 10^-9 for one report by
its size, and below 10^-9 for a whole round by its seeds.
"""

import secrets
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ldprecover._origins import named
from ldprecover.counting.tally import Tally
from ldprecover.distributions import binomial_threshold
from ldprecover.errors import ContractError, ParameterError
from ldprecover.items import items_in_words
from ldprecover.protocols import FrequencyOracle
from ldprecover.types import BoolArray, Int64Array, Reports, UInt32Array

IMPOSSIBLE = 1e-9
"""Probability below which an event is taken as impossible."""

_SEEDS = 1 << 32
_MOST = 1 << 63
_LEAST_BITS, _MOST_BITS = 10, 26  # log2 of the number of bins, of one byte each: up to 64 MiB
_FULL = 255  # a bin's maximum count; no threshold is above


@dataclass(frozen=True)
class Quarantined:
    """The numbers of a round's quarantined reports, by size and by seed.

    `seeds` is None until the seeds have been judged. Raises ParameterError for negative numbers.
    """

    sizes: int
    seeds: int | None

    def __post_init__(self) -> None:
        for number in (self.sizes, 0 if self.seeds is None else self.seeds):
            if type(number) is not int or not 0 <= number < _MOST:
                raise ParameterError("the numbers of quarantined reports must be integers from 0")

    @property
    def total(self) -> int:
        """The number of reports in quarantine now."""
        return self.sizes + (self.seeds or 0)

    def __add__(self, other: "Quarantined") -> "Quarantined":
        """Return the sums; `seeds` is None if either is."""
        unknown = self.seeds is None or other.seeds is None
        return Quarantined(
            self.sizes + other.sizes, None if unknown else (self.seeds or 0) + (other.seeds or 0)
        )


def unfit(oracle: FrequencyOracle) -> str | None:
    """Return why no report of a protocol can be quarantined, or None."""
    if judges_seeds(oracle):
        return None
    if oracle.fixed_size is not None:
        return (
            f"every {oracle.protocol} report supports {items_in_words(oracle.fixed_size)}, so "
            "no size is impossible"
        )
    sums, ratio = oracle.laws.report_sums, oracle.laws.likelihood_ratio
    if sums is not None and ratio is not None:
        least = 1 / (sums.number * (1 + (ratio - 1) * oracle.q))
        return (
            f"honest users send each of the {sums.number} {oracle.protocol} reports with a "
            f"probability of {least:.2g} or more, so no size is impossible"
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
    """Return whether reports carry hash seeds, which honest users draw evenly."""
    return oracle.traits.seeded


@lru_cache(maxsize=256)
def impossible_sizes(oracle: FrequencyOracle) -> BoolArray:
    """Return, for k = 0..d, whether a report that supports k items is impossible.

    They are the least probable sizes; an honest report has any of them with a probability below
    10^-9, whatever item its user holds. Raises ParameterError for a protocol without a law of
    sizes.
    """
    law = oracle.laws.size_law().probabilities()
    order = np.argsort(law, kind="stable")
    impossible = np.zeros(law.size, np.bool_)
    impossible[order] = np.cumsum(law[order]) < IMPOSSIBLE
    impossible.flags.writeable = False
    return impossible


def split_by_size(oracle: FrequencyOracle, reports: Reports) -> tuple[BoolArray, Tally]:
    """Return which checked reports have an impossible size, and the tally of the others.

    It takes hardly longer than counting. Raises ParameterError as `impossible_sizes` does.
    """
    impossible = impossible_sizes(oracle)
    if not impossible.any():
        return np.zeros(len(reports), np.bool_), Tally.of(oracle, reports)
    summary, sizes = oracle.summarise_with_sizes(reports)
    if np.shape(sizes) != (len(reports),):
        raise ContractError(
            f"{named('protocol', oracle.protocol)} returned what it may not: the sizes of "
            f"{len(reports)} reports have the shape {np.shape(sizes)}"
        )
    bad: BoolArray = impossible[sizes]
    everything = Tally(summary, len(reports))
    return bad, everything - Tally.of(oracle, reports[bad]) if bad.any() else everything


def seed_threshold(n: int) -> int:
    """Return the number of equal seeds that n honest reports reach with probability <= 10^-9.

    The bound is 2^32 P(Binomial(n, 2^-32) >= t), over all 2^32 seeds.
    """
    return binomial_threshold(n, 1 / _SEEDS, IMPOSSIBLE / _SEEDS)


def with_seeds(oracle: FrequencyOracle, reports: Reports, seeds: UInt32Array) -> BoolArray:
    """Return which reports have one of these seeds, given in ascending order."""
    return np.isin(oracle.seeds(reports), seeds)


class SeedFilter:
    """Finds the seeds that recur too often among n reports, in two passes, block by block.

    Call `count` for each block of the first pass and `compare` for each block of the second, in any
    order. Memory is up to 64 MiB, plus 4 bytes for each report under a recurring seed. The first
    pass counts seeds in bins by a hash with a random key, so that nobody can fill the bins of other
    users' seeds; the second counts exactly.
    """

    def __init__(self, n: int) -> None:
        bits = min(max((2 * n).bit_length(), _LEAST_BITS), _MOST_BITS)
        self.threshold = seed_threshold(n)
        self._shift = np.uint32(32 - bits)
        self._keys = tuple(np.uint32(secrets.randbits(32) | 1) for _ in range(2))
        self._bins = np.zeros(1 << bits, np.uint8)
        self._candidates: list[UInt32Array] = []

    def count(self, seeds: UInt32Array) -> None:
        """Count the seeds of a block in the first pass."""
        places, times = np.unique(self._places(seeds), return_counts=True)
        self._bins[places] = np.minimum(self._bins[places] + times, _FULL)

    def compare(self, seeds: UInt32Array) -> None:
        """Compare the seeds of a block with the bins in the second pass."""
        self._candidates.append(seeds[self._bins[self._places(seeds)] >= self.threshold])

    def found(self) -> UInt32Array:
        """Return the seeds that occur at least `threshold` times, in ascending order."""
        candidates = (
            np.concatenate(self._candidates) if self._candidates else np.empty(0, np.uint32)
        )
        seeds, times = np.unique(candidates, return_counts=True)
        return seeds[times >= self.threshold].astype(np.uint32)

    def _places(self, seeds: UInt32Array) -> Int64Array:
        first, second = self._keys
        # One multiplication keeps the spacing of consecutive seeds: 2 % of keys fill few bins.
        mixed = seeds * first
        mixed ^= mixed >> np.uint32(16)
        mixed *= second
        return (mixed >> self._shift).astype(np.int64)
