"""Scores of recovery methods over many cells: ratios of errors, and the methods' calibration.

Squared errors are averaged over the trials of a setting, then ratios of the means are averaged
geometrically over settings. So neither a lucky trial nor a data set with large errors dominates.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import product
from math import isnan, nan, sqrt
from typing import Self, TypeVar

import numpy as np

from ldprecover import frequency_oracle
from ldprecover.protocols import crafter_of
from ldprecover_experiments.measures import Outcome
from ldprecover_experiments.parameters import Cell
from ldprecover_experiments.tables import Mean, Table, summarise
from ldprecover_experiments.unmixing_evaluation import Place

BETTER = "the better of both"
"""The smaller error of LDPRecover and Norm-Sub in each setting."""

FLOOR = "the floor"
"""The oracle bound of a setting: from genuine reports, or from counts if reports say no more."""

_LOWEST, _OTHERS = 12, 4
_REFERENCES = (*("genuine", "poisoned", "ldprecover", "norm-sub", "genuine, projected", "uniform"),)
T = TypeVar("T")
Key = TypeVar("Key")


@dataclass(frozen=True)
class SettingMeans:
    """The means of every method over the trials of one setting, and its place."""

    cell: Cell
    place: Place
    means: Mapping[str, Mean]

    def error(self, method: str) -> float:
        """Return the mean squared error of a method, NaN if it has none."""
        if method == BETTER:
            return min(self.error("ldprecover"), self.error("norm-sub"))
        if method == FLOOR:
            method = "floor, attack removed" if self.removable else "floor, counts"
        mean = self.means.get(method)
        return nan if mean is None else mean.mse

    @property
    def removable(self) -> bool:
        """Whether malicious reports differ from honest ones in more than the counts."""
        oracle = frequency_oracle(self.cell.protocol, self.cell.epsilon, 64)
        if self.cell.attack is None:
            return True
        natural = self.cell.model == "sampled" and bool(crafter_of(oracle).encoded_others)
        return not (oracle.traits.one_item or self.cell.model == "input" or natural)


class Ratios(dict[Key, float]):
    """The ratios of two methods' errors by setting."""

    @property
    def mean(self) -> float:
        """The geometric mean, NaN without settings."""
        ratios = np.maximum(list(self.values()), 1e-300)
        return float(np.exp(np.log(ratios).mean())) if self else nan

    @property
    def least(self) -> Key:
        """The setting of the least ratio."""
        return min(self, key=lambda setting: self[setting])

    @property
    def greatest(self) -> Key:
        """The setting of the greatest ratio."""
        return max(self, key=lambda setting: self[setting])

    def __str__(self) -> str:
        return f"{self.mean:.2f} ({self[self.least]:.2f})" if self else ""


