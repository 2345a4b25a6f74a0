"""The one contract of every frequency oracle: what everything outside this package asks of a
protocol.

Nothing outside compares a protocol with a name or a class. It asks a trait, a law or a method; a
protocol that lacks one raises ParameterError with its name and the reason.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import counting
from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.laws import distributions
from ldprecover.protocols.crafting import CraftedReports
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports

_CHUNK = 1 << 22  # (report, item) pairs of the reports that are drawn at once


@dataclass(frozen=True)
class FrequencyOracle(CraftedReports):
    """A pure LDP protocol for frequencies (Wang et al., USENIX Security 2017).

    Everything after counting needs only `p`, `q` and the support counts: p = P(v in S(z)) for a
    user who holds v, q = the same for a user who does not. Where `traits.pure` is false, q is the
    same for all items but only on average, and the protocol has its own way from counts to
    estimates.

    Counts are read off a summary of the reports that adds. For most protocols the summary is the
    counts.
    """

    @property
    def summary_size(self) -> int:
        """Integers in a summary."""
        return self.domain_size

    @abstractmethod
    def summarise(self, reports: Reports) -> Int64Array:
        """Return the summary of checked reports: summaries add, and no number in one is above that
        of the reports.
        """

    def counts_from(self, summary: Int64Array) -> Int64Array:
        """Return C(v), the number of reports that support v, for each of the d items."""
        return summary

    def support_counts(self, reports: Reports) -> Int64Array:
        """Return C(v), the number of reports that support v, for each of the d items."""
        return self.counts_from(self.summarise(reports))

    def summarise_with_sizes(self, reports: Reports) -> tuple[Int64Array, Int64Array]:
        """Return the summary of checked reports, and the number of items that each of them
        supports.
        """
        return self.summarise(reports), self.support_sizes(reports)

    def pair_counts(self, reports: Reports, items: Int64Array) -> Int64Array:
        """Return how many reports support both of two items, (m, m) for m items: in the diagonal
        those of each.
        """
        lines = counting.packed_lines(self.supported(reports, items).T)
        return counting.joint_counts(lines, lines)

    def subset_counts(self, reports: Reports, subsets: BoolArray) -> Int64Array:
        """Return the support counts of several subsets of the reports, (s, d): row i of `subsets`,
        (s, n), tells whose.

        Subsets may overlap.
        """
        counts = [self.support_counts(reports[chosen]) for chosen in subsets]
        return np.array(counts, np.int64).reshape(len(subsets), self.domain_size)

    def tally_of_counts(self, counts: ArrayLike, n: int) -> Tally:
        """Return the tally of n reports from their support counts.

        Raises ParameterError for a protocol whose summary says more than the counts do.
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
        """Return (pi(v) - q)/(p - q): what reports are estimated as of which a share pi(v) supports
        item v.

        The items are the last axis.
        """
        frequencies: FloatArray = (np.asarray(shares, dtype=np.float64) - self.q) / (
            self.p - self.q
        )
        return frequencies

    def honest_support(self, weights: FloatArray) -> FloatArray:
        """Return pi, the expected share of honest reports that support each item of users who hold
        it by `weights`.
        """
        support: FloatArray = self.q + weights * (self.p - self.q)
        return support

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
        """Return the square root of Lemma 2's variance at the estimates clipped into [0, 1]."""
        f = np.clip(np.asarray(frequencies, dtype=np.float64), 0.0, 1.0)
        return np.sqrt(self.variance(f, n))

    def sum_variance(self, n: int) -> float:
        """Return Var sum_v f~(v) of n honest reports, or a bound on it, whatever their users' items
        are.

        Raises ParameterError as `support_size_law` does.
        """
        return self.support_size_variance() / (n * (self.p - self.q) ** 2)

    def partial_sum_variance(self, items: int, share: float, n: int) -> float:
        """Return Var of the sum of the estimates of so many items, one or more, from n honest
        reports.

        A `share` of the users holds one of them: a bin, a range or the first k. Raises
        ParameterError where it hangs on which items they are, or is not known.
        """
        if items == 1:
            return float(self.variance(share, n))
        own, others = self.hits_variances(items)
        return (share * own + (1 - share) * others) / (n * (self.p - self.q) ** 2)

    def hits_variances(self, items: int) -> tuple[float, float]:
        """Return Var|S(z) & R| of a user who holds one of the r items of a set R, and of one who
        holds none.

        Raises ParameterError as `partial_sum_variance` does.
        """
        p, q, r = self.p, self.q, items
        if self.traits.one_item:
            hit, miss = p + (r - 1) * q, r * q
            return hit * (1 - hit), miss * (1 - miss)
        if self.traits.independent_bits:
            return p * (1 - p) + (r - 1) * q * (1 - q), r * q * (1 - q)
        raise self._lacks("a law of the sum of several estimates that is the same for all items")

    @property
    def malicious_sum(self) -> float:
        """S = (1 - qd)/(p - q): the sum of f~_Y if each malicious report supports one item (paper,
        V-C).
        """
        return (1 - self.q * self.domain_size) / (self.p - self.q)

    def support_size_law(self) -> FloatArray:
        """Return P(k) for k = 0..d: the law of the number of items that an honest report supports.

        Whatever its user's item is; under an ideal hash where the protocol hashes. Raises
        ParameterError where it depends on the item, or is not known.
        """
        if self.fixed_size is not None:
            law = np.zeros(self.domain_size + 1)
            law[self.fixed_size] = 1.0
            return law
        if self.traits.independent_bits:
            return distributions.support_size_law(self.domain_size, self.p, self.q)
        raise self._lacks("a law of the number of items that a report supports")

    def support_size_variance(self) -> float:
        """Return Var|S(z)| of an honest report. Raises ParameterError as `support_size_law`
        does.
        """
        if self.fixed_size is not None:
            return 0.0
        if self.traits.independent_bits:
            return self.p * (1 - self.p) + (self.domain_size - 1) * self.q * (1 - self.q)
        raise self._lacks("a law of the number of items that a report supports")

    def others_law(self, items: Int64Array) -> FloatArray:
        """Return P(j) for j = 0..r: how many of r items an honest report supports whose user holds
        none of them.

        Raises ParameterError where that is not known.
        """
        r = len(items)
        if self.traits.one_item or r == 1:
            return np.concatenate([[1 - r * self.q, r * self.q], np.zeros(r - 1)])
        if self.traits.independent_bits:
            return distributions.binomial_law(r, self.q)
        raise self._lacks("a law of how many of several items a report supports")

    def all_supporting(self, summary: Int64Array) -> tuple[int, float]:
        """Return how many of the reports support every item, and with which probability an honest
        one does.

        Raises ParameterError where the summary does not tell.
        """
        raise self._lacks("a count of the reports that support every item")

    def joint_support(self, z: int) -> float:
        """Return a bound on the probability that an honest report supports z given items, whatever
        item it is for.

        Raises ParameterError where none is known.
        """
        if self.traits.independent_bits:
            return self.p * self.q ** (z - 1)  # one of the items is its user's own
        raise self._lacks("a law of supporting several items at once")

    def joint_support_threshold(self, n: int, z: int, rate: float) -> int:
        """Return tau: so many of n honest reports support z given items at once with probability
        `rate` at most.

        Raises ParameterError as `joint_support` does.
        """
        return distributions.binomial_threshold(n, self.joint_support(z), rate)

    def log_likelihood(self, reports: Reports, frequencies: FloatArray) -> FloatArray:
        """Return log P(z) of honest reports of users whose items are drawn from the frequencies, a
        distribution.

        Given its seed, for a report that has one. Raises ParameterError where it is not known.
        """
        raise self._lacks("a likelihood of its reports")

    def crafted_log_likelihood(self, reports: Reports, target: int) -> FloatArray:
        """Return log P(z) of reports crafted for one target (Cao et al., USENIX Security 2021), on
        the same scale.

        The reports all support the target. Raises ParameterError where it is not known.
        """
        raise self._lacks("a likelihood of crafted reports")

    def honest_tally(self, true_counts: ArrayLike, rng: np.random.Generator) -> Tally:
        """Return a tally of honest reports, drawn from its exact law, where true_counts[v] users
        hold item v.

        Raises ParameterError unless there is a whole number of users, at least 0, for each of the d
        items.
        """
        return self._tally(self.perturb, self._true_counts(true_counts), rng)

    def population_tally(self, weights: FloatArray, n: int, rng: np.random.Generator) -> Tally:
        """Return a tally of n honest reports of users whose items are drawn from `weights`, a
        distribution.
        """
        return self.honest_tally(rng.multinomial(n, weights), rng)

    def encoded_tally(self, true_counts: ArrayLike, rng: np.random.Generator) -> Tally:
        """Return a tally of reports that encode, unperturbed, item v for true_counts[v] users.

        Raises ParameterError as `honest_tally` does.
        """
        return self._tally(self.encode, self._true_counts(true_counts), rng)

    def _tally(
        self,
        report: Callable[[Int64Array, np.random.Generator], Reports],
        held: Int64Array,
        rng: np.random.Generator,
    ) -> Tally:
        items = np.repeat(np.arange(self.domain_size), held)
        step = max(1, _CHUNK // self.domain_size)
        summary = np.zeros(self.summary_size, np.int64)
        for start in range(0, items.size, step):
            summary += self.summarise(report(items[start : start + step], rng))
        return Tally(summary, items.size)

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
