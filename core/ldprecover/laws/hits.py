"""Hit laws: the distribution of the number of given items that an honest report supports."""

from dataclasses import dataclass

import numpy as np

from ldprecover.laws.distributions import binomial_law
from ldprecover.types import FloatArray, Int64Array


@dataclass(frozen=True)
class HitLaw:
    """The law of |S(z) & R| for a set R of r items, known here for a single item alone.

    A protocol with more structure overrides both methods.
    """

    p: float
    q: float

    def of_others(self, items: Int64Array) -> FloatArray | None:
        """Return P(j) for j from 0 to r, for a user who holds none of the r items.

        None where the law is not known, or depends on the item that the user holds.
        """
        return np.array([1 - self.q, self.q]) if len(items) == 1 else None

    def variances(self, r: int) -> tuple[float, float] | None:
        """Return the variance for a user who holds one of r items, and for one who holds none.

        None where they are not known, or depend on which items they are.
        """
        return None


class OneItemHits(HitLaw):
    """Every report supports exactly one item."""

    def of_others(self, items: Int64Array) -> FloatArray:
        r = len(items)
        return np.concatenate([[1 - r * self.q, r * self.q], np.zeros(r - 1)])

    def variances(self, r: int) -> tuple[float, float]:
        hit, miss = self.p + (r - 1) * self.q, r * self.q
        return hit * (1 - hit), miss * (1 - miss)


class IndependentHits(HitLaw):
    """The items that a report supports are independent, given the item that its user holds."""

    def of_others(self, items: Int64Array) -> FloatArray:
        law = super().of_others(items)
        return binomial_law(len(items), self.q) if law is None else law

    def variances(self, r: int) -> tuple[float, float]:
        p, q = self.p, self.q
        return p * (1 - p) + (r - 1) * q * (1 - q), r * q * (1 - q)
