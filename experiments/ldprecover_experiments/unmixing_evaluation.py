"""The evaluation of un-mixing: data sets, protocols and attacks in every combination.

Further parts vary one parameter at a time; the others are the paper's (epsilon 0.5, beta 0.05, 10
targets). The poisoned round of a cell is simulated once, and every method recovers that round.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np

from ldprecover import FrequencyOracle, ParameterError, frequency_oracle
from ldprecover.protocols import PROTOCOLS as REGISTERED
from ldprecover.recovery import METHODS
from ldprecover_experiments.attacks import TARGETS, AttackSpec, Mix
from ldprecover_experiments.measures import MethodSpec
from ldprecover_experiments.paper import PROTOCOLS
from ldprecover_experiments.parameters import (
    BETA,
    EPSILON,
    Cell,
    GenuineUsers,
    malicious_users,
)
from ldprecover_experiments.poisoned_round import RoundSimulation

DATA = ("ipums-like", "fire-like", "emoji", "zipf", "bump", "geometric")
SWEPT = ("ipums-like", "fire-like")
"""The data sets of the parts that vary one parameter."""

DRIFT = 0.1
"""Standard deviation of the log ratio of a frequency to that of the earlier round."""

_EXCLUDED = ("conditional-probability", "em", "k-means", "ldprecover-km")
"""Methods for a single target, and methods that read the reports many times."""


def _camouflaged(oracle: FrequencyOracle, r: int) -> tuple[AttackSpec | Mix, str]:
    """Return APA with half of the targets in a report; where a report is one item, MGA among
    uniform reports.
    """
    if oracle.traits.one_item:
        parts = (0.2, _spec("mga", targets=r), "sampled"), (0.8, AttackSpec("rpa"), "crafted")
        return Mix(parts), "crafted"
    return _spec("apa", targets=r, each=(r + 1) // 2, search=100), "crafted"


def _spec(
    name: str, kind: str | None = None, attackers: int = 1, **options: int | None
) -> AttackSpec:
    """Return an attack without the numbers of targets and items that are the default."""
    stated = {k: r for k, r in options.items() if k not in ("targets", "size") or r != TARGETS}
    return AttackSpec(name, kind, attackers, stated)


def _crafted(
    oracle: FrequencyOracle, name: str, **options: int | None
) -> tuple[AttackSpec, str] | None:
    """Return an attack with its own reports; None where a report is one item."""
    return None if oracle.traits.one_item else (_spec(name, None, 1, **options), "crafted")


ATTACKS: dict[str, Any] = {
    "none": lambda oracle, r: (None, "none"),
    "Manip": lambda oracle, r: (AttackSpec("manip"), "sampled"),
    "MGA": lambda oracle, r: (_spec("mga", targets=r), "sampled"),
    "AA10": lambda oracle, r: (_spec("aa", "peaked", size=r), "sampled"),
    "AAd": lambda oracle, r: (AttackSpec("aa", "diffuse"), "sampled"),
    "MUL5": lambda oracle, r: (_spec("aa", "peaked", 5, size=r), "sampled"),
    "IPA": lambda oracle, r: (_spec("mga", targets=r), "input"),
    "MGAx": lambda oracle, r: _crafted(oracle, "mga", targets=r),
    "APA": _camouflaged,
    "APA2": lambda oracle, r: _crafted(oracle, "apa2", targets=r),
    "RPA": lambda oracle, r: (AttackSpec("rpa"), "crafted"),
    "Manip padded": lambda oracle, r: (
        (AttackSpec("manip"), "crafted")
        if oracle.crafter and oracle.crafter.model == "padded"
        else None
    ),
    "MLA": lambda oracle, r: (AttackSpec("mla"), "crafted"),
    "MGA-A": lambda oracle, r: _crafted(oracle, "mga-a", targets=r, each=(r + 1) // 2),
    "MGA two": lambda oracle, r: (_spec("mga", targets=2 * r, sets=2), "crafted"),
    "APA two": lambda oracle, r: _crafted(
        oracle, "apa", targets=2 * r, each=(r + 1) // 2, search=100, sets=2
    ),
}
"""Name in the tables -> function from (oracle, r) to the attack and the model of a cell.

