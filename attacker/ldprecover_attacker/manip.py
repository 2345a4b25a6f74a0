"""The manipulation attack."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ldprecover.types import FloatArray, Rng
from ldprecover_attacker.arguments import check_size, size_or_default
from ldprecover_attacker.base import ModelledAttack


@dataclass(frozen=True)
class Manip(ModelledAttack):
    """Distorts all frequencies: users share a secret random set H of items (Cheu et al., IEEE S&P
    2021; paper, VI-A).

    P is uniform on H. `size` is |H|, 1 to d. The paper does not say how large H is; the default is
    ceil(d/2), half the items, and `resolve` writes the number down.

    Crafted, a report is made for the one item its user drew. For GRR and OLH that is the sampled
    report; an OUE report gets the ones of an honest report's size in place of a single one.

    S and gain as for `AA`, with its own P.

    Raises ParameterError for a size outside its range.
    """

    name = "manip"

    size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size(self.size)

    def resolve(self, items: Sequence[str]) -> Self:
        return replace(self, size=self._size(len(items)))

    def distribution(self, d: int, rng: Rng) -> FloatArray:
        size = self._size(d)
        weights = np.zeros(d)
        weights[rng.choice(d, size=size, replace=False)] = 1 / size
        return weights

    def _size(self, d: int) -> int:
        return size_or_default(self.size, default=(d + 1) // 2, maximum=d)
