"""Linear local hashing: a report is a linear hash function over GF(g) and a bucket."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ldprecover._checks import integers
from ldprecover.counting.linear_hashing import bucket_sums, buckets_of, support_sums
from ldprecover.counting.tiles import tiles
from ldprecover.errors import ParameterError
from ldprecover.protocols.description import OwnParameter, Traits, integer_forms
from ldprecover.protocols.integer_reports import IntegerReports
from ldprecover.protocols.laws import HitLaw, JointSupport, Laws, ReportSums
from ldprecover.protocols.local_hashing import LocalHashing
from ldprecover.protocols.oracle import ALL_ITEMS, Items
from ldprecover.protocols.sampling import below, keep_or_replace, words_from
from ldprecover.protocols.wire import IntegerForm
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports, Rng

MAX_CELLS = 1 << 20  # g^(k+1), the length of a summary: 8 MiB
_MAX_RANGE = 1021  # the greatest prime g with g^2 <= MAX_CELLS
_PRIMES = tuple(
    g for g in range(2, _MAX_RANGE + 1) if all(g % i for i in range(2, math.isqrt(g) + 1))
)
_WORST = 1.05  # variance relative to that of OUE above which LLH is not proposed
_FORMS = integer_forms(
    json="one integer r * g + y a report; it supports item v where the digits of r and v in base "
    "g have the inner product y modulo g.",
    packed="u4 an integer.",
    example=[5, 0, 7],
)


def digits_of(domain_size: int, hash_range: int) -> int:
    """Return k = ceil(log_g d), the number of digits of an item in base g."""
    k, codes = 1, hash_range
    while codes < domain_size:
        k, codes = k + 1, codes * hash_range
    return k


def default_linear_range(epsilon: float, domain_size: int) -> int:
    """Return the prime g of least variance with g^(k+1) <= 2^20, where k = ceil(log_g d)."""
    fitting = (g for g in _PRIMES if g ** (digits_of(domain_size, g) + 1) <= MAX_CELLS)
    return min(fitting, key=lambda g: _variance(epsilon, g))


def _variance(epsilon: float, g: int) -> float:
    """Return q(1-q)/(p-q)^2, the variance of an estimate from one report at frequency 0."""
    e = math.exp(epsilon)
    return (g - 1) * ((e + g - 1) / (g - 1) / (e - 1)) ** 2


@dataclass(frozen=True)
class LLH(LocalHashing, IntegerReports):
    """Local hashing by the linear functions over GF(g), g prime.

    Local hashing (Bassily and Smith, STOC 2015; Wang et al., USENIX Security 2017) with a family
    that is pairwise independent, as in PI-RAPPOR (Feldman and Talwar, ICML 2021). An item has k =
    ceil(log_g d) digits in base g, the least significant first. A seed r is one of the S = g^k
    vectors over GF(g), and hashes an item to the inner product with its digits modulo g. A report
    is a uniform seed and a bucket: the item's with probability p = e^eps/(e^eps + g - 1), else one
    of the others. It travels as the integer r g + y, and supports the items that r hashes to y.

    Two items share their bucket under exactly S/g of the seeds, so q = 1/g and Lemma 2 hold without
    an ideal hash. The summary is the histogram of the reports. It determines them but for their
    order, and one transform of it gives all counts.

    Item 0 is in bucket 0 under every seed, and under seed 0 all items are: report 0 supports every
    item. An honest report is 0 with probability p/S.

    Raises ParameterError unless `hash_range` is a prime with g^(k+1) <= 2^20.

        LLH(epsilon=1.0, domain_size=100, hash_range=5).perturb([0, 3, 3])
    """

    protocol = "llh"
    title = "linear local hashing"
    traits = Traits(extremal=True, histogram=True)
    parameter = OwnParameter(
        "hash_range",
        2,
        _MAX_RANGE,
        "LLH: g, a prime, by default the one of least variance with g^(k+1) <= 2^20, k = "
        "ceil(log_g d).",
        default_linear_range,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        g, k = self.hash_range, self.digits
        if g not in _PRIMES:
            raise ParameterError(f"hash_range must be a prime for {self.protocol}, not {g}")
        if g ** (k + 1) > MAX_CELLS:
            raise ParameterError(
                f"hash_range {g} with {self.domain_size} items has {g}^{k + 1} different reports, "
                f"and at most {MAX_CELLS:,} are counted: choose a smaller hash_range, or oue"
            )

    @property
    def is_proposed(self) -> bool:
        e = math.exp(self.epsilon)
        return _variance(self.epsilon, self.hash_range) <= _WORST * 4 * e / (e - 1) ** 2

    @cached_property
    def wire(self) -> IntegerForm:
        return IntegerForm(_FORMS, self.summary_size, "report", self.everything)

    @property
    def digits(self) -> int:
        """k = ceil(log_g d)."""
        return digits_of(self.domain_size, self.hash_range)

    @property
    def derived(self) -> dict[str, int]:
        return {"digits": self.digits}

    @property
    def seed_count(self) -> int:
        """S = g^k."""
        return int(self.hash_range**self.digits)

    @cached_property
    def summary_size(self) -> int:
        """g^(k+1), the number of different reports."""
        return self.seed_count * self.hash_range

    def perturb(self, items: ArrayLike, rng: Rng | None = None) -> Reports:
        reports = self.encode(items, rng)
        own = reports % np.uint32(self.hash_range)
        sent = keep_or_replace(own, self.hash_range, self.thresholds["keep_below"], rng)
        return (reports - own + sent).astype("<u4")

    def encode(self, items: ArrayLike, rng: Rng | None = None) -> Reports:
        user_items = self.item_indices(items)
        seeds = below(self.seed_count, user_items.size, words_from(rng)).astype(np.int64)
        return self.reports(seeds, self.buckets(seeds, user_items))

    def buckets(self, seeds: ArrayLike, items: ArrayLike) -> Int64Array:
        """Return the bucket that each seed hashes its item to; the two arrays broadcast."""
        return buckets_of(
            np.asarray(seeds, np.int64), np.asarray(items, np.int64), self.hash_range, self.digits
        )

    def reports(self, seeds: ArrayLike, buckets: ArrayLike) -> Reports:
        """Return seeds and buckets as reports. Raises ParameterError for others."""
        firsts = integers(seeds, "seeds", self.seed_count - 1).astype(np.int64) * self.hash_range
        return (firsts + integers(buckets, "buckets", self.hash_range - 1)).astype("<u4")

    def support_counts(self, reports: Reports) -> Int64Array:
        rows = self.wire.checked(reports)
        # The transform of a histogram takes its time however few the reports are.
        if len(rows) * self.domain_size < self.summary_size:
            return np.count_nonzero(self.supports(rows), axis=0)
        return self.counts_from(self.summarise(rows))

    def counts_from(self, summary: Int64Array) -> Int64Array:
        sums = support_sums(summary, self.hash_range, self.digits)
        return np.ascontiguousarray(sums[: self.domain_size])

    def supports(self, reports: Reports, items: Items = ALL_ITEMS) -> BoolArray:
        g = self.hash_range
        columns = np.arange(self.domain_size)[items]
        supported = np.empty((len(reports), columns.size), np.bool_)
        seeds, buckets = np.divmod(self.wire.rows(reports).astype(np.int64), g)
        for rows in tiles(supported.shape):
            hashed = self.buckets(seeds[rows, None], columns)
            np.equal(hashed, buckets[rows, None], out=supported[rows])
        return supported

    def hits(self, items: Int64Array) -> Int64Array:
        """Return the number of the items that each of the g^(k+1) reports supports."""
        if items.size < self.hash_range:
            seeds = np.arange(self.seed_count)[:, None]
            cells = seeds * self.hash_range + self.buckets(seeds, items)
            return np.bincount(cells.reshape(-1), minlength=self.summary_size)
        weights = np.zeros(self.seed_count, np.int64)
        weights[items] = 1
        return bucket_sums(weights, self.hash_range, self.digits)

    def supported_mass(self, reports: Reports, frequencies: FloatArray) -> FloatArray:
        return self._masses(frequencies)[reports]

    def _masses(self, values: FloatArray) -> FloatArray:
        """Return the sum of the values of the items that each of the g^(k+1) reports supports."""
        weights = np.zeros(self.seed_count)
        weights[: self.domain_size] = values
        return bucket_sums(weights, self.hash_range, self.digits)

    def support_sums(self, weights: FloatArray) -> FloatArray:
        """Return the sum of the weights of the reports that support each item."""
        sums = support_sums(weights, self.hash_range, self.digits)
        return sums[: self.domain_size]

    @property
    def everything(self) -> float:
        """p/S, the probability that an honest report is 0."""
        return self.p / self.seed_count

    @property
    def laws(self) -> Laws:
        def joint_support(z: int) -> float:
            # z items span at least ceil(log_g z) dimensions about one of them, and share a bucket
            # under as many conditions on the seed. The user's item may be in their span.
            return self.p * self.q ** (0 if z == 1 else digits_of(z, self.hash_range))

        return replace(
            super().laws,
            hits=_LinearHits(self.p, self.q, self),
            joint_support=JointSupport(joint_support),
            all_supporting=self.everything,
            report_sums=ReportSums(self.summary_size, self._masses, self.support_sums),
            log_likelihood=self._log_likelihood,
        )

    def probabilities(self, frequencies: FloatArray) -> FloatArray:
        """Return the probability of each of the g^(k+1) reports, of users of these frequencies."""
        mass, other = self._masses(frequencies), (1 - self.p) / (self.hash_range - 1)
        return (other * frequencies.sum() + (self.p - other) * mass) / self.seed_count

    def _log_likelihood(self, reports: Reports, frequencies: FloatArray) -> FloatArray:
        return np.log(self.probabilities(frequencies))[reports]


@dataclass(frozen=True)
class _LinearHits(HitLaw):
    """The reports are as good as uniform for users of other items.

    That holds where no other item is in the affine span of the given items: then the bucket of the
    user's item tells nothing of where the given items are.
    """

    oracle: LLH

    def nonholder_law(self, items: Int64Array) -> FloatArray | None:
        span = self._affine_span(items)
        if not np.isin(span[span < self.oracle.domain_size], items).all():
            return None
        hits = self.oracle.hits(items)
        return np.bincount(hits, minlength=len(items) + 1) / hits.size

    def _affine_span(self, items: Int64Array) -> Int64Array:
        """Return the numbers whose digits are affine combinations of those of the items."""
        g = self.oracle.hash_range
        places = g ** np.arange(self.oracle.digits)
        digits = items[:, None] // places % g
        span = digits[:1]
        for row in digits[1:]:
            if not (span == row).all(axis=1).any():
                steps = np.arange(g)[:, None, None] * (row - digits[0])
                span = ((span + steps) % g).reshape(-1, places.size)
        return span @ places
