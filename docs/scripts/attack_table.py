"""Measure what every attack gains and which alarm sees it, and print the tables of
docs/measurements/attacks.md.

    python docs/scripts/attack_table.py

One round for each attack and protocol, in this process: the genuine users perturb, the malicious
users make the reports that would travel, both are counted. A gain is the rise of the targets'
estimates by the malicious reports; beside it stands what the attack's own formula says.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from round_setting import RoundSetting, asked_for, pads_one_item, rows_of

from ldprecover import FrequencyOracle, ParameterError, frequency_oracle
from ldprecover.evidence.alarms import ALARMS, raise_alarms
from ldprecover.protocols import PROTOCOLS
from ldprecover.recovery.reports import ReportSource
from ldprecover_attacker import (
    AA,
    APA,
    APA2,
    MGA,
    MGAA,
    MLA,
    RIA,
    RPA,
    Attack,
    InputPoisoning,
    Manip,
)
from ldprecover_experiments import PoisonedRound
from ldprecover_experiments.tables import Table

ONLY_PADDED = {"Manip, crafted", "AA diffuse, crafted", "AA peaked, crafted"}
"""Attacks left out where their crafted reports are the sampled ones."""

ONLY_SEARCHED = {"MGA, exhaustive"}
"""Attacks that differ from others by their search alone."""

GIVEN = 512
"""Seeds of the list, where they are given."""

DEFAULT = RoundSetting()
COLUMNS = ("S", "G expected", "G measured", "seen by")
RATE = 1e-6
"""False-alarm rate of each alarm."""


def attacks(targets: list[int]) -> dict[str, Attack | None]:
    """Return the attacks by what the tables call them."""
    return {
        "nobody": None,
        "RPA": RPA(),
        "RIA": RIA(targets),
        "MGA, sampled": MGA(targets, model="sampled"),
        "MGA, crafted": MGA(targets),
        "MGA, exhaustive": MGA(targets, search="exhaustive"),
        "MGA-A, r' = 5": MGAA(targets, 5),
        "APA, r' = 5": APA(targets, 5),
        "APA2": APA2(targets),
        "MLA, projected": MLA(),
        "MLA, raw": MLA(against="raw"),
        "Manip, sampled": Manip(model="sampled"),
        "Manip, crafted": Manip(),
        "AA diffuse, sampled": AA(model="sampled"),
        "AA diffuse, crafted": AA(),
        "AA peaked, sampled": AA("peaked", model="sampled"),
        "AA peaked, crafted": AA("peaked"),
        "MGA, input poisoning": InputPoisoning(MGA(targets)),
    }


@dataclass(frozen=True)
class AttackOutcome:
    """What one attack did to one protocol's round."""

    expected_sum: float
    expected_gain: float
    gain: float
    alarms: tuple[str, ...]


def under(
    setting: RoundSetting, clean: PoisonedRound, attack: Attack | None, targets: list[int]
) -> AttackOutcome | str:
    """Return what an attack did to a clean round, or why it cannot be made."""
    oracle, m, rng = clean.oracle, setting.malicious, partial(np.random.default_rng, setting.seed)
    if attack is None:
        return AttackOutcome(1.0, 0.0, 0.0, alarms(clean))
    try:
        poisoned = clean.under(attack, m, rng())
    except ParameterError as error:
        return str(error)
    after, before = (
        float(f[targets].sum()) for f in (poisoned.poisoned.frequencies, clean.f_genuine)
    )
    gain = attack.gain(
        oracle, clean.truth, m / (m + setting.users), targets=targets, rng=rng(), m=m
    )
    return AttackOutcome(
        attack.support_sum(oracle, rng(), m=m), gain, after - before, alarms(poisoned)
    )


def alarms(round_: PoisonedRound) -> tuple[str, ...]:
    """Return the alarms that a round raises."""
    assert round_.reports is not None
    source = ReportSource(round_.oracle, round_.reports)
    return tuple(
        a.name for a in raise_alarms(round_.oracle, round_.together, source, rate=RATE) if a.raised
    )


def targets_of(setting: RoundSetting, d: int) -> list[int]:
    """Return targets spread evenly over the items, which are in order of frequency."""
    return list(range(5, d, d // setting.targets))[: setting.targets]


def tables(setting: RoundSetting) -> Iterator[str]:
    """Yield a table in Markdown for each protocol, for OLH with given seeds, and that of which
    attack to play.
    """
    found = []
    for protocol in PROTOCOLS:
        found.append(_table(setting, setting.oracle(protocol), protocol.upper()))
        yield found[-1]
    yield given_table(setting)
    yield choices(found)


def given_table(setting: RoundSetting) -> str:
    """Return the table of OLH whose seeds are given."""
    d = setting.oracle("olh").domain_size
    return _table(
        setting,
        frequency_oracle("olh", setting.epsilon, d, None, GIVEN),
        f"OLH, {GIVEN} given seeds",
    )


def _table(setting: RoundSetting, oracle: FrequencyOracle, head: str) -> str:
    clean = setting.clean(oracle, setting.seed)
    targets = targets_of(setting, clean.truth.size)
    absent = set() if pads_one_item(oracle) else ONLY_PADDED
    if oracle.listed_seeds is not None:
        absent = absent | ONLY_SEARCHED
    rows = [
        [name, *_cells(under(setting, clean, attack, targets))]
        for name, attack in attacks(targets).items()
        if name not in absent
    ]
    return Table([head, *COLUMNS], rows).markdown()


AIMS = {
    "the highest gain, seen or not": set(ALARMS),
    "the highest gain that leaves no trace in the reports": {"excess"},
    "the highest gain of these that no alarm sees": set(),
}
"""Aim -> the alarms that may be raised."""


def choices(tables: Iterable[str]) -> str:
    """Return the table of which attack on targets to play for which aim, made from the tables of
    all protocols.
    """
    found = {}
    for table in tables:
        protocol = table.split(" | ")[0].strip("| ")
        found[protocol] = [
            (float(row["G measured"]), name, set(row["seen by"].split(", ")) - {"none"})
            for name, row in rows_of(table).items()
            if row["G measured"] and name.startswith(("RIA", "MGA", "APA"))
        ]
    rows = []
    for aim, allowed in AIMS.items():
        best = (
            max(((g, name) for g, name, seen in lines if seen <= allowed), key=lambda one: one[0])
            for lines in found.values()
        )
        rows.append([aim, *(f"{name}: {gain:+.2f}" for gain, name in best)])
    return Table(["aim", *found], rows).markdown()


def _cells(outcome: AttackOutcome | str) -> Iterable[str]:
    if isinstance(outcome, str):
        return ("refused", "", "", "")
    gains = (
        f"{gain:+.2f}".replace("-0.00", "+0.00") for gain in (outcome.expected_gain, outcome.gain)
    )
    return (f"{outcome.expected_sum + 0.0:.2f}", *gains, ", ".join(outcome.alarms) or "none")


def main() -> None:
    """Print the tables."""
    for table in tables(asked_for(__doc__, DEFAULT)):
        sys.stdout.write(f"{table}\n\n")


if __name__ == "__main__":
    main()
