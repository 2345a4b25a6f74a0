"""Optimised local hashing whose seeds are given: each user's ticket picks one of a public list."""

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ldprecover.counting.tally import Tally
from ldprecover.crafting.crafter import DEFAULT_SEARCH, Aim, CoinCrafter, Crafter, Search
from ldprecover.distributions import binomial_law
from ldprecover.errors import ParameterError
from ldprecover.laws import IndependentSizes, Laws
from ldprecover.protocols.description import OwnParameter, Traits
from ldprecover.protocols.olh import OLH, SeedBucketForm
from ldprecover.protocols.oracle import check_integer, tiles
from ldprecover.protocols.sampling import below, words_from
from ldprecover.protocols.seed_list import Collisions, bucket_table, collisions, seed_list
from ldprecover.protocols.simulation import Simulation
from ldprecover.protocols.wire import raise_first
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports, UInt16Array, UInt32Array

MIN_GIVEN_SEEDS, MAX_GIVEN_SEEDS = 64, 4096
GIVEN_SEEDS_PARAMETER = OwnParameter(
    "given_seeds",
    MIN_GIVEN_SEEDS,
    MAX_GIVEN_SEEDS,
    "M, OLH in rounds of tickets only: seeds of a public list, of which each ticket picks one.",
    lambda epsilon, domain_size: MIN_GIVEN_SEEDS,
)

_MAX_WORK = 1 << 32  # d^2 M g, a second of arithmetic, once for each process
_SUBSETS = 1 << 10  # of wanted items, whose crafted reports are looked at one by one
_NEGLIGIBLE = 1e-12  # sizes less likely than this are left out of an expectation


