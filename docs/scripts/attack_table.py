"""Measure what every attack gains and which alarm sees it, and print the tables of docs/attacks.md.

    python docs/scripts/attack_table.py

One round for each attack and protocol, in this process: the genuine users perturb, the malicious users make
the reports that would travel, both are counted. A gain is the rise of the targets' estimates by the malicious
reports; beside it stands what the attack's own formula says.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from setting import PROTOCOLS, Setting, asked_for

from ldprecover import Estimates, FrequencyOracle, ParameterError, Tally, frequency_oracle
from ldprecover.alarms import raise_alarms
from ldprecover.recovery.reports import ReportSource
from ldprecover_attacker import AA, APA, APA2, MGA, MGAA, MLA, RIA, RPA, Attack, InputPoisoning, Manip
from ldprecover_client import Population, load_dataset

ONLY_OUE = {"Manip, crafted", "AA diffuse, crafted", "AA peaked, crafted"}
"""Attacks whose crafted reports are the sampled ones under GRR and OLH."""

DEFAULT = Setting()
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
class Outcome:
    """What one attack did to one protocol's round."""

    expected_sum: float
    expected_gain: float
    gain: float
    alarms: tuple[str, ...]


class Round:
    """The genuine half of one protocol's rounds, and what attacks make of it."""

    def __init__(self, setting: Setting, protocol: str) -> None:
        dataset = load_dataset(setting.dataset)
        population = Population.of(dataset, setting.users, setting.seed, draw="apportioned")
        self.setting = setting
        self.frequencies = population.frequencies
        self.oracle: FrequencyOracle = frequency_oracle(protocol, setting.epsilon, len(dataset.items))
        self.reports = population.reports(self.oracle)
        self.tally = Tally.of(self.oracle, self.reports)
        self.targets = targets_of(setting, len(dataset.items))

    def under(self, attack: Attack | None) -> Outcome | str:
        """Return what the attack did, or why it cannot be made."""
        setting, oracle, m = self.setting, self.oracle, self.setting.malicious
        if attack is None:
            return Outcome(1.0, 0.0, 0.0, self._alarms(self.tally, [self.reports]))
        try:
            malicious = attack.reports(oracle, m, np.random.default_rng(setting.seed))
        except ParameterError as error:
            return str(error)
        tally = self.tally + Tally.of(oracle, malicious)
        after, before = (Estimates.of(oracle, t).frequencies[self.targets].sum() for t in (tally, self.tally))
        same: dict[str, Any] = {"rng": np.random.default_rng(setting.seed), "m": m}
        gain = attack.gain(oracle, self.frequencies, m / (m + setting.users), targets=self.targets, **same)
        total = attack.support_sum(oracle, np.random.default_rng(setting.seed), m=m)
        return Outcome(total, gain, float(after - before), self._alarms(tally, [self.reports, malicious]))

    def _alarms(self, tally: Tally, reports: list[np.ndarray]) -> tuple[str, ...]:
        source = ReportSource(self.oracle, lambda: iter(reports))
        alarms = raise_alarms(self.oracle, tally, source, rate=RATE)
        return tuple(alarm.name for alarm in alarms if alarm.raised)


def targets_of(setting: Setting, d: int) -> list[int]:
    """Return targets spread evenly over the items, which are in order of frequency."""
    return list(range(5, d, d // setting.targets))[: setting.targets]


def tables(setting: Setting) -> Iterator[str]:
    """Yield a table in Markdown for each protocol."""
    for protocol in PROTOCOLS:
        round_ = Round(setting, protocol)
        rows = [_line([protocol.upper(), "S", "G expected", "G measured", "seen by"]), _line(["---"] * 5)]
        for name, attack in attacks(round_.targets).items():
            if protocol == "oue" or name not in ONLY_OUE:
                rows.append(_line([name, *_cells(round_.under(attack))]))
        yield "\n".join(rows)


AIMS = {
    "the highest gain, seen or not": {"sum-drift", "excess", "support-size", "duplicate-seeds"},
    "the highest gain that leaves no trace in the reports": {"excess"},
    "the highest gain that no alarm sees": set(),
}
"""Aim -> the alarms that may be raised."""


def choices(tables: Iterable[str]) -> str:
    """Return the table of which attack on targets to play for which aim, made from the tables of all protocols."""
    found = {}
    for table in tables:
        head, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
        found[head[0]] = [
            (float(line[3]), line[0], set(line[4].split(", ")) - {"none"})
            for line in lines
            if line[3] and line[0].startswith(("RIA", "MGA", "APA"))
        ]
    rows = [_line(["aim", *found]), _line(["---"] * (1 + len(found)))]
    for aim, allowed in AIMS.items():
        best = (
            max(((g, name) for g, name, seen in lines if seen <= allowed), key=lambda one: one[0])
            for lines in found.values()
        )
        rows.append(_line([aim, *(f"{name}: {gain:+.2f}" for gain, name in best)]))
    return "\n".join(rows)


def _cells(outcome: Outcome | str) -> Iterable[str]:
    if isinstance(outcome, str):
        return ("refused", "", "", "")
    gains = (f"{gain:+.2f}".replace("-0.00", "+0.00") for gain in (outcome.expected_gain, outcome.gain))
    return (f"{outcome.expected_sum + 0.0:.2f}", *gains, ", ".join(outcome.alarms) or "none")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the tables."""
    found = []
    for table in tables(asked_for(__doc__, DEFAULT)):
        found.append(table)
        sys.stdout.write(f"{table}\n\n")
    sys.stdout.write(f"{choices(found)}\n")


if __name__ == "__main__":
    main()
