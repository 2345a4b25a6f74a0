"""Symmetric unary encoding, also called basic RAPPOR: a report is a bit vector over the items."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import counting
from ldprecover.protocols.description import Traits
from ldprecover.protocols.sampling import flip_threshold, words_from
from ldprecover.protocols.unary import UnaryEncoding, set_bits
from ldprecover.types import Reports, Rng


@dataclass(frozen=True)
class SUE(UnaryEncoding):
    """Symmetric unary encoding (Wang et al., USENIX Security 2017), also called basic RAPPOR.

    The report is d independent bits, one for the user's item and zero for the others, each flipped
    with probability q = 1/(e^(eps/2) + 1). So p = 1 - q. It supports the items whose bits are one.
    Basic RAPPOR is by Erlingsson et al., CCS 2014.

    Two bits distinguish two items, so each spends half of epsilon: the variance at f = 0 is 1.06
    times that of OUE at epsilon 1, 1.27 times at 2 and 2.4 times at 4.

        SUE(epsilon=1.0, domain_size=4).perturb([0, 3, 3])
    """

    protocol = "sue"
    title = "symmetric unary encoding"
    traits = Traits(independent_bits=True, extremal=True)

    @property
    def p(self) -> float:
        root = math.exp(self.epsilon / 2)
        return root / (root + 1)

    @property
    def q(self) -> float:
        return 1 / (math.exp(self.epsilon / 2) + 1)

    @property
    def thresholds(self) -> dict[str, int]:
        # The smallest t with ((2^64 - t)/t)^2 <= e^eps. Half a double is a double, so epsilon / 2
        # is exact.
        return {"turn_below": flip_threshold(self.epsilon / 2)}

    def perturb(self, items: ArrayLike, rng: Rng | None = None) -> Reports:
        user_items = self.item_indices(items)
        words = words_from(rng)
        turned = self.thresholds["turn_below"]
        rows = counting.unary_rows(user_items.size, self.domain_size, turned, words)
        ones = words(user_items.size) >= np.uint64(turned)
        set_bits(rows, user_items, ones.view(np.uint8))
        return rows
