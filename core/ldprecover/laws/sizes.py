"""Size laws: the distribution of the number of items that an honest report supports."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ldprecover.laws.distributions import binomial_law
from ldprecover.types import FloatArray, Int64Array, Rng


class SizeLaw(ABC):
    """The distribution of |S(z)|, the number of items that an honest report supports.

    It is the same for every item that a user may hold. For a protocol that hashes it holds under
    an ideal hash.
    """

    @property
    @abstractmethod
    def variance(self) -> float:
        """Var |S(z)|."""

    @abstractmethod
    def probabilities(self) -> FloatArray:
        """Return P(|S(z)| = k) for k from 0 to d."""

    @abstractmethod
    def draw(self, m: int, rng: Rng) -> Int64Array:
        """Return m independent sizes."""


@dataclass(frozen=True)
class FixedSize(SizeLaw):
    """Every report supports `size` of the d items."""

    domain_size: int
    size: int

    @property
    def variance(self) -> float:
        return 0.0

    def probabilities(self) -> FloatArray:
        law = np.zeros(self.domain_size + 1)
        law[self.size] = 1.0
        return law

    def draw(self, m: int, rng: Rng) -> Int64Array:
        return np.full(m, self.size)


@dataclass(frozen=True)
class IndependentSizes(SizeLaw):
    """A report supports its user's item with probability p, and each of d - 1 others with q.

    These d events are independent, so the size is a Bernoulli(p) plus a Binomial(d - 1, q) number.
    """

    domain_size: int
    p: float
    q: float

    @property
    def variance(self) -> float:
        return self.p * (1 - self.p) + (self.domain_size - 1) * self.q * (1 - self.q)

    def probabilities(self) -> FloatArray:
        others = binomial_law(self.domain_size - 1, self.q)
        return (1 - self.p) * np.append(others, 0.0) + self.p * np.append(0.0, others)

    def draw(self, m: int, rng: Rng) -> Int64Array:
        others = rng.binomial(self.domain_size - 1, self.q, size=m)
        return others + (rng.random(m) < self.p)
