"""Optimised local hashing: a report is a hash seed and a bucket."""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import counting
from ldprecover.counting.tally import Tally
from ldprecover.crafting.crafter import Crafter
from ldprecover.crafting.seed_crafter import SeedCrafter
from ldprecover.crafting.seed_search import SEEDS
from ldprecover.laws import JointSupport, Laws
from ldprecover.protocols.description import Column, ReportForms, Traits
from ldprecover.protocols.oracle import FrequencyOracle
from ldprecover.protocols.sampling import below, keep_threshold, words_from
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports, UInt32Array

MAX_HASH_RANGE = 65_536

_CELLS, _LEAST = 1 << 22, 1 << 10  # (report, item) tests of a block, and its fewest reports
_REPORT = np.dtype([("seed", "<u4"), ("bucket", "<u2")])
_pack_one = struct.Struct("<IH").pack


def default_hash_range(epsilon: float) -> int:
    """Return g = ceil(e^eps + 1), the paper's choice (III-B)."""
    return math.ceil(math.exp(epsilon) + 1)


@dataclass(frozen=True)
class OLH(FrequencyOracle):
    """Optimised local hashing (paper, III-B; Wang et al., USENIX Security 2017).

    The report is a pair (seed, bucket). The user's item is hashed with a fresh random seed into one
    of g buckets. The bucket is kept with probability p = e^eps/(e^eps+g-1), else replaced by one of
    the others. The report supports every item that its seed hashes to its bucket, so q = 1/g.

    The hash is xxHash32 of the item index as four little-endian bytes; bucket = (hash * g) >> 32.
    """

    hash_range: int

    protocol = "olh"
    title = "optimised local hashing"
    traits = Traits(independent_bits=True, seeded=True, extremal=True)
    forms = ReportForms(
        json="columns of equal length. bucket = (xxHash32(item as 4 bytes LE, seed) * g) >> 32.",
        packed="u4 seed, then u2 bucket (6 bytes).",
        values={
            "seeds": {"type": "integer", "minimum": 0, "maximum": SEEDS - 1},
            "buckets": {"type": "integer", "minimum": 0, "maximum": MAX_HASH_RANGE - 1},
        },
        example={"seeds": [2882400001, 5], "buckets": [2, 0]},
    )
    parameter = "hash_range"
    parameter_range = (2, MAX_HASH_RANGE)
    parameter_meaning = "g, OLH only; default ceil(e^epsilon + 1)."

    @classmethod
    def default_parameter(cls, epsilon: float, domain_size: int) -> int:
        return default_hash_range(epsilon)

    @property
    def p(self) -> float:
        e = math.exp(self.epsilon)
        return e / (e + self.hash_range - 1)

    @property
    def q(self) -> float:
        return 1 / self.hash_range

    @property
    def hash_tests(self) -> int:
        return self.domain_size

    @property
    def thresholds(self) -> dict[str, int]:
        return {"keep_below": keep_threshold(self.epsilon, self.hash_range)}

    @property
    def report_dtype(self) -> np.dtype:
        return _REPORT

    def perturb(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        reports = self.encode(items, rng)
        words = words_from(rng)
        g, n = self.hash_range, len(reports)
        keep = words(n) < np.uint64(self.thresholds["keep_below"])
        own = reports["bucket"].astype(np.uint64)
        other = (own + np.uint64(1) + below(g - 1, n, words)) % np.uint64(g)
        reports["bucket"] = np.where(keep, own, other)
        return reports

    def encode(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        user_items = self._items(items)
        seeds = (words_from(rng)(user_items.size) >> np.uint64(32)).astype(np.uint32)
        return self.reports(seeds, self.buckets(seeds, user_items))

    def buckets(self, seeds: ArrayLike, items: ArrayLike) -> UInt32Array:
        """Return the bucket that each seed hashes its item to; the two arrays broadcast."""
        return counting.olh_buckets(
            np.asarray(seeds, np.uint32), np.asarray(items, np.uint32), self.hash_range
        )

    def reports(self, seeds: ArrayLike, buckets: ArrayLike) -> Reports:
        """Return seeds and buckets joined into packed rows."""
        seeds = np.asarray(seeds)
        rows = np.empty(seeds.shape, dtype=self.report_dtype)
        rows["seed"], rows["bucket"] = seeds, buckets
        return rows

    def check(self, reports: Reports) -> None:
        self._raise_first(
            reports["bucket"] >= self.hash_range,
            f"the bucket must be from 0 to {self.hash_range - 1}",
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

    def supports(self, reports: Reports) -> BoolArray:
        return self.supported(reports, np.arange(self.domain_size))

    def supported(self, reports: Reports, items: Int64Array) -> BoolArray:
        columns = np.asarray(items).astype(np.uint32)
        return counting.olh_supported(
            reports["seed"], reports["bucket"], columns, self.hash_range
        ).T

    def subset_counts(self, reports: Reports, subsets: BoolArray) -> Int64Array:
        # Each report is hashed once, even if it is in several subsets.
        items = np.arange(self.domain_size)
        counts = np.zeros((len(subsets), items.size), np.int64)
        step = max(_LEAST, _CELLS // items.size)
        for start in range(0, len(reports), step):
            part = slice(start, start + step)
            supported = counting.packed_lines(self.supported(reports[part], items).T)
            counts += counting.joint_counts(counting.packed_lines(subsets[:, part]), supported)
        return counts

    def seeds(self, reports: Reports) -> UInt32Array:
        seeds: UInt32Array = reports["seed"]
        return seeds

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return Column("seeds", int, SEEDS, "seed"), Column(
            "buckets", int, self.hash_range, "bucket"
        )

    def to_columns(self, reports: Reports) -> tuple[list[Any], ...]:
        return reports["seed"].tolist(), reports["bucket"].tolist()

    def from_columns(self, values: Sequence[list[Any]]) -> Reports:
        seeds, buckets = values
        if len(seeds) == 1:  # as users send them; this saves joining the columns as arrays
            return np.frombuffer(_pack_one(seeds[0], buckets[0]), dtype=_REPORT)
        return self.reports(np.array(seeds, dtype=np.uint32), np.array(buckets, dtype=np.uint16))

    @property
    def laws(self) -> Laws:
        # The probability that z items share a bucket: the bound of Cao et al.
        joint_support = JointSupport(lambda z: self.q ** (z - 1))
        return replace(
            super().laws, joint_support=joint_support, log_likelihood=self._log_likelihood
        )

    def _log_likelihood(self, reports: Reports, frequencies: FloatArray) -> FloatArray:
        p, mass = self.p, self._supported_mass(reports, frequencies)
        log: FloatArray = np.log(p * mass + (1 - p) / (self.hash_range - 1) * (1 - mass))
        return log

    def honest_tally(self, true_counts: ArrayLike, rng: np.random.Generator) -> Tally:
        """Return a tally of honest reports, drawn from its law under an ideal hash in O(d).

        C(v) = Bin(n_v, p) + Bin(n - n_v, q), independent over the items.
        """
        users = self._true_counts(true_counts)
        n = int(users.sum())
        return Tally(rng.binomial(users, self.p) + rng.binomial(n - users, self.q), n)

    def encoded_tally(self, true_counts: ArrayLike, rng: np.random.Generator) -> Tally:
        """Return a tally of reports of `encode`, drawn under an ideal hash in O(d).

        C(v) = n_v + Bin(n - n_v, 1/g).
        """
        users = self._true_counts(true_counts)
        n = int(users.sum())
        return Tally(users + rng.binomial(n - users, self.q), n)

    @property
    def crafter(self) -> Crafter:
        laws = self.laws
        return SeedCrafter(
            self.protocol,
            self.domain_size,
            self.q,
            math.floor(laws.mean_size),
            hash_range=self.hash_range,
            sizes=laws.size_law(),
            encode=self.encode,
            join=self.reports,
        )
