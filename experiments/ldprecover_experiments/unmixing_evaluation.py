"""The evaluation of un-mixing: data sets, protocols and attacks in every combination.

Further parts vary one parameter at a time; the others are the paper's (epsilon 0.5, beta 0.05, 10
targets). The poisoned round of a cell is simulated once, and every method recovers that round.
"""

import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import product
from typing import Any, Literal

import numpy as np

from ldprecover import FrequencyOracle, ParameterError, frequency_oracle
from ldprecover.protocols import PROTOCOLS as REGISTERED
from ldprecover.recovery import METHODS
from ldprecover_experiments.attacks import TARGETS, AttackSpec, Mix
from ldprecover_experiments.measures import MethodSpec
from ldprecover_experiments.paper import PROTOCOLS
from ldprecover_experiments.parameters import BETA, EPSILON, Cell, GenuineUsers, malicious_users
from ldprecover_experiments.poisoned_round import RoundSimulation
from ldprecover_experiments.runs import Work

_DOCUMENT: Mapping[str, Any] = tomllib.loads(
    files(__package__).joinpath("unmixing_evaluation.toml").read_text(encoding="utf-8")
)
DATA = _DOCUMENT["data"]

DRIFT = 0.1
"""Standard deviation of the log ratio of a frequency to that of the earlier round."""

ATTACKS: Mapping[str, Mapping[str, Any]] = _DOCUMENT["attacks"]
"""Name in the tables -> fields of the attack, which `attack_on` reads."""


