"""The contract of every frequency oracle.

No other package compares a protocol with a name or a class. Code asks for a trait, a law, the
crafter or a method. A protocol that lacks one has None, or raises ParameterError with its name.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

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
from ldprecover.protocols.simulation import Simulation
from ldprecover.types import FloatArray, Int64Array, Reports


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

    def estimate(self, counts: ArrayLike, n: int) -> FloatArray:
        """Return the unbiased frequencies f~(v) = (C(v)/n - q)/(p - q); never clipped.

        The last axis holds the items. With n = 1 the counts may be shares of the reports.
        """
        if n < 1:
            raise ParameterError("an estimate needs at least one report")
        shares = np.asarray(counts, dtype=np.float64) / n
        return (shares - self.q) / (self.p - self.q)

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
    def simulation(self) -> Simulation:
        """Draws tallies of simulated users; by default it draws their reports."""
        return Simulation(self)

    def _supported_mass(self, reports: Reports, frequencies: FloatArray) -> FloatArray:
        """Return the frequencies of the items that each report supports, summed."""
        return self.supports(reports).astype(np.float64) @ frequencies


def crafter_of(oracle: FrequencyOracle) -> Crafter:
    """Return the crafter of a protocol. Raises ParameterError where it has none."""
    return required(oracle.crafter, oracle.protocol, CRAFTED)


def coins_of(oracle: FrequencyOracle) -> CoinCrafter:
    """Return the coin crafter of a protocol. Raises ParameterError where it has none."""
    coins = None if oracle.crafter is None else oracle.crafter.coins
    return required(coins, oracle.protocol, COINS)
