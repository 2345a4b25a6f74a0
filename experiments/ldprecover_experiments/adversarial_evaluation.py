"""The evaluation of attacks on un-mixing itself: what is framed, raised, starved or named falsely.

A ratio is projection's error over un-mixing's: below one, un-mixing does harm.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import product
from math import nan
from typing import Any

import numpy as np

from ldprecover import Recovery, Tally
from ldprecover.evidence.suspects import suspects
from ldprecover_experiments.attacks import AttackSpec
from ldprecover_experiments.measures import MethodSpec, Outcome
from ldprecover_experiments.parameters import ETA, Cell, GenuineUsers
from ldprecover_experiments.poisoned_round import PoisonedRound
from ldprecover_experiments.runs import Work
from ldprecover_experiments.scores import Ratios
from ldprecover_experiments.tables import Table, shown_parameter, summarise
from ldprecover_experiments.unmixing_evaluation import has_reports

_DOCUMENT: Mapping[str, Any] = tomllib.loads(
    files(__package__).joinpath("adversarial_evaluation.toml").read_text(encoding="utf-8")
)
DATA, USERS = _DOCUMENT["data"], _DOCUMENT["users"]

_PROJECTION = "projection"
_LOWEST = 12
_ALL = "all"
_FACTORS = (_ALL, "data", "protocol", "epsilon", "beta")
_PAST = ("history", "infer")

Results = Mapping[str, Mapping[Cell, Sequence[Outcome]]]
"""Part -> cell -> outcomes."""


@dataclass(frozen=True)
class Informed(MethodSpec):
    """A method with knowledge of the round, which may mislead it.

    `knowledge` is "targets", "infer" (the items that rose since the earlier round), "canaries" (the
    targets), or "history": then the earlier round was attacked, and this one has genuine users
    alone.
    """

    knowledge: str = ""

    def recovery(self, round_: PoisonedRound, eta: float | str = ETA) -> Recovery:
        oracle, knowledge, targets = round_.oracle, self.knowledge, round_.targets or ()
        nobody = Tally.empty(oracle.summary_size)
        earlier = round_.earlier or nobody
        if knowledge == "infer":
            targets = suspects(oracle, round_.together, [(oracle, earlier)]).items
        elif knowledge == "history":
            assert round_.reports is not None
            genuine, earlier = round_.reports[: round_.genuine.n], earlier + round_.malicious
            round_ = replace(round_, malicious=nobody, reports=genuine, earlier=earlier)
        canaries = targets if knowledge == "canaries" else ()
        named, history = knowledge in ("targets", "infer"), knowledge == "history"
        spec = MethodSpec(self.name, self.method, targets=named, history=history)
        return spec.recovery(replace(round_, targets=targets, canaries=canaries), eta)


@dataclass(frozen=True)
class Part:
    """A part of the evaluation: every combination of its lists, and what un-mixing knows."""

    attack: Mapping[str, Any] = field(default_factory=dict)
    targets: Sequence[int] = (5,)
    beta: Sequence[float] = (0.001, 0.01, 0.05, 0.2)
    epsilon: Sequence[float] = (0.5, 1.0, 2.0, 4.0)
    protocols: Sequence[str] = ("oue", "sue", "olh", "ss")
    knowledge: Sequence[str] = ("",)
    canaries: int = 0
    drift: float = 0.0

    def work(self, users_by_data: Mapping[str, GenuineUsers], seed: int) -> Work:
        """Return the work on the part's cells."""
        users = {name: each.with_canaries(self.canaries) for name, each in users_by_data.items()}
        methods = [
            Informed(f"{method} {k}".strip(), name, history=k in _PAST, knowledge=k)
            for k in self.knowledge
            for method, name in ((_PROJECTION, "norm-sub"), ("unmix", "unmix"))
        ]
        return Work(users, seed, methods, drift=self.drift)

    def cells(
        self, work: Work, protocols: Sequence[str], trials: int, share: float
    ) -> Iterator[Cell]:
        """Yield the cells of a share of the settings, the same settings each time."""
        lists = (work.users_by_data, self.protocols, self.epsilon, self.beta, self.targets)
        for data, protocol, epsilon, beta, t in product(*lists):
            users = work.users_by_data[data]
            model = "crafted" if self.attack else "none"
            cell = Cell(data, protocol, self._spec(users, t), model, beta, epsilon)
            selected = int(cell.seed(users, 0).generate_state(1)[0]) / 2**32 < share
            if selected and protocol in (protocols or self.protocols) and has_reports(cell, users):
                yield from (replace(cell, trial=trial) for trial in range(trials))

    def _spec(self, users: GenuineUsers, t: int) -> AttackSpec | None:
        if not self.attack:
            return None
        labels = [users.items[i] for i in np.argsort(-users.counts, kind="stable")]
        rival = {"item": labels[t]} if "item" in self.attack else {}
        return AttackSpec.of(
            **{**self.attack, "targets": labels[:t] if t > 0 else labels[t:], **rival}
        )


