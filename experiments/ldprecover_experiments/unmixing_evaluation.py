"""The evaluation of un-mixing: data sets, protocols and attacks in every combination, then one
factor at a time.

A cell is as in the paper's setting (epsilon 0.5, beta 0.05, 10 targets) but for the one factor that
is varied. Its poisoned round is drawn once, and every method recovers from the same.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ldprecover import FrequencyOracle, ParameterError, frequency_oracle
from ldprecover.protocols import PROTOCOLS as REGISTERED
from ldprecover.recovery import METHODS
from ldprecover_experiments.attacks import Mix
from ldprecover_experiments.measures import MethodSpec
from ldprecover_experiments.paper import PROTOCOLS
from ldprecover_experiments.parameters import (
    BETA,
    EPSILON,
    TARGETS,
    Cell,
    GenuineUsers,
    malicious_users,
)
from ldprecover_experiments.poisoned_round import RoundSimulation

DATA = ("ipums-like", "fire-like", "emoji", "zipf", "bump", "geometric")
SWEPT = ("ipums-like", "fire-like")
"""The data sets over which one factor at a time is varied."""

DRIFT = 0.1
"""Standard deviation of the logarithm by which each frequency differs from that of the earlier
round.
"""

FACTORS: dict[str, tuple[float, ...]] = {
    "beta": (0.005, 0.01, 0.1, 0.2),
    "epsilon": (0.2, 1.0, 1.6),
    "targets": (3, 7, 14, 30),
}
"""What is varied, to its values beside those of the paper; beta 0 is the unpoisoned cell."""

PARTS = ("base", "more", *FACTORS)
"""`base` is all data and protocols under the attacks of the catalogue, `more` other attacks on the
first data set.
"""

_LEFT_OUT = ("conditional-probability", "em", "k-means", "ldprecover-km")
"""Methods for one target alone, and those that go over the reports many times."""


def _none(oracle: FrequencyOracle, r: int) -> tuple[str, str]:
    return "none", "none"


def _camouflaged(oracle: FrequencyOracle, r: int) -> tuple[str, str]:
    """Return APA with half of the targets in a report; where a report is one item, MGA among
    uniform reports.
    """
    if oracle.traits.one_item:
        parts = (0.2, _text("mga", targets=r), "sampled"), (0.8, "rpa", "crafted")
        return str(Mix.of(*parts)), "crafted"
    return _text("apa", targets=r, each=(r + 1) // 2, search=100), "crafted"


def _text(name: str, targets: int | None = None, size: int | None = None, **options: object) -> str:
    """Return the text of an attack; what is as it would be without saying is left out."""
    given = options | {
        key: r for key, r in (("targets", targets), ("size", size)) if r not in (None, TARGETS)
    }
    return f"{name} {json.dumps(given, sort_keys=True)}" if given else name


ATTACKS: dict[str, Any] = {
    "none": _none,
    "Manip": lambda oracle, r: ("manip", "sampled"),
    "MGA": lambda oracle, r: (_text("mga", r), "sampled"),
    "AA10": lambda oracle, r: (_text("aa-peaked", size=r), "sampled"),
    "AAd": lambda oracle, r: ("aa-diffuse", "sampled"),
    "MUL5": lambda oracle, r: (_text("aa-peaked-x5", size=r), "sampled"),
    "IPA": lambda oracle, r: (_text("mga", r), "input"),
    "MGAx": lambda oracle, r: None if oracle.traits.one_item else (_text("mga", r), "crafted"),
    "APA": _camouflaged,
    "APA2": lambda oracle, r: None if oracle.traits.one_item else (_text("apa2", r), "crafted"),
    "RPA": lambda oracle, r: ("rpa", "crafted"),
    "Manip padded": lambda oracle, r: (
        ("manip", "crafted") if oracle.crafter and oracle.crafter.model == "padded" else None
    ),
    "MLA": lambda oracle, r: ("mla", "crafted"),
    "MGA-A": lambda oracle, r: (
        None if oracle.traits.one_item else (_text("mga-a", r, each=(r + 1) // 2), "crafted")
    ),
    "MGA two": lambda oracle, r: (_text("mga", 2 * r, sets=2), "crafted"),
    "APA two": lambda oracle, r: (
        None
        if oracle.traits.one_item
        else (_text("apa", 2 * r, each=(r + 1) // 2, search=100, sets=2), "crafted")
    ),
}
"""Name in the tables to the attack and the model of a cell with r targets, None where a protocol
has no such attack.

