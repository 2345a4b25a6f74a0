"""The adaptive attack of the LDPRecover paper."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ldprecover import ParameterError
from ldprecover.types import FloatArray, Rng
from ldprecover_attacker.arguments import check_size, size_or_default
from ldprecover_attacker.base import ModelledAttack

_KINDS = ("diffuse", "peaked")
_PEAKED_SIZE = 10


@dataclass(frozen=True)
class AA(ModelledAttack):
    """Sends items drawn from a random attacker-designed distribution P (paper, V-C and VI-A).

    The paper only says that P is randomly generated. Two ways:

    - "diffuse": P proportional to independent weights from U(0, 1) on all d items;
    - "peaked": such weights on `size` random items (1 to d, default 10), zero elsewhere. The MSE of
      8.78e-2 that the paper prints for poisoned GRR frequencies (VI-D) needs such a P: it is
      beta^2/(p-q)^2 (sum P^2 - 1/d)/d, so sum P^2 = 0.15, where a diffuse P has about
      4/(3d) = 0.013.

    Crafted, a report is made for the one item its user drew. For GRR and OLH that is the sampled
    report; an OUE report gets the ones of an honest report's size in place of a single one.

    S is that of MGA for sampled reports; crafted, 1 for GRR, (L - qd)/(p-q) for OUE with
    L = floor(p + (d-1)q), and (1-q)/(p-q) for OLH. The gain on any items is beta(sum_T
    (pi(t) - q)/(p-q) - f_T), with pi = P under GRR and sampled OUE, P + (1-P)q under OLH and
    P + (1-P)(L-1)/(d-1) under crafted OUE.

    Raises ParameterError for another kind, a size outside its range, or a size with "diffuse".
    """

    name = "aa"

    kind: str = "diffuse"
    size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in _KINDS:
            raise ParameterError(f"kind must be one of {', '.join(_KINDS)}, not {self.kind!r}")
        if self.kind == "diffuse" and self.size is not None:
            raise ParameterError("size belongs to the peaked kind; diffuse weights all items")
        check_size(self.size)

    def resolve(self, items: Sequence[str]) -> Self:
        return self if self.kind == "diffuse" else replace(self, size=self._size(len(items)))

    def distribution(self, d: int, rng: Rng) -> FloatArray:
        weights = np.zeros(d)
        if self.kind == "diffuse":
            weights[:] = _positive_uniform(d, rng)
        else:
            chosen = rng.choice(d, size=self._size(d), replace=False)
            weights[chosen] = _positive_uniform(chosen.size, rng)
        weights /= weights.sum()
        return weights

    def _size(self, d: int) -> int:
        return size_or_default(self.size, default=_PEAKED_SIZE, maximum=d)


def _positive_uniform(n: int, rng: Rng) -> FloatArray:
    """Return n weights from (0, 1]: `random` is from [0, 1), and weights that are all zero have no
    sum.
    """
    return 1.0 - rng.random(n)
