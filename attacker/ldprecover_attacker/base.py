"""The one contract of every attack."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from ldprecover import FrequencyOracle, ParameterError
from ldprecover._types import FloatArray, Int64Array, Reports
from ldprecover_attacker.crafting import craft

__all__ = ["MODELS", "Attack", "ItemAttack"]

MODELS = ("crafted", "sampled")

_ONE_HOT = (
    "a one-hot OLH report cannot travel: a report is a (seed, bucket) pair, and one that supports an item supports"
    " every other item with probability 1/g as well"
)


@dataclass(frozen=True)
class Attack(ABC):
    """What m malicious users send: a protocol, m and a seeded generator in, m reports out.

    An attack is a value: the same attack, oracle, m and generator state give the same reports. What
    an attacker draws once and keeps secret (Manip's H, AA's distribution) is drawn anew by each call.
    """

    name: ClassVar[str]

    def reports(self, oracle: FrequencyOracle, m: int, rng: np.random.Generator) -> Reports:
        """Return m malicious reports: rows of `oracle.report_dtype`, which are their packed bytes.

        Raises ParameterError when m is negative or the attack does not fit the oracle's domain.
        """
        if isinstance(m, bool) or not isinstance(m, int | np.integer) or m < 0:
            raise ParameterError(f"m, the number of malicious users, must be an integer from 0, not {m!r}")
        return self._reports(oracle, int(m), rng)

    @abstractmethod
    def resolve(self, items: Sequence[str]) -> Self:
        """Return the attack as it stands in a round with these item labels.

        Labels become indices and defaults that depend on the domain become numbers, so the result
        says exactly what will be sent. Raises ParameterError when the attack does not fit the round.
        """

    @abstractmethod
    def _reports(self, oracle: FrequencyOracle, m: int, rng: np.random.Generator) -> Reports:
        """Return m reports; m has been checked."""


@dataclass(frozen=True)
class ItemAttack(Attack):
    """An attack whose malicious users each draw an item from the attacker's distribution P (paper, V-C).

    `model` says what a user makes of its item:

    - "sampled" (the paper's): the item, encoded and not perturbed. GRR names the item, OUE sets its
      one bit, OLH sends a random seed and the item's bucket under it. The paper takes every such
      report to support one item, S = (1-qd)/(p-q); over HTTP that holds for GRR and OUE alone. An
      OLH report that supports v supports every other item with probability 1/g too, so its sum of
      malicious frequencies is S = (1-q)/(p-q), and no report can do otherwise.
    - "crafted" (Cao et al., USENIX Security 2021): the report that does most for the item while it
      supports about as many items as an honest one does: see `ldprecover_attacker.crafting`.

    Raises ParameterError for another model.
    """

    model: str = field(default="crafted", kw_only=True)

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            hint = f"; {_ONE_HOT}" if "hot" in str(self.model) else ""
            raise ParameterError(f"model must be one of {', '.join(MODELS)}, not {self.model!r}{hint}")

    @abstractmethod
    def distribution(self, d: int, rng: np.random.Generator) -> FloatArray:
        """Return P(v) over d items, non-negative and of sum one, drawing whatever is random in it.

        `reports` draws it first: a generator in the same state shows the P that was used.
        """

    def draw_items(self, d: int, m: int, rng: np.random.Generator) -> Int64Array:
        """Return the items of m malicious users, drawn independently from P."""
        return rng.choice(d, size=m, p=self.distribution(d, rng))

    def _reports(self, oracle: FrequencyOracle, m: int, rng: np.random.Generator) -> Reports:
        if self.model == "sampled":
            return oracle.encode(self.draw_items(oracle.domain_size, m, rng), rng)
        return self._crafted(oracle, m, rng)

    def _crafted(self, oracle: FrequencyOracle, m: int, rng: np.random.Generator) -> Reports:
        """Craft each report for the one item it drew, so that its support size looks honest."""
        return craft(oracle, self.draw_items(oracle.domain_size, m, rng)[:, None], rng)
