"""The contract of every frequency oracle.

No other package compares a protocol with a name or a class. Code asks for a trait, a law, the
crafter or a method. A protocol that lacks one has None, or raises ParameterError with its name.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import counting
from ldprecover.counting.tally import Tally
from ldprecover.crafting.crafter import COINS, CRAFTED, CoinCrafter, Crafter
from ldprecover.errors import ParameterError
from ldprecover.laws import (
    FixedSize,
    HitLaw,
    IndependentHits,
    IndependentSizes,
    JointSupport,
    Laws,
    OneItemHits,
    required,
)
from ldprecover.protocols.randomiser import LocalRandomiser
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports

_CHUNK = 1 << 22  # (report, item) pairs of a block of reports that is drawn


@dataclass(frozen=True)
class FrequencyOracle(LocalRandomiser):
    """A pure LDP protocol for frequencies (Wang et al., USENIX Security 2017).

    Estimation needs only `p`, `q` and the support counts: p = P(v in S(z)) for a user who holds v,
    and q for a user who does not. If `traits.pure` is false, q is the same for all items only on
    average, and the protocol has its own way from counts to estimates.

    Counts are read from a summary of the reports that adds. For most protocols the summary is the
    counts.
    """

    @property
    def summary_size(self) -> int:
        """The number of integers in a summary."""
        return self.domain_size

    @abstractmethod
    def summarise(self, reports: Reports) -> Int64Array:
        """Return the summary of checked reports.

        Summaries add. No number in a summary exceeds the number of reports.
        """

    def counts_from(self, summary: Int64Array) -> Int64Array:
        """Return C(v), the number of reports that support v, for each of the d items."""
        return summary

    def support_counts(self, reports: Reports) -> Int64Array:
        """Return C(v), the number of reports that support v, for each of the d items."""
        return self.counts_from(self.summarise(reports))

    def summarise_with_sizes(self, reports: Reports) -> tuple[Int64Array, Int64Array]:
        """Return the summary of checked reports, and how many items each report supports."""
        return self.summarise(reports), self.support_sizes(reports)

    def pair_counts(self, reports: Reports, items: Int64Array) -> Int64Array:
        """Return the number of reports that support both of two items, (m, m) for m items.

        The diagonal has the support count of each item.
        """
        lines = counting.packed_lines(self.supported(reports, items).T)
        return counting.joint_counts(lines, lines)

    def subset_counts(self, reports: Reports, subsets: BoolArray) -> Int64Array:
        """Return the support counts of s subsets of n reports, (s, d).

        Row i of `subsets`, (s, n), selects the reports of subset i. Subsets may overlap.
        """
        counts = [self.support_counts(reports[chosen]) for chosen in subsets]
        return np.array(counts, np.int64).reshape(len(subsets), self.domain_size)

    def tally_of_counts(self, counts: ArrayLike, n: int) -> Tally:
        """Return the tally of n reports from their support counts.

        Raises ParameterError for a protocol whose summary holds more than the counts.
        """
        if type(self).counts_from is not FrequencyOracle.counts_from:
            raise self._lacks("tallies that are support counts")
        tally = Tally(np.asarray(counts), n)
        tally.counts(self)
        return tally

    def estimate(self, counts: ArrayLike, n: int) -> FloatArray:
        """Return the unbiased frequencies f~(v) = (C(v)/n - q)/(p - q); never clipped."""
        if n < 1:
            raise ParameterError("an estimate needs at least one report")
        return self.frequencies_of(np.asarray(counts, dtype=np.float64) / n)

    def frequencies_of(self, shares: ArrayLike) -> FloatArray:
        """Return (pi(v) - q)/(p - q), the estimate if a share pi(v) of the reports supports item v.

        The last axis holds the items.
        """
        frequencies: FloatArray = (np.asarray(shares, dtype=np.float64) - self.q) / (
            self.p - self.q
        )
        return frequencies

    def variance(self, frequencies: ArrayLike, n: int) -> FloatArray:
        """Return Var f~(v) at true frequencies f from n honest reports (paper, Lemma 2).

        q(1-q)/(n(p-q)^2) + f(v)(1-p-q)/(n(p-q)), exact for every pure protocol.
        """
        if n < 1:
            raise ParameterError("a variance needs at least one report")
        f = np.asarray(frequencies, dtype=np.float64)
        p, q = self.p, self.q
        return q * (1 - q) / (n * (p - q) ** 2) + f * (1 - p - q) / (n * (p - q))

    def standard_errors(self, frequencies: ArrayLike, n: int) -> FloatArray:
        """Return the square root of Lemma 2's variance at the estimates clipped to [0, 1]."""
        f = np.clip(np.asarray(frequencies, dtype=np.float64), 0.0, 1.0)
        return np.sqrt(self.variance(f, n))

    @property
    def laws(self) -> Laws:
        """The distributions of honest reports, as far as `traits` and `fixed_size` state them.

        A protocol that knows more replaces these by its own: `replace(super().laws, hits=...)`.
        """
        d, p, q, traits = self.domain_size, self.p, self.q, self.traits
        laws = Laws(self.protocol, d, p, q, hits=HitLaw(p, q))
        if traits.independent_bits:
            # One of the z items is the user's own.
            joint_support = JointSupport(lambda z: p * q ** (z - 1))
            laws = replace(
                laws,
                sizes=IndependentSizes(d, p, q),
                hits=IndependentHits(p, q),
                joint_support=joint_support,
            )
        if traits.one_item:
            laws = replace(laws, hits=OneItemHits(p, q))
        if self.fixed_size is not None:
            laws = replace(laws, sizes=FixedSize(d, self.fixed_size))
        if traits.extremal:
            laws = replace(laws, likelihood_ratio=math.exp(self.epsilon))
        return laws

    @property
    def crafter(self) -> Crafter | None:
        """Crafts reports as malicious users do; None for a protocol that does not say how."""
        return None

    @property
    def malicious_sum(self) -> float:
        """S = (1 - qd)/(p - q), the sum of f~_Y of one-item malicious reports (paper, V-C)."""
        return (1 - self.q * self.domain_size) / (self.p - self.q)

    def honest_tally(self, true_counts: ArrayLike, rng: np.random.Generator) -> Tally:
        """Return a tally of honest reports of true_counts[v] users of item v, from its exact law.

        Raises ParameterError unless there is an integer of at least 0 for each of the d items.
        """
        return self._tally(self.perturb, self._true_counts(true_counts), rng)

    def population_tally(self, weights: FloatArray, n: int, rng: np.random.Generator) -> Tally:
        """Return a tally of n honest reports of users whose items are drawn from `weights`."""
        return self.honest_tally(rng.multinomial(n, weights), rng)

    def encoded_tally(self, true_counts: ArrayLike, rng: np.random.Generator) -> Tally:
        """Return a tally of reports that encode, unperturbed, item v for true_counts[v] users.

        Raises ParameterError as `honest_tally` does.
        """
        return self._tally(self.encode, self._true_counts(true_counts), rng)

    def _tally(
        self,
        report: Callable[[Int64Array, np.random.Generator], Reports],
        users: Int64Array,
        rng: np.random.Generator,
    ) -> Tally:
        items = np.repeat(np.arange(self.domain_size), users)
        step = max(1, _CHUNK // self.domain_size)
        summary = np.zeros(self.summary_size, np.int64)
        for start in range(0, items.size, step):
            summary += self.summarise(report(items[start : start + step], rng))
        return Tally(summary, items.size)

    def _supported_mass(self, reports: Reports, frequencies: FloatArray) -> FloatArray:
        """Return the frequencies of the items that each report supports, summed."""
        mass: FloatArray = self.supports(reports).astype(np.float64) @ frequencies
        return mass

    def _true_counts(self, true_counts: ArrayLike) -> Int64Array:
        d = self.domain_size
        counts = np.asarray(true_counts)
        if (
            counts.shape != (d,)
            or not np.issubdtype(counts.dtype, np.integer)
            or (counts < 0).any()
        ):
            raise ParameterError(
                f"true_counts must be an integer of at least 0 for each of the {d} items"
            )
        return counts.astype(np.int64, copy=False)


def crafter_of(oracle: FrequencyOracle) -> Crafter:
    """Return the crafter of a protocol. Raises ParameterError where it has none."""
    return required(oracle.crafter, oracle.protocol, CRAFTED)


def coins_of(oracle: FrequencyOracle) -> CoinCrafter:
    """Return the coin crafter of a protocol. Raises ParameterError where it has none."""
    coins = None if oracle.crafter is None else oracle.crafter.coins
    return required(coins, oracle.protocol, COINS)