class Scores:
    """The scores of an evaluation, whose cells have these places. Settings keep their order."""

    def __init__(
        self, cells: Mapping[Cell, Sequence[Outcome]], places: Mapping[Cell, Place]
    ) -> None:
        self.settings = [
            SettingMeans(cell, places[cell], means) for cell, means in summarise(cells).items()
        ]

    def where(self, condition: Callable[[SettingMeans], bool]) -> Self:
        """Return the scores of some of the settings."""
        scores = copy(self)
        scores.settings = [setting for setting in self.settings if condition(setting)]
        return scores

    def by(self, key: Callable[[SettingMeans], T]) -> dict[T, Self]:
        """Return the scores of each group of settings."""
        return {
            group: self.where(lambda s, group=group: key(s) == group)  # type: ignore[misc]
            for group in dict.fromkeys(map(key, self.settings))
        }

    @property
    def methods(self) -> list[str]:
        """The names of all methods, in order."""
        return list(dict.fromkeys(name for setting in self.settings for name in setting.means))

    @property
    def shown(self) -> list[str]:
        """The methods in tables by group: the forms of un-mixing, or else the first others."""
        unmixed = [name for name in self.methods if name.startswith("unmix")]
        others = [n for n in self.methods if n not in _REFERENCES and not n.startswith("floor")]
        return unmixed or others[:_OTHERS] or ["norm-sub"]

    def ratio(self, over: str, method: str) -> Ratios[Cell]:
        """Return the ratios of the error of `over` to that of `method`."""
        errors = ((s.cell, s.error(over), s.error(method)) for s in self.settings)
        return Ratios({cell: a / b for cell, a, b in errors if not isnan(a) and b > 0})

    def gain(self, method: str) -> float:
        """Return the mean |FG| over settings with targets; NaN without any."""
        means = [s.means.get(method) for s in self.settings]
        gains = [abs(mean.fg) for mean in means if mean is not None and mean.fg is not None]
        return float(np.mean(gains)) if gains else nan

    def tables(self) -> Iterator[Table]:
        """Yield the tables of all parts that were run."""
        parts = self.by(lambda s: s.place.part)
        if base := parts.get("base"):
            rows = base._rows(self.methods)
            yield Table(("method", *_COLUMNS), rows, f"overall: {_RATIOS}", len(_COLUMNS))
            for name, key in _KEYS.items():
                yield base._table(name, key, self.shown)
            yield self._lowest()
        if any(_certain(mean) for s in self.settings for mean in s.means.values()):
            yield self._certainty()
        if more := parts.get("more"):
            yield more._table("other attacks", _KEYS["protocol and attack"], self.shown)
        for factor, varied in parts.items():
            if varied.settings[0].place.value is not None:
                yield varied._table(
                    factor, lambda s: f"{s.place.value:g} {s.cell.protocol.upper()}", self.shown
                )

    def _table(
        self, name: str, key: Callable[[SettingMeans], str], methods: Sequence[str]
    ) -> Table:
        rows = [
            [group, *row] for group, each in self.by(key).items() for row in each._rows(methods)
        ]
        return Table((name, "method", *_COLUMNS), rows, f"by {name}: {_RATIOS}", len(_COLUMNS))

    def _rows(self, methods: Sequence[str]) -> list[list[str]]:
        """Return a row for each of these methods that has an error."""
        rows = []
        for method in methods:
            if all(isnan(s.error(method)) for s in self.settings):
                continue
            ratios = [self.ratio(one, method) for one in ("ldprecover", "norm-sub", BETTER)]
            over, gain = self.ratio(method, FLOOR), self.gain(method)
            floor = f"{over.mean:.2f}" if over else ""
            shown = "" if isnan(gain) else f"{gain:.3f}"
            rows.append([method, str(len(ratios[0])), *map(str, ratios), floor, shown])
        return rows

    def _lowest(self) -> Table:
        rows = []
        for method in self.shown:
            ratios = [
                (s.error("norm-sub") / s.error(method), s)
                for s in self.settings
                if s.error(method) > 0
            ]
            for ratio, s in sorted(ratios, key=lambda one: one[0])[:_LOWEST]:
                value = "" if s.place.value is None else f"{s.place.part} {s.place.value:g}"
                where = [s.cell.data, s.cell.protocol.upper(), s.place.attack, value]
                other = f"{s.error('ldprecover') / s.error(method):.2f}"
                rows.append([method, *where, f"{ratio:.2f}", other])
        columns = ("method", "data", "protocol", "attack", "varied")
        title = "where a method gains least over Norm-Sub"
        return Table((*columns, "Norm-Sub / it", "LDPRecover / it"), rows, title, 2)

    def _certainty(self) -> Table:
        rows = []
        groups = self.by(lambda s: (s.cell.protocol.upper(), s.place.attack))
        for method, (group, each) in product(self.methods, groups.items()):
            of_method = [s.means[method] for s in each.settings if method in s.means]
            if means := [mean for mean in of_method if _certain(mean)]:
                rows.append([method, *group, *_certainty(means)])
        columns = ("method", "protocol", "attack", "coverage", "least", "RMS error / sd", "most")
        title = "what a method says of itself: coverage of its 95 % intervals, its sd"
        return Table((*columns, "P(attack)", "most"), rows, title, 6)


_COLUMNS = ("n", "LDPRecover", "Norm-Sub", "better", "floor", "FG")
_RATIOS = (
    "n settings; how many times the error of LDPRecover, of Norm-Sub and of the better of both is "
    "the method's, and "
    "the method's is the floor's: geometric means, the least in brackets; the mean of |FG|"
)
_KEYS: dict[str, Callable[[SettingMeans], str]] = {
    "protocol": lambda s: s.cell.protocol.upper(),
    "attack": lambda s: s.place.attack,
    "protocol and attack": lambda s: f"{s.cell.protocol.upper()} {s.place.attack}",
    "data": lambda s: s.cell.data,
}


def _certain(mean: Mean) -> bool:
    return mean.coverage is not None or mean.attack_probability is not None


def _certainty(means: Sequence[Mean]) -> Iterator[str]:
    """Yield mean and minimum coverage, mean and maximum RMS error / sd, and P(attack)."""
    coverage = [m.coverage for m in means if m.coverage is not None]
    ratios = [sqrt(m.mse / m.variance) for m in means if m.variance]
    attack = [m.attack_probability for m in means if m.attack_probability is not None]
    yield from _shown(coverage, min)
    yield from _shown(ratios, max)
    yield from _shown(attack, max)


def _shown(values: Sequence[float], extreme: Callable[[Sequence[float]], float]) -> tuple[str, str]:
    return (f"{np.mean(values):.3f}", f"{extreme(values):.3f}") if values else ("", "")