def attack_on(
    oracle: FrequencyOracle, name: str, r: int
) -> tuple[AttackSpec | Mix | None, str] | None:
    """Return the attack and the model of a cell; None for a protocol without such an attack."""
    fields = {"model": "crafted", "lacks": "", "one_item": (), **ATTACKS[name]}
    model, lacks, mix = (fields.pop(key) for key in ("model", "lacks", "one_item"))
    one_item = oracle.traits.one_item
    if mix and one_item:
        parts = ((share, *(attack_on(oracle, part, r) or ())) for share, part in mix)
        return Mix(tuple(parts)), model
    padded = oracle.crafter is not None and oracle.crafter.model == "padded"
    if (lacks == "one-item" and one_item) or (lacks == "unpadded" and not padded):
        return None
    numbers = {"r": r, "2r": 2 * r, "r/2": (r + 1) // 2}
    stated = {key: numbers.get(value, value) for key, value in fields.items()}
    for key in ("targets", "size"):
        if stated.get(key) == TARGETS:  # the default
            del stated[key]
    return AttackSpec.of(**stated) if stated else None, model


@dataclass(frozen=True)
class Part:
    """A part of the evaluation: its attacks, its data sets, and the parameter that it varies."""

    attacks: Sequence[str]
    data: Literal["all", "swept", "first swept"] = "swept"
    parameter: Literal["beta", "epsilon", "targets"] | None = None
    values: Sequence[float | None] = (None,)


PARTS = {name: Part(**part) for name, part in _DOCUMENT["parts"].items()}
"""The parts, by name."""


@dataclass(frozen=True)
class Place:
    """The place of a cell in the tables: part, name of the attack, varied value."""

    part: str
    attack: str
    value: float | None = None


@dataclass(frozen=True)
class Only:
    """A selection of parts, protocols, attacks and methods; everything by default.

    Raises ParameterError for an unknown name.
    """

    part: Sequence[str] = tuple(PARTS)
    protocol: Sequence[str] = PROTOCOLS
    attack: Sequence[str] = tuple(ATTACKS)
    method: Sequence[str] = ()

    def __post_init__(self) -> None:
        names_by_key = {
            "part": tuple(PARTS),
            "protocol": tuple(REGISTERED),
            "attack": tuple(ATTACKS),
            "method": [spec.name for spec in methods()],
        }
        for key, names in names_by_key.items():
            for name in getattr(self, key):
                if name not in names:
                    raise ParameterError(
                        f"there is no {key} {name!r}; there are {', '.join(names)}"
                    )


def methods(named: Collection[str] = ()) -> list[MethodSpec]:
    """Return the methods to compare: all, or the named ones with LDPRecover and Norm-Sub."""
    specs = [
        MethodSpec("ldprecover"),
        MethodSpec("ldprecover true eta", eta="true"),
        MethodSpec("ldprecover*", targets=True),
    ]
    for name, method in METHODS.items():
        if name == "unmix":
            specs.append(MethodSpec("unmix counts", name, reads=False))
            specs.append(MethodSpec("unmix", name))
            specs.append(MethodSpec("unmix targets", name, targets=True))
            specs.append(MethodSpec("unmix history", name, history=True))
        elif (
            name != "ldprecover"
            and name not in _DOCUMENT["excluded"]
            and not name.endswith("-unprojected")
        ):
            specs.append(MethodSpec(name, method.name))
    chosen = {"ldprecover", "norm-sub", *named}
    return [spec for spec in specs if not named or spec.name in chosen]


def cells_of(
    only: Only, users_by_data: Mapping[str, GenuineUsers], trials: int
) -> dict[Cell, Place]:
    """Return the cells with their places. Parts other than base have half as many trials."""
    return {
        replace(cell, trial=trial): place
        for cell, place in _settings(only, users_by_data)
        for trial in range(trials if place.part == "base" else max(1, trials // 2))
    }


def _settings(
    only: Only, users_by_data: Mapping[str, GenuineUsers]
) -> Iterator[tuple[Cell, Place]]:
    """Yield the first trial of every setting."""
    swept = (
        tuple(name for name in users_by_data if name in _DOCUMENT["swept"])
        or tuple(users_by_data)[:2]
    )
    data = {"all": tuple(users_by_data), "swept": swept, "first swept": swept[:1]}
    for name, part in PARTS.items():
        if name not in only.part:
            continue
        attacks = [attack for attack in part.attacks if attack in only.attack]
        for source, protocol, attack, value in product(
            data[part.data], only.protocol, attacks, part.values
        ):
            parameters: dict[str, Any] = {"beta": BETA, "epsilon": EPSILON, "targets": TARGETS}
            if part.parameter:
                parameters[part.parameter] = value
            epsilon, r = parameters["epsilon"], parameters["targets"]
            genuine_users = users_by_data[source]
            d = len(genuine_users.items)
            attack_and_model = attack_on(frequency_oracle(protocol, epsilon, d), attack, r)
            if attack_and_model is None or r >= d / 2:
                continue
            beta = 0.0 if attack == "none" else parameters["beta"]
            spec, model = attack_and_model
            cell = Cell(source, protocol, spec, model, beta, epsilon)
            if has_reports(cell, genuine_users):
                yield cell, Place(name, attack, value)


def has_reports(cell: Cell, genuine_users: GenuineUsers) -> bool:
    """Return whether the protocol has reports for the attack."""
    try:
        simulation = RoundSimulation(cell, genuine_users, 0)
        if cell.model == "crafted":
            simulation.malicious_reports(1)
    except ParameterError:
        return False
    return True


def cost(cells: Collection[Cell], work: Work, jobs: int) -> str:
    """Return a sentence with the number of cells and reports, and the approximate time.

    The coefficients are seconds on one core of 2020: for a cell, for making and reading a report,
    for a seed search, for un-mixing counts.
    """
    readers = sum(spec.reads_reports for spec in work.methods)
    unmixed = sum(spec.method == "unmix" for spec in work.methods)
    seconds = 0.0
    for cell in cells:
        users = work.users_by_data[cell.data]
        d = len(users.items)
        seconds += 0.05 + 1e-4 * d + unmixed * (0.2 + 1e-3 * d)
        seconds += work.reports(cell) * (1e-6 + readers * (3e-7 + 4e-10 * d))
        if cell.model == "crafted" and REGISTERED[cell.protocol].traits.seeded:
            seconds += malicious_users(users.n, cell.beta) * 1e-4
    return (
        f"{len(cells):,} cells of {len(work.methods)} methods and "
        f"{sum(map(work.reports, cells)):,} reports to make: about "
        f"{_time(seconds / max(1, jobs))} with {jobs} process{'' if jobs == 1 else 'es'}."
    )


def _time(seconds: float) -> str:
    minutes = seconds / 60
    return f"{np.ceil(minutes):.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