PARTS = {name: Part(**part) for name, part in _DOCUMENT["parts"].items()}
"""The parts, by name."""

COLUMNS = (
    *("part", "knowledge", "by", "value", "settings", "ratio", "least", "coverage", "of T"),
    *("T stated", "T true", "innocent", "P > .5"),
)
"""Columns of the summary: see `summary`."""


def summary(results: Results, users_by_data: Mapping[str, GenuineUsers]) -> Table:
    """Return the scores of every part: of all its settings, and of each value of a factor.

    They are the geometric mean and the least of projection's error over un-mixing's, the coverage
    of all intervals and of those of the targets T, the mean stated and true total of T, the largest
    probability stated for an item that is not raised, and the share of rounds with P(attack) > .5.
    """
    rows = []
    for (part, cells), by in product(results.items(), _FACTORS):
        values = {c: "" if by == _ALL else shown_parameter(getattr(c, by)) for c in cells}
        for value in dict.fromkeys(values.values()):
            group = {cell: cells[cell] for cell in cells if values[cell] == value}
            rows += [
                [part, knowledge, by, value, *_scores(group, knowledge, users_by_data)]
                for knowledge in PARTS[part].knowledge
            ]
    return Table(COLUMNS, rows, "attacks on un-mixing itself", len(COLUMNS) - 4)


def overall(every: Table) -> Table:
    """Return the rows of a summary that are of whole parts."""
    columns, *rows = (
        [*row[:2], *row[4:]] for row in (COLUMNS, *every.rows) if row[2] in ("by", "all")
    )
    return Table(columns, rows, every.title, len(columns) - 2)


def lowest(results: Results) -> Table:
    """Return the settings in which un-mixing is worst beside projection."""
    places = [
        (ratio, [part, knowledge, *(shown_parameter(getattr(cell, k)) for k in _FACTORS[1:])])
        for part, cells in results.items()
        for knowledge in PARTS[part].knowledge
        for cell, ratio in _ratios(cells, knowledge).items()
    ]
    rows = [[*place, f"{ratio:.2f}"] for ratio, place in sorted(places)[:_LOWEST]]
    columns = ("part", "knowledge", *_FACTORS[1:], "ratio")
    return Table(columns, rows, "where un-mixing is worst", 3)


def _ratios(cells: Mapping[Cell, Sequence[Outcome]], knowledge: str) -> Ratios[Cell]:
    """Return projection's error over un-mixing's by setting, where un-mixing has one."""
    names = [f"{method} {knowledge}".strip() for method in (_PROJECTION, "unmix")]
    means = summarise(cells).items()
    ratios = {cell: each[names[0]].mse / each[names[1]].mse for cell, each in means}
    return Ratios({cell: ratio for cell, ratio in ratios.items() if ratio > 0})


def _scores(
    cells: Mapping[Cell, Sequence[Outcome]],
    knowledge: str,
    users_by_data: Mapping[str, GenuineUsers],
) -> Iterator[str]:
    """Yield the numbers of a row."""
    ratios, method = _ratios(cells, knowledge), f"unmix {knowledge}".strip()
    outcomes = [o for each in cells.values() for o in each if o.method == method]
    yield str(len(ratios))
    yield f"{ratios.mean:.2f}"
    yield f"{min(ratios.values(), default=nan):.2f}"
    for name in ("coverage", "targets_coverage", "total"):
        yield _mean(getattr(o, name) for o in outcomes)
    yield _mean(_true_total(cell, users_by_data[cell.data]) for cell in cells)
    yield f"{max((o.innocent or 0 for o in outcomes), default=nan):.2f}"
    attacks = (o.attack_probability for o in outcomes)
    yield _mean(p > 0.5 for p in attacks if p is not None)


def _mean(values: Iterable[float | None]) -> str:
    numbers = [value for value in values if value is not None]
    return f"{np.mean(numbers):.2f}" if numbers else ""


def _true_total(cell: Cell, users: GenuineUsers) -> float | None:
    """Return the true frequency of the targets; canaries have none."""
    if cell.attack is None:
        return None
    return float(users.frequencies[np.isin(users.items, cell.attack.targets)].sum())
