"""Simulated tallies of users of a protocol, drawn from the law of its tallies where it is known.

Such a law takes O(d) draws where reports take O(n) or O(nd). A protocol without one draws the
reports.

The draws are exact; for OLH under an ideal hash, for which the buckets of different items are
independent and uniform. A report of a user who holds x is a (function H, bucket a) where a depends
on H(x) and on coins alone. So for every v other than x the event H(v) = a has probability 1/g for
every a. These events are independent of each other and of H(x) = a, which has probability p. A
report's support is therefore independent item by item, as an OUE report's is, with q = 1/g. On the
wire xxHash32 with a random seed stands for that hash.

Simulation uses the doubles p and q as they are; perturbing real reports rounds thresholds to 2^-64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import ArrayLike

from ldprecover._checks import check_whole, counts_of
from ldprecover.errors import ParameterError
from ldprecover.protocols import GRR, OLH, FrequencyOracle, UnaryEncoding
from ldprecover.protocols.integer_reports import IntegerReports
from ldprecover.reports.tally import Tally
from ldprecover.types import FloatArray, Int64Array, Reports, Rng

_CELLS = 1 << 22  # (report, item) pairs of a block of reports that is drawn


@dataclass(frozen=True)
class TallySampler:
    """Draws tallies of simulated users of a protocol, here by drawing their reports.

    A protocol that knows the law of its tallies overrides `draw_honest` and `draw_encoded`, whose
    `users` are the number of users of each item.
    """

    oracle: FrequencyOracle

    def honest_tally(self, true_counts: ArrayLike, rng: Rng) -> Tally:
        """Return a tally of honest reports of true_counts[v] users of item v, from its exact law.

        Raises ParameterError unless there is an integer of at least 0 for each of the d items.
        """
        return self.draw_honest(self._users(true_counts), rng)

    def population_tally(self, weights: FloatArray, n: int, rng: Rng) -> Tally:
        """Return a tally of n honest reports of users whose items are drawn from `weights`."""
        return self.honest_tally(rng.multinomial(check_whole("n", n, 0), weights), rng)

    def encoded_tally(self, true_counts: ArrayLike, rng: Rng) -> Tally:
        """Return a tally of reports that encode, unperturbed, item v for true_counts[v] users.

        Raises ParameterError as `honest_tally` does.
        """
        return self.draw_encoded(self._users(true_counts), rng)

    def draw_honest(self, users: Int64Array, rng: Rng) -> Tally:
        """Return a tally of reports of `perturb`."""
        return self._tally(self.oracle.perturb, users, rng)

    def draw_encoded(self, users: Int64Array, rng: Rng) -> Tally:
        """Return a tally of reports of `encode`."""
        return self._tally(self.oracle.encode, users, rng)

    @property
    def block(self) -> int:
        """The number of reports that are drawn at a time."""
        return max(1, _CELLS // self.oracle.domain_size)

    def _tally(
        self, report: Callable[[Int64Array, Rng], Reports], users: Int64Array, rng: Rng
    ) -> Tally:
        self.oracle.wire.check_users(int(users.sum()))
        items = np.repeat(np.arange(self.oracle.domain_size), users)
        summary = np.zeros(self.oracle.summary_size, np.int64)
        for start in range(0, items.size, self.block):
            summary += self.oracle.summarise(report(items[start : start + self.block], rng))
        return Tally(summary, items.size)

    def _users(self, true_counts: ArrayLike) -> Int64Array:
        d = self.oracle.domain_size
        counts = counts_of(true_counts, "true_counts")
        if counts.shape != (d,):
            raise ParameterError(f"true_counts must be of the {d} items, not of {counts.shape}")
        return counts


@dataclass(frozen=True)
class HistogramSampler(TallySampler):
    """Draws tallies of populations of any size where each report has a known law."""

    block = 1 << 20

    def population_tally(self, weights: FloatArray, n: int, rng: Rng) -> Tally:
        """Return a tally drawn from the law of single reports, in the time of their number."""
        law = self.oracle.laws.report_law(weights)
        assert law is not None
        return Tally(rng.multinomial(n, law / law.sum()), n)


@dataclass(frozen=True)
class IndependentSampler(TallySampler):
    """Draws tallies in O(d) where the items that a report supports are independent.

    For a protocol that hashes this holds under an ideal hash. `encoded_q` is the probability that a
    report of `encode` supports an item other than its own.
    """

    encoded_q: float = 0.0

    def draw_honest(self, users: Int64Array, rng: Rng) -> Tally:
        """Return a tally with C(v) = Bin(n_v, p) + Bin(n - n_v, q), independent over the items."""
        n = int(users.sum())
        p, q = self.oracle.p, self.oracle.q
        return Tally(rng.binomial(users, p) + rng.binomial(n - users, q), n)

    def draw_encoded(self, users: Int64Array, rng: Rng) -> Tally:
        """Return a tally with C(v) = n_v + Bin(n - n_v, encoded_q)."""
        n = int(users.sum())
        return Tally(users + rng.binomial(n - users, self.encoded_q), n)


@dataclass(frozen=True)
class OneItemSampler(TallySampler):
    """Draws tallies of generalised randomised response."""

    def draw_honest(self, users: Int64Array, rng: Rng) -> Tally:
        """Return a tally of honest reports, drawn from its exact law in O(d).

        A user reports its own item with probability p - q, and a uniform one of all d items
        otherwise: this is p for its own and q = (1 - p + q)/d for each other. The count of the
        first kind is binomial for each item; the other reports are multinomial over all items.
        """
        n, d = int(users.sum()), self.oracle.domain_size
        own = rng.binomial(users, self.oracle.p - self.oracle.q)
        return Tally(own + rng.multinomial(n - int(own.sum()), np.full(d, 1 / d)), n)

    def population_tally(self, weights: FloatArray, n: int, rng: Rng) -> Tally:
        """Return a tally of n honest reports, drawn from its exact law in O(d) for any n.

        If the item is drawn from the weights w, a report is item v with probability q + (p - q)
        w(v).
        """
        law = self.oracle.laws.honest_support(weights)
        return Tally(rng.multinomial(n, law / law.sum()), n)

    def draw_encoded(self, users: Int64Array, rng: Rng) -> Tally:
        return Tally(users, int(users.sum()))


@singledispatch
def tally_sampler(oracle: FrequencyOracle) -> TallySampler:
    """Return the sampler that is registered for the oracle's class, or the nearest above it.

    A sampler of another protocol is registered with `tally_sampler.register(MyOracle, MySampler)`;
    without one the reports are drawn.

        rng = np.random.default_rng(1)
        tally_sampler(oracle).population_tally(frequencies, 1_000, rng)
    """
    return TallySampler(oracle)


tally_sampler.register(GRR, OneItemSampler)
tally_sampler.register(IntegerReports, HistogramSampler)


@tally_sampler.register(OLH)
def _hashed(oracle: OLH) -> TallySampler:
    return IndependentSampler(oracle, encoded_q=oracle.q)


@tally_sampler.register(UnaryEncoding)
def _unary(oracle: UnaryEncoding) -> TallySampler:
    has_law = oracle.traits.independent_bits
    return IndependentSampler(oracle) if has_law else TallySampler(oracle)
