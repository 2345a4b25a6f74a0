"""Optimised unary encoding: a report is a bit vector over the items."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import counting
from ldprecover.protocols.description import Traits
from ldprecover.protocols.laws import JointSupport, Laws
from ldprecover.protocols.sampling import flip_threshold, words_from
from ldprecover.protocols.unary import UnaryEncoding, set_bits
from ldprecover.types import Reports, Rng


@dataclass(frozen=True)
class OUE(UnaryEncoding):
    """Optimised unary encoding (paper, III-B; Wang et al., USENIX Security 2017).

    The report is d independent bits: the bit of the user's item is one with probability p = 1/2,
    every other bit with probability q = 1/(e^eps + 1). It supports the items whose bits are one.

    Packed, item i is bit i%8 of byte i//8 (bit 0 the least significant); padding bits are zero.

        OUE(epsilon=1.0, domain_size=4).perturb([0, 3, 3])
    """

    protocol = "oue"
    title = "optimised unary encoding"
    traits = Traits(independent_bits=True, extremal=True)

    @property
    def p(self) -> float:
        return 0.5

    @property
    def q(self) -> float:
        return 1 / (math.exp(self.epsilon) + 1)

    @property
    def thresholds(self) -> dict[str, int]:
        return {"flip_below": flip_threshold(self.epsilon)}

    def perturb(self, items: ArrayLike, rng: Rng | None = None) -> Reports:
        user_items = self.item_indices(items)
        words = words_from(rng)
        rows = counting.unary_rows(
            user_items.size, self.domain_size, self.thresholds["flip_below"], words
        )
        coins = words(-(-user_items.size // 64)).view(np.uint8)
        ones = np.unpackbits(coins, count=user_items.size, bitorder="little")
        set_bits(rows, user_items, ones)
        return rows

    @property
    def laws(self) -> Laws:
        laws = super().laws
        if laws.joint_support is None:  # of a subclass whose bits are not independent
            return laws
        return replace(laws, joint_support=_ChebyshevJointSupport(laws.joint_support.bound))


class _ChebyshevJointSupport(JointSupport):
    """Chebyshev's bound, as Cao et al. use it for OUE (USENIX Security 2021)."""

    def threshold(self, n: int, z: int, rate: float) -> int:
        """Return tau = nw + sqrt(nw(1-w)/rate) with w = pq^(z-1)."""
        w = self.bound(z)
        return math.ceil(n * w + math.sqrt(n * w * (1 - w) / rate))