The function returns None for a protocol without such an attack. AA10 weighs 10 random items, AAd
all; MUL5 is five attackers of the kind AA10, IPA perturbs honestly, MGAx crafts its reports.
"""

BASE = ("none", "Manip", "MGA", "AA10", "AAd", "MUL5", "IPA", "MGAx", "APA", "APA2")
MORE = ("RPA", "Manip padded", "MLA", "MGA-A", "MGA two", "APA two")
_WITH_TARGET_NUMBER = ("MGA", "AA10", "MUL5", "IPA", "MGAx", "APA", "APA2")


@dataclass(frozen=True)
class Part:
    """A part of the evaluation: its attacks, its data sets, and the parameter that it varies."""

    attacks: tuple[str, ...]
    data: Literal["all", "swept", "first swept"] = "swept"
    parameter: Literal["beta", "epsilon", "targets"] | None = None
    values: tuple[float | None, ...] = (None,)


PARTS = {
    "base": Part(BASE, "all"),
    "more": Part(MORE, "first swept"),
    "beta": Part(BASE[1:], parameter="beta", values=(0.005, 0.01, 0.1, 0.2)),
    "epsilon": Part(BASE, parameter="epsilon", values=(0.2, 1.0, 1.6)),
    "targets": Part(_WITH_TARGET_NUMBER, parameter="targets", values=(3, 7, 14, 30)),
}
"""The parts. The values of the paper's setting are those of `base`, so no part repeats them."""


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
        elif name != "ldprecover" and name not in _EXCLUDED and not name.endswith("-unprojected"):
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
    swept = tuple(name for name in users_by_data if name in SWEPT) or tuple(users_by_data)[:2]
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
            attack_and_model = ATTACKS[attack](frequency_oracle(protocol, epsilon, d), r)
            if attack_and_model is None or r >= d / 2:
                continue
            beta = 0.0 if attack == "none" else parameters["beta"]
            spec, model = attack_and_model
            cell = Cell(source, protocol, spec, model, beta, epsilon)
            if _has_reports(cell, genuine_users):
                yield cell, Place(name, attack, value)


def _has_reports(cell: Cell, genuine_users: GenuineUsers) -> bool:
    """Return whether the protocol has reports for the attack."""
    try:
        simulation = RoundSimulation(cell, genuine_users, 0)
        if cell.model == "crafted":
            simulation.malicious_reports(1)
    except ParameterError:
        return False
    return True


def cost(
    cells: Collection[Cell],
    users_by_data: Mapping[str, GenuineUsers],
    specs: Sequence[MethodSpec],
    jobs: int,
) -> str:
    """Return a sentence with the number of cells and reports, and the approximate time.

    The coefficients are seconds on one core of 2020: for a cell, for making and reading a report,
    for a seed search, for un-mixing counts.
    """
    readers = sum(spec.reads_reports for spec in specs)
    unmixed = sum(spec.method == "unmix" for spec in specs)
    reports, seconds = 0, 0.0
    for cell in cells:
        n, d = users_by_data[cell.data].n, len(users_by_data[cell.data].items)
        m = malicious_users(n, cell.beta)
        made_reports = n + m if readers else m if cell.model == "crafted" else 0
        reports += made_reports
        seconds += (
            0.05
            + 1e-4 * d
            + unmixed * (0.2 + 1e-3 * d)
            + made_reports * (1e-6 + readers * (3e-7 + 4e-10 * d))
        )
        searched = (
            cell.model == "crafted"
            and frequency_oracle(cell.protocol, cell.epsilon, d).traits.seeded
        )
        seconds += m * 1e-4 if searched else 0.0
    return (
        f"{len(cells):,} cells of {len(specs)} methods and {reports:,} reports to make: about "
        f"{_time(seconds / max(1, jobs))} with {jobs} process{'' if jobs == 1 else 'es'}."
    )


def _time(seconds: float) -> str:
    minutes = seconds / 60
    return f"{np.ceil(minutes):.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