AA10 weighs 10 random items, AAd all, MUL5 is five attackers of the kind AA10, IPA lies alone, MGAx
crafts its reports.
"""

BASE = ("none", "Manip", "MGA", "AA10", "AAd", "MUL5", "IPA", "MGAx", "APA", "APA2")
MORE = ("RPA", "Manip padded", "MLA", "MGA-A", "MGA two", "APA two")
_OF_TARGETS = ("MGA", "AA10", "MUL5", "IPA", "MGAx", "APA", "APA2")


@dataclass(frozen=True)
class Place:
    """Where a cell stands: the part of the evaluation, the attack's name, and the value of the
    factor of that part.
    """

    part: str
    attack: str
    value: float | None = None


@dataclass(frozen=True)
class Only:
    """What of the evaluation is run: all that is not named is.

    Raises ParameterError for a name that there is not.
    """

    part: Sequence[str] = PARTS
    protocol: Sequence[str] = PROTOCOLS
    attack: Sequence[str] = tuple(ATTACKS)
    method: Sequence[str] = ()

    def __post_init__(self) -> None:
        known = {
            "part": PARTS,
            "protocol": tuple(REGISTERED),
            "attack": tuple(ATTACKS),
            "method": _names(),
        }
        for key, names in known.items():
            for name in getattr(self, key):
                if name not in names:
                    raise ParameterError(
                        f"there is no {key} {name!r}; there are {', '.join(names)}"
                    )


def methods(named: Collection[str] = ()) -> list[MethodSpec]:
    """Return the methods that are compared, or those of these names with the two that all are
    compared with.
    """
    found = [
        MethodSpec("ldprecover"),
        MethodSpec("ldprecover true eta", eta="true"),
        MethodSpec("ldprecover*", targets=True),
    ]
    for name, method in METHODS.items():
        if name == "unmix":
            found.append(MethodSpec("unmix counts", name, reads=False))
            found.append(MethodSpec("unmix", name))
            found.append(MethodSpec("unmix targets", name, targets=True))
            found.append(MethodSpec("unmix history", name, history=True))
        elif name != "ldprecover" and name not in _LEFT_OUT and not name.endswith("-unprojected"):
            found.append(MethodSpec(name, method.name))
    kept = {"ldprecover", "norm-sub", *named}
    return [spec for spec in found if not named or spec.name in kept]


def _names() -> tuple[str, ...]:
    return tuple(spec.name for spec in methods())


def cells_of(
    only: Only, users_by_data: Mapping[str, GenuineUsers], trials: int
) -> dict[Cell, Place]:
    """Return the cells and where each stands: of one factor at a time half as many trials, and at
    least one.
    """
    return {
        replace(cell, trial=trial): place
        for cell, place in _settings(only, users_by_data)
        for trial in range(trials if place.part == "base" else max(1, trials // 2))
    }


def _settings(
    only: Only, users_by_data: Mapping[str, GenuineUsers]
) -> Iterator[tuple[Cell, Place]]:
    """Yield the first cell of every setting."""
    swept = tuple(name for name in users_by_data if name in SWEPT) or tuple(users_by_data)[:2]
    for part in PARTS:
        if part not in only.part:
            continue
        data = tuple(users_by_data) if part == "base" else swept[:1] if part == "more" else swept
        attacks = {"base": BASE, "more": MORE, "targets": _OF_TARGETS}.get(
            part, BASE[1:] if part == "beta" else BASE
        )
        for name in data:
            d = len(users_by_data[name].items)
            for protocol in only.protocol:
                for attack in (attack for attack in attacks if attack in only.attack):
                    for value in FACTORS.get(part, (None,)):
                        epsilon = value if part == "epsilon" and value is not None else EPSILON
                        r = int(value) if part == "targets" and value is not None else TARGETS
                        made = ATTACKS[attack](frequency_oracle(protocol, epsilon, d), r)
                        if made is None or r >= d / 2:
                            continue
                        beta = value if part == "beta" and value is not None else BETA
                        text, model = made
                        cell = Cell(
                            name, protocol, text, model, 0.0 if attack == "none" else beta, epsilon
                        )
                        if _is_made(cell, users_by_data[name]):
                            yield cell, Place(part, attack, value)


def _is_made(cell: Cell, genuine_users: GenuineUsers) -> bool:
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
    """Return in a sentence what it takes: cells, reports that are really made, and about how long.

    The times are of one core of 2020: to make a report and read it once, to search a seed, to
    un-mix counts.
    """
    readers = sum(spec.reads_reports for spec in specs)
    unmixed = sum(spec.method == "unmix" for spec in specs)
    reports, seconds = 0, 0.0
    for cell in cells:
        n, d = users_by_data[cell.data].n, len(users_by_data[cell.data].items)
        m = malicious_users(n, cell.beta)
        made = n + m if readers else m if cell.model == "crafted" else 0
        reports += made
        seconds += (
            0.05
            + 1e-4 * d
            + unmixed * (0.2 + 1e-3 * d)
            + made * (1e-6 + readers * (3e-7 + 4e-10 * d))
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
