"""Scores of recovery methods over many cells: ratios of errors, and the methods' calibration.

Squared errors are averaged over the trials of a setting, then ratios of the means are averaged
geometrically over settings. So neither a lucky trial nor a data set with large errors dominates.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan, nan, sqrt

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
        """Whether malicious reports can be told from honest ones by more than the counts."""
        oracle = frequency_oracle(self.cell.protocol, self.cell.epsilon, 64)
        if self.cell.attack is None:
            return True
        natural = self.cell.model == "sampled" and bool(crafter_of(oracle).encoded_others)
        return not (oracle.traits.one_item or self.cell.model == "input" or natural)


@dataclass(frozen=True)
class Ratio:
    """The ratios of two methods' errors: geometric mean, minimum, and number of settings."""

    mean: float
    least: float
    settings: int

    def __str__(self) -> str:
        return "" if not self.settings else f"{self.mean:.2f} ({self.least:.2f})"


Where = Callable[[SettingMeans], bool]


class Scores:
    """The scores of an evaluation, whose cells have these places. Settings keep their order."""

    def __init__(
        self, cells: Mapping[Cell, Sequence[Outcome]], places: Mapping[Cell, Place]
    ) -> None:
        self.settings = [
            SettingMeans(cell, places[cell], means) for cell, means in summarise(cells).items()
        ]

    @cached_property
    def methods(self) -> list[str]:
        """The names of all methods, in order."""
        return list(dict.fromkeys(name for setting in self.settings for name in setting.means))

    @property
    def shown(self) -> list[str]:
        """The methods in tables by group: the forms of un-mixing, or else the first others."""
        unmixed = [name for name in self.methods if name.startswith("unmix")]
        references = (
            "genuine",
            "poisoned",
            "ldprecover",
            "norm-sub",
            "genuine, projected",
            "uniform",
        )
        others = [n for n in self.methods if n not in references and not n.startswith("floor")]
        return unmixed or others[:_OTHERS] or ["norm-sub"]

    def ratio(self, over: str, method: str, where: Where = lambda _: True) -> Ratio:
        """Return the ratios of the error of `over` to that of `method`."""
        pairs = ((s.error(over), s.error(method)) for s in self.settings if where(s))
        ratios = np.array([a / b for a, b in pairs if not isnan(a) and not isnan(b) and b > 0])
        if not ratios.size:
            return Ratio(nan, nan, 0)
        return Ratio(
            float(np.exp(np.log(np.maximum(ratios, 1e-300)).mean())),
            float(ratios.min()),
            ratios.size,
        )

    def gain(self, method: str, where: Where = lambda _: True) -> float:
        """Return the mean |FG| over settings with targets; NaN without any."""
        means = [s.means.get(method) for s in self.settings if where(s)]
        gains = [abs(mean.fg) for mean in means if mean is not None and mean.fg is not None]
        return float(np.mean(gains)) if gains else nan

    def tables(self) -> Iterator[Table]:
        """Yield the tables of all parts that were run."""
        if any(s.place.part == "base" for s in self.settings):
            yield self._overall()
            for name, key in _KEYS.items():
                yield self._by(name, key)
            yield self._lowest()
        if any(_certain(mean) for s in self.settings for mean in s.means.values()):
            yield self._certainty()
        if any(s.place.part == "more" for s in self.settings):
            yield self._by(
                "other attacks",
                lambda s: f"{s.cell.protocol.upper()} {s.place.attack}",
                part="more",
            )
        for factor in dict.fromkeys(
            s.place.part for s in self.settings if s.place.value is not None
        ):
            yield self._by(
                factor, lambda s: f"{s.place.value:g} {s.cell.protocol.upper()}", part=factor
            )

    def _overall(self) -> Table:
        rows = [
            [method, *self._row(method, _base)]
            for method in self.methods
            if self._known(method, _base)
        ]
        return Table(("method", *_COLUMNS), rows, f"overall: {_RATIOS}", len(_COLUMNS))

    def _by(self, name: str, key: Callable[[SettingMeans], str], part: str = "base") -> Table:
        groups = list(dict.fromkeys(key(s) for s in self.settings if s.place.part == part))
        rows = []
        for group in groups:

            def where(s: SettingMeans, group: str = group) -> bool:
                return s.place.part == part and key(s) == group

            rows += [[group, m, *self._row(m, where)] for m in self.shown if self._known(m, where)]
        return Table((name, "method", *_COLUMNS), rows, f"by {name}: {_RATIOS}", len(_COLUMNS))

    def _known(self, method: str, where: Where) -> bool:
        return any(not isnan(s.error(method)) for s in self.settings if where(s))

    def _row(self, method: str, where: Where) -> list[str]:
        ratios = [self.ratio(one, method, where) for one in ("ldprecover", "norm-sub", BETTER)]
        over, gain = self.ratio(method, FLOOR, where), self.gain(method, where)
        floor = f"{over.mean:.2f}" if over.settings else ""
        return [
            str(ratios[0].settings),
            *map(str, ratios),
            floor,
            "" if isnan(gain) else f"{gain:.3f}",
        ]

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
                rows.append(
                    [
                        method,
                        *where,
                        f"{ratio:.2f}",
                        f"{s.error('ldprecover') / s.error(method):.2f}",
                    ]
                )
        columns = (
            "method",
            "data",
            "protocol",
            "attack",
            "varied",
            "Norm-Sub / it",
            "LDPRecover / it",
        )
        return Table(columns, rows, "where a method gains least over Norm-Sub", 2)

    def _certainty(self) -> Table:
        rows = []
        for method in self.methods:
            for group in dict.fromkeys((s.cell.protocol, s.place.attack) for s in self.settings):
                means = [
                    s.means[method]
                    for s in self.settings
                    if (s.cell.protocol, s.place.attack) == group
                    and method in s.means
                    and _certain(s.means[method])
                ]
                if means:
                    rows.append([method, group[0].upper(), group[1], *_said(means)])
        columns = (
            "method",
            "protocol",
            "attack",
            "coverage",
            "least",
            "RMS error / sd",
            "most",
            "P(attack)",
            "most",
        )
        return Table(
            columns, rows, "what a method says of itself: coverage of its 95 % intervals, its sd", 6
        )


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


def _base(setting: SettingMeans) -> bool:
    return setting.place.part == "base"


def _certain(mean: Mean) -> bool:
    return mean.coverage is not None or mean.attack_probability is not None


def _said(means: Sequence[Mean]) -> Iterator[str]:
    """Yield mean and minimum coverage, mean and maximum RMS error / sd, and P(attack)."""
    coverage = [m.coverage for m in means if m.coverage is not None]
    ratios = [sqrt(m.mse / m.variance) for m in means if m.variance]
    attack = [m.attack_probability for m in means if m.attack_probability is not None]
    yield from _shown(coverage, min)
    yield from _shown(ratios, max)
    yield from _shown(attack, max)


def _shown(values: Sequence[float], extreme: Callable[[Sequence[float]], float]) -> tuple[str, str]:
    return (f"{np.mean(values):.3f}", f"{extreme(values):.3f}") if values else ("", "")
