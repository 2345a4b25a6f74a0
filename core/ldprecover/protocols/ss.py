"""Subset selection: a report is a set of k items."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ldprecover.counting.tiles import tiles
from ldprecover.distributions import hypergeometric_law, log_choose
from ldprecover.errors import ParameterError
from ldprecover.protocols.description import OwnParameter, Traits
from ldprecover.protocols.laws import HitLaw, JointSupport, Laws
from ldprecover.protocols.oracle import MAX_DOMAIN_SIZE
from ldprecover.protocols.sampling import hold_threshold, words_from
from ldprecover.protocols.unary import UnaryEncoding
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports, Rng, UInt8Array, Words

_CELLS = 1 << 20  # random keys in memory, 4 MiB
_LAST = np.uint32(0xFFFFFFFF)  # the greatest key: the user's item is never among the lowest


def default_subset_size(epsilon: float, domain_size: int) -> int:
    """Return k = max(1, round(d/(e^eps + 1))), half to even (Ye and Barg).

    The variance is least next to this k.
    """
    return max(1, round(domain_size / (math.exp(epsilon) + 1)))


@dataclass(frozen=True)
class SS(UnaryEncoding):
    """Subset selection (Ye and Barg, IEEE Trans. Information Theory 2018).

    Also Wang et al., 2016, arXiv:1607.08025. The report is k of the d items: with probability p = k
    e^eps/(k e^eps + d - k) the user's and a uniformly random set of k - 1 others, else a uniformly
    random set of k others. It supports its items, so q = (k(k-1) e^eps + (d-k)k)/((d-1)(k e^eps + d
    - k)). With k = 1 it is GRR.

    It travels as the bits of OUE, k of them one.

        SS(epsilon=1.0, domain_size=8, subset_size=2).perturb([0, 3, 3])
    """

    subset_size: int

    protocol = "ss"
    title = "subset selection"
    traits = Traits(extremal=True)
    parameter = OwnParameter(
        "subset_size",
        1,
        MAX_DOMAIN_SIZE - 1,
        "SS: k, below the number of items, by default max(1, round(d/(e^epsilon + 1))).",
        default_subset_size,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subset_size >= self.domain_size:
            raise ParameterError(
                f"subset_size must be below the number of items, {self.domain_size}"
            )

    @property
    def p(self) -> float:
        k, d, e = self.subset_size, self.domain_size, math.exp(self.epsilon)
        return k * e / (k * e + d - k)

    @property
    def q(self) -> float:
        k, d, e = self.subset_size, self.domain_size, math.exp(self.epsilon)
        return (k * (k - 1) * e + (d - k) * k) / ((d - 1) * (k * e + d - k))

    @property
    def fixed_size(self) -> int:
        return self.subset_size

    @property
    def thresholds(self) -> dict[str, int]:
        return {"hold_below": hold_threshold(self.epsilon, self.domain_size, self.subset_size)}

    def perturb(self, items: ArrayLike, rng: Rng | None = None) -> Reports:
        user_items = self.item_indices(items)
        words = words_from(rng)
        holds = words(user_items.size) < np.uint64(self.thresholds["hold_below"])
        return self._subsets(user_items, holds, words)

    @property
    def laws(self) -> Laws:
        k, d = self.subset_size, self.domain_size

        def joint_support(z: int) -> float:
            # The probability for a user who holds one of the z items, which is the largest.
            return self.p * math.prod(max(k - i, 0) / (d - i) for i in range(1, z))

        return replace(
            super().laws,
            hits=_SubsetHits(self.p, self.q, d, k),
            joint_support=JointSupport(joint_support),
            log_likelihood=self._log_likelihood,
        )

    def _log_likelihood(self, reports: Reports, frequencies: FloatArray) -> FloatArray:
        p, k, d = self.p, self.subset_size, self.domain_size
        mass = self.supported_mass(reports, frequencies)
        # There are (d-k)/k times as many sets of k others as sets of k - 1.
        return np.log(p * (d - k) / k * mass + (1 - p) * (1 - mass)) - log_choose(d - 1, k)

    def _subsets(self, user_items: Int64Array, holds: BoolArray, words: Words) -> UInt8Array:
        """Return packed rows of k ones: the item where `holds` is set, and uniformly random others.

        The others have the lowest of random keys. If the last of them and the next have equal keys
        the row is drawn again, so all sets are exactly equally likely.
        """
        d = self.domain_size
        rows = np.empty((user_items.size, self.row_bytes), dtype=np.uint8)
        for block in tiles((user_items.size, d), _CELLS):
            users = np.arange(block.start, block.stop)
            while users.size:
                bits, distinct = self._draw(user_items[users], holds[users], words)
                rows[users[distinct]] = np.packbits(bits[distinct], axis=1, bitorder="little")
                users = users[~distinct]
        return rows

    def _draw(
        self, user_items: Int64Array, holds: BoolArray, words: Words
    ) -> tuple[BoolArray, BoolArray]:
        """Return the bits of each user's set, and whether it was drawn without a tie."""
        d, k, n = self.domain_size, self.subset_size, user_items.size
        users = np.arange(n)
        keys = words(-(-n * d // 2)).view(np.uint32)[: n * d].reshape(n, d).copy()
        keys[users, user_items] = _LAST
        ranks = sorted({max(k - 2, 0), k - 1, k})
        ordered = np.partition(keys, ranks, axis=1)
        others = k - holds.astype(np.int64)
        last = ordered[users, np.maximum(others - 1, 0)]
        bits = (keys <= last[:, None]) & (others > 0)[:, None]
        bits[others == d - 1] = True
        bits[users, user_items] = holds
        # Without others, or with all of them, there is no choice.
        return bits, (last < ordered[users, others]) | (others == 0) | (others == d - 1)


@dataclass(frozen=True)
class _SubsetHits(HitLaw):
    """Beside the user's item a report supports k - 1 of the d - 1 others at random, or k."""

    domain_size: int
    subset_size: int

    def other_items_law(self, r: int, own: bool) -> FloatArray:
        return hypergeometric_law(self.domain_size - 1, r, self.subset_size - own)

    def variances(self, r: int) -> tuple[float, float]:
        k, d = self.subset_size, self.domain_size
        with_own, without = _others(d - 1, r - 1, k - 1), _others(d - 1, r - 1, k)
        own = _mixed(self.p, (with_own[0] + 1, with_own[1]), without)
        return own, _mixed(self.p, _others(d - 1, r, k - 1), _others(d - 1, r, k))


def _others(d: int, r: int, k: int) -> tuple[float, float]:
    """Return mean and variance of the number of r of d items among k random ones.

    The number is hypergeometric.
    """
    share = r / d
    return k * share, k * share * (1 - share) * (d - k) / max(d - 1, 1)


def _mixed(p: float, one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the variance of a mixture of two variables, each given as (mean, variance).

    The first has probability p.
    """
    return p * one[1] + (1 - p) * other[1] + p * (1 - p) * (one[0] - other[0]) ** 2
