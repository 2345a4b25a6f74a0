"""Quarantine: reports of impossible sizes, and reports that repeat too often.

Each rule states the probability that honest reports are quarantined: below 10^-9 for one report by
its size, and below 10^-9 for a whole round by repeats. Repeats have equal hash seeds or, where few
different reports exist (HR and LLH), are equal reports.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

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
_STORED = np.dtype([("value", "<u4"), ("n", "<i8")])


@dataclass(frozen=True)
class Quarantined:
    """The numbers of a round's quarantined reports, by their sizes and as repeats.

    `repeats` is None until repeats have been counted. Raises ParameterError for negative numbers.
    """

    sizes: int
    repeats: int | None

    def __post_init__(self) -> None:
        for number in (self.sizes, 0 if self.repeats is None else self.repeats):
            if type(number) is not int or not 0 <= number < _MOST:
                raise ParameterError("the numbers of quarantined reports must be integers from 0")

    @property
    def total(self) -> int:
        """The number of reports in quarantine now."""
        return self.sizes + (self.repeats or 0)

    def __add__(self, other: Quarantined) -> Quarantined:
        """Return the sums; `repeats` is None if either is."""
        unknown = self.repeats is None or other.repeats is None
        repeats = None if unknown else (self.repeats or 0) + (other.repeats or 0)
        return Quarantined(self.sizes + other.sizes, repeats)


def unfit(oracle: FrequencyOracle) -> str | None:
    """Return why no report of a protocol can be quarantined, or None."""
    if counts_repeats(oracle):
        return None
    if oracle.fixed_size is not None:
        return (
            f"every {oracle.protocol} report supports {items_in_words(oracle.fixed_size)}, so "
            "no size is impossible"
        )
    try:
        fits = judges_sizes(oracle)
    except ParameterError as error:
        return str(error)
    return (
        None if fits else f"of {oracle.domain_size} items an honest report may support any number"
    )


def judges_sizes(oracle: FrequencyOracle) -> bool:
    """Return whether some sizes are impossible, so that reports are judged as they arrive."""
    return bool(impossible_sizes(oracle).any())


def counts_repeats(oracle: FrequencyOracle) -> bool:
    """Return whether reports carry hash seeds, or are few different ones of known probability."""
    return oracle.traits.seeded or _are_few(oracle)


def _are_few(oracle: FrequencyOracle) -> bool:
    return oracle.traits.histogram and oracle.laws.likeliest_report is not None


@lru_cache(maxsize=256)
def impossible_sizes(oracle: FrequencyOracle) -> BoolArray:
    """Return, for k = 0..d, whether a report that supports k items is impossible.

    They are the least probable sizes; an honest report has any of them with a probability below
    10^-9, whatever item its user holds. Honest users send each of few different reports, so their
    sizes are possible. Raises ParameterError for another protocol without a law of sizes.
    """
    impossible = np.zeros(oracle.domain_size + 1, np.bool_)
    if not _are_few(oracle):
        law = oracle.laws.size_law().probabilities()
        order = np.argsort(law, kind="stable")
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


def report_threshold(oracle: FrequencyOracle, n: int) -> int:
    """Return the number of equal reports that n honest ones reach with probability <= 10^-9.

    The bound is M P(Binomial(n, x) >= t) over all M different reports: honest users send any one of
    them with a probability of at most x, whatever they hold. Raises ParameterError for a protocol
    without such a list of reports.
    """
    sums, likeliest = oracle.laws.report_sums, oracle.laws.likeliest_report
    if sums is None or likeliest is None:
        raise oracle.lacks("a list of all its reports")
    return binomial_threshold(n, likeliest, IMPOSSIBLE / sums.number)


@dataclass(frozen=True, eq=False)
class Repeats:
    """The numbers of repeats by value, in ascending order of the values.

    The value of a report is its hash seed if it has one, otherwise the report itself.
    """

    values: UInt32Array
    numbers: Int64Array

    @classmethod
    def of_tally(cls, oracle: FrequencyOracle, tally: Tally) -> Self:
        """Return the repeats among the reports that a tally counts, its summary the histogram.

        The reports beyond those that honest users may have sent repeat. So they are no more than
        the malicious ones of the same value, except once in 10^9 rounds, and no honest report is
        lost with them. Raises ParameterError as `report_threshold` does.
        """
        excess = tally.summary - (report_threshold(oracle, tally.n) - 1)
        values = np.flatnonzero(excess > 0)
        return cls(values.astype(np.uint32), excess[values])

    @classmethod
    def from_bytes(cls, packed: bytes) -> Self:
        """Return what `to_bytes` packed."""
        rows = np.frombuffer(packed, _STORED)
        return cls(rows["value"].astype(np.uint32), rows["n"].astype(np.int64))

    def to_bytes(self) -> bytes:
        """Return the values and their numbers, little-endian, 12 bytes each."""
        rows = np.empty(self.values.size, _STORED)
        rows["value"], rows["n"] = self.values, self.numbers
        return rows.tobytes()

    @property
    def n(self) -> int:
        """The number of repeats."""
        return int(self.numbers.sum())

    def split(self, oracle: FrequencyOracle, reports: Reports) -> tuple[BoolArray, Self]:
        """Return which of the reports are repeats, the first ones of each value, and the others."""
        values = oracle.seeds(reports) if oracle.traits.seeded else reports
        all_values = values.astype(np.uint32, copy=False)  # else the search converts self.values
        chosen = np.zeros(len(reports), np.bool_)
        if not self.values.size:
            return chosen, self
        # Binary search: a server calls this for each of many small segments.
        places = np.minimum(np.searchsorted(self.values, all_values), self.values.size - 1)
        rows = np.flatnonzero(self.values[places] == all_values)
        if not rows.size:
            return chosen, self
        rows = rows[np.argsort(all_values[rows], kind="stable")]
        places, firsts, counts = np.unique(places[rows], return_index=True, return_counts=True)
        rank = np.arange(rows.size) - np.repeat(firsts, counts)
        chosen[rows[rank < np.repeat(self.numbers[places], counts)]] = True
        numbers = self.numbers.copy()
        numbers[places] -= np.minimum(counts, numbers[places])
        return chosen, type(self)(self.values, numbers)


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

    def repeats(self) -> Repeats:
        """Return all reports under the seeds that occur at least `threshold` times."""
        candidates = (
            np.concatenate(self._candidates) if self._candidates else np.empty(0, np.uint32)
        )
        seeds, times = np.unique(candidates, return_counts=True)
        recurring = times >= self.threshold
        return Repeats(seeds[recurring].astype(np.uint32), times[recurring].astype(np.int64))

    def _places(self, seeds: UInt32Array) -> Int64Array:
        first, second = self._keys
        # One multiplication keeps the spacing of consecutive seeds: 2 % of keys fill few bins.
        mixed = seeds * first
        mixed ^= mixed >> np.uint32(16)
        mixed *= second
        return (mixed >> self._shift).astype(np.int64)
