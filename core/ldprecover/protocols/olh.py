"""Optimised local hashing: a report is a hash seed and a bucket."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import counting
from ldprecover._checks import integers
from ldprecover.protocols.description import Column, OwnParameter, ReportForms, Traits
from ldprecover.protocols.laws import JointSupport, Laws
from ldprecover.protocols.local_hashing import LocalHashing
from ldprecover.protocols.oracle import ALL_ITEMS, Items
from ldprecover.protocols.sampling import keep_or_replace, words_from
from ldprecover.protocols.wire import WireForm, raise_first
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports, Rng, UInt32Array

MAX_HASH_RANGE = 65_536
SEEDS = 1 << 32  # xxHash32 takes a seed of 32 bits

_REPORT = np.dtype([("seed", "<u4"), ("bucket", "<u2")])
_FORMS = ReportForms(
    json="columns of equal length. bucket = (xxHash32(item as 4 bytes LE, seed) * g) >> 32.",
    packed="u4 seed, then u2 bucket (6 bytes).",
    values={
        "seeds": {"type": "integer", "minimum": 0, "maximum": SEEDS - 1},
        "buckets": {"type": "integer", "minimum": 0, "maximum": MAX_HASH_RANGE - 1},
    },
    example={"seeds": [2882400001, 5], "buckets": [2, 0]},
)
_pack_one = struct.Struct("<IH").pack


def default_hash_range(epsilon: float) -> int:
    """Return g = ceil(e^eps + 1), the paper's choice (III-B)."""
    return math.ceil(math.exp(epsilon) + 1)


@dataclass(frozen=True)
class OLH(LocalHashing):
    """Optimised local hashing (paper, III-B; Wang et al., USENIX Security 2017).

    The report is a pair (seed, bucket). The user's item is hashed with a fresh random seed into one
    of g buckets. The bucket is kept with probability p = e^eps/(e^eps+g-1), else replaced by one of
    the others. The report supports every item that its seed hashes to its bucket, so q = 1/g.

    The hash is xxHash32 of the item index as four little-endian bytes; bucket = (hash * g) >> 32.

        OLH(epsilon=1.0, domain_size=4, hash_range=4).perturb([0, 3, 3])
    """

    protocol = "olh"
    title = "optimised local hashing"
    traits = Traits(independent_bits=True, seeded=True, extremal=True)
    parameter = OwnParameter(
        "hash_range",
        2,
        MAX_HASH_RANGE,
        "OLH: g, by default ceil(e^epsilon + 1).",
        lambda epsilon, domain_size: default_hash_range(epsilon),
    )

    @cached_property
    def hash_tests(self) -> int:
        return self.domain_size

    @cached_property
    def wire(self) -> WireForm:
        return SeedBucketForm(self.hash_range)

    def perturb(self, items: ArrayLike, rng: Rng | None = None) -> Reports:
        reports = self.encode(items, rng)
        reports["bucket"] = keep_or_replace(
            reports["bucket"], self.hash_range, self.thresholds["keep_below"], rng
        )
        return reports

    def encode(self, items: ArrayLike, rng: Rng | None = None) -> Reports:
        user_items = self.item_indices(items)
        seeds = (words_from(rng)(user_items.size) >> np.uint64(32)).astype(np.uint32)
        return self.reports(seeds, self.buckets(seeds, user_items))

    def buckets(self, seeds: ArrayLike, items: ArrayLike) -> UInt32Array:
        """Return the bucket that each seed hashes its item to; the two arrays broadcast."""
        return counting.olh_buckets(
            np.asarray(seeds, np.uint32), np.asarray(items, np.uint32), self.hash_range
        )

    def reports(self, seeds: ArrayLike, buckets: ArrayLike) -> Reports:
        """Return seeds and buckets joined into packed rows. Raises ParameterError for others."""
        return _rows(
            integers(seeds, "seeds", SEEDS - 1), integers(buckets, "buckets", self.hash_range - 1)
        )

    def summarise(self, reports: Reports) -> Int64Array:
        return counting.olh_counts(
            reports["seed"], reports["bucket"], self.domain_size, self.hash_range
        )

    def summarise_with_sizes(self, reports: Reports) -> tuple[Int64Array, Int64Array]:
        # In one pass, since hashing takes most of the time.
        return counting.olh_counts_and_sizes(
            reports["seed"], reports["bucket"], self.domain_size, self.hash_range
        )

    def support_sizes(self, reports: Reports) -> Int64Array:
        return self.summarise_with_sizes(reports)[1]

    def supports(self, reports: Reports, items: Items = ALL_ITEMS) -> BoolArray:
        columns = np.arange(self.domain_size, dtype=np.uint32)[items]
        return counting.olh_supported(
            reports["seed"], reports["bucket"], columns, self.hash_range
        ).T

    def seeds(self, reports: Reports) -> UInt32Array:
        return reports["seed"]

    @property
    def laws(self) -> Laws:
        # The probability that z items share a bucket: the bound of Cao et al.
        joint_support = JointSupport(lambda z: self.q ** (z - 1))
        return replace(
            super().laws, joint_support=joint_support, log_likelihood=self._log_likelihood
        )

    def _log_likelihood(self, reports: Reports, frequencies: FloatArray) -> FloatArray:
        p, mass = self.p, self.supported_mass(reports, frequencies)
        return np.log(p * mass + (1 - p) / (self.hash_range - 1) * (1 - mass))


class SeedBucketForm(WireForm):
    """A report is a hash seed and a bucket below `hash_range`."""

    def __init__(self, hash_range: int) -> None:
        seeds = Column("seeds", int, SEEDS, "seed")
        super().__init__(_FORMS, _REPORT, seeds, Column("buckets", int, hash_range, "bucket"))
        self.hash_range = hash_range

    def check(self, reports: Reports) -> None:
        raise_first(
            reports["bucket"] >= self.hash_range,
            f"the bucket must be from 0 to {self.hash_range - 1}",
        )

    def split(self, reports: Reports) -> tuple[list[Any], ...]:
        return reports["seed"].tolist(), reports["bucket"].tolist()

    def join(self, values: Sequence[list[Any]]) -> Reports:
        seeds, buckets = values
        if len(seeds) == 1:  # as users send them; this saves joining the columns as arrays
            return np.frombuffer(_pack_one(seeds[0], buckets[0]), dtype=_REPORT)
        return _rows(np.array(seeds, dtype=np.uint32), np.array(buckets, dtype=np.uint16))


def _rows(seeds: ArrayLike, buckets: ArrayLike) -> Reports:
    rows = np.empty(np.shape(seeds), dtype=_REPORT)
    rows["seed"], rows["bucket"] = seeds, buckets
    return rows
