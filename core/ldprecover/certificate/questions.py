"""Questions about a round's honest users, each with the claim that a certificate may prove.

Workers of a server import this module, which imports no Pydantic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ldprecover.certificate.certificates import Certificate
from ldprecover.certificate.region import Region
from ldprecover.errors import ParameterError
from ldprecover.estimation.means import ITEMS
from ldprecover.items import find_items, largest
from ldprecover.types import FloatArray

Fields = dict[str, Any]
"""Fields of a question or of an answer in the HTTP interface."""

Items = tuple[int, ...]


class Question(ABC):
    """A question about the honest users of a round; it is also the claim to prove."""

    @property
    @abstractmethod
    def sets(self) -> tuple[Items, ...]:
        """The sets of items whose totals matter to the answer."""

    @abstractmethod
    def holds(self, region: Region) -> bool:
        """Return whether the claim holds for all frequencies of a region."""

    @abstractmethod
    def answer(self, certificate: Certificate, estimates: FloatArray) -> Fields:
        """Return the answer of a possible certificate. Raises ParameterError."""

    def _proof(self, certificate: Certificate) -> Fields:
        tolerance, region = certificate.tolerance(self), certificate.region
        proven = tolerance is not None and region is not None and self.holds(region)
        return {"certified": proven, "tolerance": tolerance}

    def _interval(
        self, certificate: Certificate, estimates: FloatArray, items: Items, others: Items = ()
    ) -> Fields:
        lower, upper = certificate.total(items, others)
        # Sums of ends may leave the possible values by their rounding.
        lower, upper = max(lower, -1.0 if others else 0.0), min(upper, 1.0)
        return self._proof(certificate) | {
            "estimate": float(estimates[list(items)].sum() - estimates[list(others)].sum()),
            "lower": min(lower, upper),
            "upper": upper,
        }


@dataclass(frozen=True)
class MoreThan(Question):
    """More than a `share` of the users hold one of the `items`."""

    items: Items
    share: float = 0.0

    @classmethod
    def parse(
        cls, labels: Sequence[str], items: Sequence[str | int], more_than: float = 0.0
    ) -> Self:
        """Return the question about labels or indices. Raises ParameterError."""
        return cls(tuple(sorted({*find_items(items, labels, "questions: items")})), more_than)

    @property
    def sets(self) -> tuple[Items, ...]:
        return (self.items,)

    def holds(self, region: Region) -> bool:
        return region.total(self.items)[0] > self.share

    def answer(self, certificate: Certificate, estimates: FloatArray) -> Fields:
        interval = self._interval(certificate, estimates, self.items)
        return interval | {"items": list(self.items), "more_than": self.share}


@dataclass(frozen=True)
class Ahead(Question):
    """More users hold `item` than `other`: more than a share `by` of all.

    In a round for numbers, `Ahead(1, 0, by=x)` says that their mean is above x.
    """

    item: int
    other: int
    by: float = 0.0

    @classmethod
    def parse(cls, labels: Sequence[str], ahead: Sequence[str | int]) -> Self:
        """Return the question about two labels or indices. Raises ParameterError."""
        item, other = find_items(ahead, labels, "questions: ahead")
        if item == other:
            raise ParameterError("questions: ahead: the two items must differ")
        return cls(item, other)

    @property
    def sets(self) -> tuple[Items, ...]:
        return (self.item,), (self.other,)

    def holds(self, region: Region) -> bool:
        return region.total((self.item,), (self.other,))[0] > self.by

    def answer(self, certificate: Certificate, estimates: FloatArray) -> Fields:
        interval = self._interval(certificate, estimates, *self.sets)
        return interval | {"ahead": [self.item, self.other]}


class MeanAbove(Ahead):
    """The mean of the users' numbers is above a number, in a round for numbers."""

    @classmethod
    def parse(cls, labels: Sequence[str], mean_above: float) -> Self:  # type: ignore[override]
        """Return the question about a number. Raises ParameterError."""
        if tuple(labels) != ITEMS:
            raise ParameterError(
                "questions: mean_above: only a round for numbers has a mean, with items "
                f"{' and '.join(ITEMS)}"
            )
        return cls(1, 0, mean_above)

    @property
    def sets(self) -> tuple[Items, ...]:
        return ((1,),)  # f(-1) is 1 - f(1)

    def answer(self, certificate: Certificate, estimates: FloatArray) -> Fields:
        interval = self._interval(certificate, estimates, (1,), (0,))
        return interval | {"mean_above": self.by}


@dataclass(frozen=True)
class AmongFirst(Question):
    """Of each of the `items`, fewer than `k` other items are held by as many users.

    A question has no items: its claim is about those of the k largest estimates.
    """

    items: Items
    k: int

    @classmethod
    def parse(cls, labels: Sequence[str], top: int) -> Self:
        """Return the question about the first items. Raises ParameterError."""
        if top > len(labels):
            raise ParameterError(
                f"questions: top must be at most the {len(labels)} items, not {top}"
            )
        return cls((), top)

    @property
    def sets(self) -> tuple[Items, ...]:
        return ()

    def holds(self, region: Region) -> bool:
        # Each item is itself among those that as many users may hold.
        return bool(np.sum(region.upper >= region.lower[list(self.items)].min()) <= self.k)

    def answer(self, certificate: Certificate, estimates: FloatArray) -> Fields:
        ranking = certificate.ranking(self.k)
        items = largest(estimates, self.k).tolist()
        return replace(self, items=tuple(items))._proof(certificate) | {
            "top": self.k,
            "items": items,
            "certain": list(ranking.certain),
            "possible": list(ranking.possible),
        }


_PARSERS: dict[str, Callable[..., Question]] = {
    "items": MoreThan.parse,
    "ahead": Ahead.parse,
    "top": AmongFirst.parse,
    "mean_above": MeanAbove.parse,
}


def parse_question(labels: Sequence[str], fields: Fields) -> Question:
    """Return the question of these fields about the items of a round. Raises ParameterError."""
    parse = next(parse for name, parse in _PARSERS.items() if name in fields)
    return parse(labels, **fields)