@dataclass(frozen=True)
class GivenSeedsOLH(OLH):
    """Optimised local hashing with M given seeds: a report's seed is one of a public list, picked
    by its ticket.

    Who may choose no seed cannot search for one. Given the seed a report is drawn as OLH's is, so
    it satisfies epsilon-LDP whatever the list, and whoever picks from it. Without a ticket a seed
    is drawn evenly from the list.

    Items v and w are in one bucket under a share coll(v, w) of the list, which is not 1/g but
    known. A user of item w supports v with probability q + (p - q) K(v, w), where K(v, w) = (g
    coll(v, w) - 1)/(g - 1). The estimate is K^-1 (C/n - q)/(p - q): unbiased, for this list and no
    other. Near f = 0 its variance is OLH's times the diagonal of K^-1, which is about
    1/(1 - d/(M(g-1))) (Marchenko and Pastur), so M(g-1) is at least 2d. Laws here are exact for the
    list, not under an ideal hash.

    Raises ParameterError for M outside 64 to 4,096, for M(g-1) < 2d, and for d^2 M g above 2^32.
    """

    given_seeds: int

    title = "optimised local hashing with given seeds"
    traits = Traits(pure=False, extremal=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("given_seeds", self.given_seeds, MIN_GIVEN_SEEDS, MAX_GIVEN_SEEDS)
        m, g, d = self.given_seeds, self.hash_range, self.domain_size
        if m * (g - 1) < 2 * d:
            least = -(-2 * d // (g - 1))
            raise ParameterError(
                f"given_seeds must be at least 2d/(g-1) = {least} for {d} items in {g} buckets"
            )
        if d * d * m * g > _MAX_WORK:
            raise ParameterError(
                f"given_seeds is too large for {d} items in {g} buckets: d^2 M g must be at most "
                "2^32"
            )

    @property
    def own(self) -> dict[str, Any]:
        return super().own | {"given_seeds": self.given_seeds}

    @property
    def listed_seeds(self) -> int:
        return self.given_seeds

    def seed_of(self, draw: int) -> int:
        return int(self._list[draw * self.given_seeds >> 64])

    def with_seeds(self, seeds: ArrayLike) -> Self:
        given = np.asarray(seeds, np.uint32)
        places = self._places(given)
        self._raise_unlisted(given)
        holders = copy.copy(self)
        object.__setattr__(holders, "_held", iter(places.tolist()))
        return holders

    def encode(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        held = self.item_indices(items)
        places = self._pick(held.size, rng)
        return self.reports(self._list[places], self._table[places, held])

    @cached_property
    def wire(self) -> SeedBucketForm:
        return _ListedSeedForm(self)

    def estimate(self, counts: ArrayLike, n: int) -> FloatArray:
        frequencies: FloatArray = super().estimate(counts, n) @ self._collisions.inverse
        return frequencies

    def variance(self, frequencies: ArrayLike, n: int) -> FloatArray:
        """Return Var f~(v) at true frequencies f of the d items, from n honest reports: exact.

        Where they sum to less than one, the rest is of items outside; where to more, they are
        scaled to one. Of a single number it is Lemma 2's variance times the greatest entry of
        K^-1's diagonal.
        """
        f, its = np.asarray(frequencies, dtype=np.float64), self._collisions
        if f.ndim == 0:
            return super().variance(f, n) * float(its.inflation.max())
        if n < 1:
            raise ParameterError("a variance needs at least one report")
        p, q, other, gap = self.p, self.q, self._other, self.p - self.q
        total = f.sum(axis=-1, keepdims=True)
        f = f / np.maximum(total, 1.0)
        rest = np.maximum(1.0 - total, 0.0)
        # E of the square of one report's term is sum_{s,a} P(a | s) L_s(v, a)^2/M, where
        # P(a | s) = (1-p)/(g-1) + (p - (1-p)/(g-1)) f(items of s in a).
        square = other * its.cells + (p - other) * (f @ its.own.T + rest * its.cells * q)
        mean = q * its.inverse.sum(axis=1) + gap * f
        variance: FloatArray = (square - mean**2) / (n * gap**2)
        return variance

    @property
    def laws(self) -> Laws:
        return _GivenSeedsLaws(
            f"{self.protocol} with given seeds",
            self.domain_size,
            self.p,
            self.q,
            likelihood_ratio=math.exp(self.epsilon),
            log_likelihood=self._log_likelihood,
            other=self._other,
            collisions=self._collisions,
        )

    @property
    def simulation(self) -> Simulation:
        return _GivenSeedsSimulation(self)

    @property
    def crafter(self) -> "GivenSeedsCrafter":
        return GivenSeedsCrafter(
            f"{self.protocol} with given seeds",
            self.domain_size,
            self.q,
            math.floor(self.laws.mean_size),
            oracle=self,
        )

    @property
    def _other(self) -> float:
        """Probability of each bucket but the item's own."""
        return (1 - self.p) / (self.hash_range - 1)

    @property
    def _honest_sizes(self) -> IndependentSizes:
        return IndependentSizes(self.domain_size, self.p, self.q)

    @property
    def _list(self) -> UInt32Array:
        return seed_list(self.given_seeds)

    @property
    def _table(self) -> UInt16Array:
        return bucket_table(self.given_seeds, self.hash_range, self.domain_size)

    @property
    def _collisions(self) -> Collisions:
        return collisions(self.given_seeds, self.hash_range, self.domain_size)

    @cached_property
    def _sizes(self) -> Int64Array:
        """How many items each bucket of each seed holds, (M, g)."""
        return self._hits(self._table)

    @cached_property
    def _kept(self) -> FloatArray:
        """The law of a reported bucket for each true one, (g, g)."""
        g = self.hash_range
        law = np.full((g, g), self._other)
        np.fill_diagonal(law, self.p)
        kept: FloatArray = law / law.sum(axis=1, keepdims=True)
        return kept

    @cached_property
    def _sorted(self) -> tuple[UInt32Array, Int64Array]:
        order = np.argsort(self._list)
        return self._list[order], order

    def _places(self, seeds: UInt32Array) -> Int64Array:
        """Return where each seed stands in the list; some place for one that is not in it."""
        values, order = self._sorted
        places: Int64Array = order[np.minimum(np.searchsorted(values, seeds), values.size - 1)]
        return places

    def _raise_unlisted(self, seeds: UInt32Array) -> None:
        bad = self._list[self._places(seeds)] != seeds
        raise_first(bad, f"the seed must be one of the round's {self.given_seeds}")

    def _pick(self, n: int, rng: np.random.Generator | None) -> Int64Array:
        """Return the places of the seeds of n users: those that were given, or else any of the
        list.
        """
        held: Iterator[int] | None = getattr(self, "_held", None)
        if held is None:
            return below(self.given_seeds, n, words_from(rng)).astype(np.int64)
        places = np.fromiter(islice(held, n), np.int64)
        if places.size < n:
            raise ParameterError("there are fewer seeds than reports")
        return places

    def _hits(self, buckets: UInt16Array | Int64Array) -> Int64Array:
        """Return how many numbers of each row are each bucket, (rows, g)."""
        rows, g = len(buckets), self.hash_range
        flat = np.arange(rows)[:, None] * g + buckets
        return np.bincount(flat.ravel(), minlength=rows * g).reshape(rows, g)

    def _support_of_shares(self, shares: FloatArray) -> FloatArray:
        """Return pi of users who take each bucket of the seed they have with these probabilities,
        (M, g).
        """
        support: FloatArray = np.take_along_axis(shares, self._table.astype(np.int64), axis=1).mean(
            axis=0
        )
        return support

    def _held_cells(self, held: Int64Array, rng: np.random.Generator) -> Int64Array:
        """Return how many users have each seed and a true item in each of its buckets, (M, g)."""
        m, g = self.given_seeds, self.hash_range
        users = rng.multinomial(held, np.full(m, 1 / m))  # (d, M)
        rows = np.arange(m)[:, None] * g + self._table
        cells = np.zeros(m * g, np.int64)
        np.add.at(cells, rows.ravel(), users.T.ravel())
        return cells.reshape(m, g)

    def _tally_of_cells(self, cells: Int64Array) -> Tally:
        counts = np.take_along_axis(cells, self._table.astype(np.int64), axis=1).sum(axis=0)
        return Tally(counts, int(cells.sum()))

    def lacks(self, what: str) -> ParameterError:
        return ParameterError(f"{self.protocol} with given seeds lacks {what}")


class _ListedSeedForm(SeedBucketForm):
    def __init__(self, oracle: GivenSeedsOLH) -> None:
        super().__init__(oracle.hash_range)
        self.oracle = oracle

    def check(self, reports: Reports) -> None:
        super().check(reports)
        self.oracle._raise_unlisted(reports["seed"])

    def join(self, values: Sequence[list[Any]]) -> Reports:
        reports = super().join(values)
        self.oracle._raise_unlisted(reports["seed"])
        return reports


@dataclass(frozen=True)
class _GivenSeedsSimulation(Simulation):
    oracle: GivenSeedsOLH

    def draw_honest(self, users: Int64Array, rng: np.random.Generator) -> Tally:
        """Return a tally of honest reports, drawn from its exact law in O(dM + M g^2)."""
        oracle = self.oracle
        cells = oracle._held_cells(users, rng)
        return oracle._tally_of_cells(rng.multinomial(cells, oracle._kept).sum(axis=1))

    def population_tally(self, weights: FloatArray, n: int, rng: np.random.Generator) -> Tally:
        """Return a tally of n honest reports, drawn from its exact law in O(dM) for any n."""
        oracle = self.oracle
        m, g = oracle.given_seeds, oracle.hash_range
        rows = np.arange(m)[:, None] * g + oracle._table
        mass = np.bincount(rows.ravel(), np.tile(weights, m), m * g)
        law = oracle._other + (oracle.p - oracle._other) * mass.reshape(m, g)
        users = rng.multinomial(n, np.full(m, 1 / m))
        return oracle._tally_of_cells(rng.multinomial(users, law / law.sum(axis=1, keepdims=True)))

    def draw_encoded(self, users: Int64Array, rng: np.random.Generator) -> Tally:
        """Return a tally of reports of `encode`, drawn from its exact law in O(dM)."""
        return self.oracle._tally_of_cells(self.oracle._held_cells(users, rng))


@dataclass(frozen=True)
class _GivenSeedsLaws(Laws):
    """Laws that are exact for the list of seeds; all others depend on the item of the user."""

    other: float = 0.0
    collisions: Collisions | None = None

    def sum_variance(self, n: int) -> float:
        """Return the greatest Var sum_v f~(v) of n honest reports, over all frequencies that they
        may have.
        """
        assert self.collisions is not None
        its, gap = self.collisions, self.p - self.q
        cells, own = its.sums
        square = self.other * cells + (self.p - self.other) * float(own.max())
        mean = self.q * float(its.inverse.sum()) + gap
        return (square - mean**2) / (n * gap**2)

    def honest_support(self, weights: FloatArray) -> FloatArray:
        assert self.collisions is not None
        support: FloatArray = self.q + (self.p - self.q) * (self.collisions.gram @ weights)
        return support


@dataclass(frozen=True)
class GivenSeedsCrafter(Crafter):
    """Malicious users choose a bucket under the seed that their ticket picks."""

    oracle: GivenSeedsOLH

    model = "searched"

    @property
    def coins(self) -> CoinCrafter:
        return _GivenSeedsCoins(self.oracle)

    def encoded_support(self, weights: FloatArray) -> FloatArray:
        g = self.oracle.hash_range
        support: FloatArray = (1 + (g - 1) * (self.oracle._collisions.gram @ weights)) / g
        return support

    def craft(
        self,
        wanted: Int64Array,
        rng: np.random.Generator,
        *,
        aim: Aim = "most",
        search: Search = DEFAULT_SEARCH,
    ) -> Reports:
        """Return the given seed and its bucket that is best of all; ties at random. Nothing is
        searched.

        - "most": the bucket with most wanted items;
        - "balanced": the greatest (wanted items in the bucket) - |L' - (items in it)|, L' =
          floor(d/g);
        - "honest": the size nearest to the one drawn; among these, the most wanted items.
        """
        m = len(wanted)
        places = self.oracle._pick(m, rng)
        aimed = self.oracle._honest_sizes.draw(m, rng) if aim == "honest" else None
        buckets = np.empty(m, np.int64)
        for rows in tiles((m, max(wanted.shape[1], self.oracle.hash_range))):
            at = places[rows]
            hits = self.oracle._hits(self.oracle._table[at[:, None], wanted[rows]])
            best = self._best(
                hits,
                self.oracle._sizes[at],
                wanted.shape[1],
                aim,
                None if aimed is None else aimed[rows, None],
            )
            buckets[rows] = _any(best, rng)
        return self.oracle.reports(self.oracle._list[places], buckets)

    def expected_hits(
        self, r: int, *, aim: Aim = "most", search: Search = DEFAULT_SEARCH, m: int = 1
    ) -> None:
        """Return None: the law depends on the items."""
        return

    def crafted_support(
        self,
        included: FloatArray,
        r: int,
        *,
        aim: Aim = "most",
        search: Search = DEFAULT_SEARCH,
        m: int = 1,
    ) -> FloatArray:
        """Return pi exactly, for at most 1,024 possible sets of wanted items."""
        if r == 1 and aim in ("most", "projected"):
            return self.encoded_support(included)
        items = np.flatnonzero(included)
        sets = math.comb(items.size, r)
        if sets > _SUBSETS:
            raise ParameterError(
                f"{self.protocol} lacks a law of reports crafted for {r} of {items.size} items, of "
                "which there are too many"
            )
        shares = np.zeros(self.oracle._sizes.shape)
        for wanted in combinations(items.tolist(), r):
            weight = float(included[wanted[0]]) if r == 1 else 1 / sets
            hits = self.oracle._hits(self.oracle._table[:, wanted])
            for size, likely in self._aimed(aim):
                best = self._best(hits, self.oracle._sizes, r, aim, size)
                shares += weight * likely * best / best.sum(axis=1, keepdims=True)
        return self.oracle._support_of_shares(shares)

    def log_likelihood(self, reports: Reports, target: int) -> FloatArray:
        return np.zeros(len(reports))

    def uniform_reports(self, m: int, rng: np.random.Generator) -> Reports:
        return self.oracle.reports(
            self.oracle._list[self.oracle._pick(m, rng)],
            rng.integers(self.oracle.hash_range, size=m),
        )

    @property
    def uniform_support(self) -> float:
        return self.q

    def report_of_size(
        self, size: float, rng: np.random.Generator, *, search: int = DEFAULT_SEARCH
    ) -> Reports:
        raise ParameterError(f"{self.protocol} lacks a report that others may send as well")

    def _best(
        self,
        hits: Int64Array,
        sizes: Int64Array,
        r: int,
        aim: Aim,
        aimed: "Int64Array | int | None",
    ) -> BoolArray:
        """Tell which buckets of each row are the best for this aim."""
        if aim == "balanced":
            return _greatest(hits - np.abs(sizes - self.domain_size // self.oracle.hash_range))
        if aim == "honest":
            return _greatest(hits - (r + 1) * np.abs(sizes - np.asarray(aimed)))
        return _greatest(hits)

    def _aimed(self, aim: Aim) -> list[tuple[int | None, float]]:
        """Return the sizes that a report of this aim may be drawn to have, with their
        probabilities.
        """
        if aim != "honest":
            return [(None, 1.0)]
        law = self.oracle._honest_sizes.probabilities()
        likely = np.flatnonzero(law > _NEGLIGIBLE)
        total = float(law[likely].sum())
        return [(int(size), float(law[size]) / total) for size in likely]


@dataclass(frozen=True)
class _GivenSeedsCoins(CoinCrafter):
    oracle: GivenSeedsOLH

    @property
    def room(self) -> float:
        return math.inf

    def craft(
        self,
        targets: Int64Array,
        rate: float,
        m: int,
        rng: np.random.Generator,
        *,
        search: int = DEFAULT_SEARCH,
    ) -> Reports:
        """Return the given seeds, and of each the bucket that holds a wished number of targets, or
        nearest to it.

        The number is from Binomial(r, rate); the smaller of two as near, and a random one of
        several buckets.
        """
        places = self.oracle._pick(m, rng)
        wishes = rng.binomial(targets.size, rate, size=m)
        hits = self.oracle._hits(self.oracle._table[:, targets])
        return self.oracle.reports(
            self.oracle._list[places], _any(_nearest(hits[places], wishes[:, None]), rng)
        )

    def support(
        self, targets: Int64Array, rate: float, *, search: int = DEFAULT_SEARCH
    ) -> FloatArray:
        hits = self.oracle._hits(self.oracle._table[:, targets])
        shares = np.zeros(hits.shape)
        for wish, likely in enumerate(binomial_law(targets.size, rate).tolist()):
            best = _nearest(hits, np.int64(wish))
            shares += likely * best / best.sum(axis=1, keepdims=True)
        return self.oracle._support_of_shares(shares)


def _greatest(scores: Int64Array) -> BoolArray:
    best: BoolArray = scores == scores.max(axis=1, keepdims=True)
    return best


def _nearest(hits: Int64Array, wishes: "Int64Array | np.int64") -> BoolArray:
    return _greatest(-2 * np.abs(hits - wishes) - (hits > wishes))


def _any(best: BoolArray, rng: np.random.Generator) -> Int64Array:
    """Return for each row the place of one of its best, at random."""
    places: Int64Array = np.where(best, rng.random(best.shape), -1.0).argmax(axis=1)
    return places
