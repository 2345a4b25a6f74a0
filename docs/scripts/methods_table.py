"""Measure every recovery method under a few attacks, and print the tables of docs/recovery.md that compare them.

    python docs/scripts/methods_table.py --trials 5

Everything happens in this process, and every method is given the same reports. A cell is the mean
over the trials: MSE against the true frequencies f_X, and in brackets FG against the estimate f~_X~
from the genuine reports alone. Methods that need targets are told the right ones; eta is its default, 0.2, but for
the rows with the right model: `custom`, given the share of the malicious reports that really supports each item.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from setting import PROTOCOLS, Setting, asked_for

from ldprecover import Estimates, FrequencyOracle, ParameterError, Tally, frequency_oracle, recover
from ldprecover.metrics import frequency_gain, mse
from ldprecover.recovery import METHODS
from ldprecover_attacker import make_attack
from ldprecover_client import Population, load_dataset

ATTACKS: dict[str, dict[str, Any] | None] = {
    "none": None,
    "MGA, crafted": {"name": "mga"},
    "MGA, sampled": {"name": "mga", "model": "sampled"},
    "MGA-A, r' = 4": {"name": "mga-a", "each": 4},
    "APA, r' = 4": {"name": "apa", "each": 4},
    "MGA, input poisoning": {"name": "mga", "input_poisoning": True},
}
LEFT_OUT = ("conditional-probability", "em")
"""The one is for a single target, the other takes minutes."""

ON_GRR = ("none", "MGA, crafted", "MGA, input poisoning")
"""The others send the same GRR reports as crafted MGA."""

RIGHT, ESTIMATED = "`ldprecover`, right model and η", '`ldprecover`, right model, η `"auto"`'

CHOICES = (
    ("nothing; somebody may raise items", "MGA, crafted", dict.fromkeys(PROTOCOLS, "normalization")),
    ("nothing; the reports are kept", "MGA, crafted", {"oue": "fiad", "olh": "fiad"}),
    ("the same, of attackers who vary their targets", "MGA-A, r' = 4", {"oue": "diffstats", "olh": "diffstats"}),
    ("all targets", "MGA, crafted", dict.fromkeys(PROTOCOLS, "ldprecover`, targets")),
    ("all targets; the reports are kept", "MGA, crafted", {"grr": "detection-any", "oue": "detection-all"}),
    ("all targets, of attackers who hide", "APA, r' = 4", dict.fromkeys(("oue", "olh"), "ldprecover`, targets")),
    (
        "what malicious reports support, and η",
        "MGA, crafted",
        dict.fromkeys(PROTOCOLS, "ldprecover`, right model and η"),
    ),
)
"""What is known -> the attack to compare under, and the method to ask for by protocol."""

DEFAULT = Setting(trials=5)


@dataclass(frozen=True)
class Round:
    """One trial of one attack."""

    oracle: FrequencyOracle
    true: NDArray[np.float64]
    genuine: Estimates
    poisoned: Estimates
    reports: NDArray[Any]
    targets: tuple[int, ...]
    support: NDArray[np.float64]  # pi, the share of malicious reports for each item


def rows(setting: Setting, protocol: str, attack: str) -> dict[str, Mapping[str, Any]]:
    """Return what `recover` is asked for, by the name of the row."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, method in METHODS.items():
        if name in LEFT_OUT or method.unfit(frequency_oracle(protocol, setting.epsilon, 102)) is not None:
            continue
        found[f"`{name}`"] = {"method": name}
        if name == "ldprecover":
            found["`ldprecover`, targets"] = {"targets": True}
            found[RIGHT] = {"custom": True, "eta": 0.0 if attack == "none" else setting.true_eta}
            found[ESTIMATED] = {"custom": True, "eta": "auto"}
    return found


def play(setting: Setting, protocol: str, attack: str) -> Iterator[Round]:
    """Yield the trials of an attack."""
    dataset = load_dataset(setting.dataset)
    oracle = frequency_oracle(protocol, setting.epsilon, len(dataset.items))
    options = ATTACKS[attack]
    for trial in range(setting.trials):
        seeds = np.random.SeedSequence([setting.seed, trial]).generate_state(2)
        population = Population.of(dataset, setting.users, int(seeds[0]), draw="apportioned")
        reports = genuine = population.reports(oracle)
        support = np.full(oracle.domain_size, 1 / oracle.domain_size)
        targets = tuple(
            sorted(np.random.default_rng(seeds[1]).permutation(oracle.domain_size)[: setting.targets].tolist())
        )
        if options is not None:
            rng = np.random.default_rng([setting.seed, trial, *attack.encode()])
            malicious = make_attack(**options, targets=targets).reports(oracle, setting.malicious, rng)
            reports = np.concatenate([genuine, malicious])
            support = oracle.support_counts(malicious) / len(malicious)
        yield Round(
            oracle,
            population.frequencies,
            Estimates.of(oracle, Tally.of(oracle, genuine)),
            Estimates.of(oracle, Tally.of(oracle, reports)),
            reports,
            targets,
            support,
        )


def table(setting: Setting, protocol: str) -> str:
    """Return the table of one protocol in Markdown."""
    attacks = [name for name in ATTACKS if protocol != "grr" or name in ON_GRR]
    cells: dict[str, dict[str, list[tuple[float, float] | None]]] = {}
    for attack in attacks:
        asked = rows(setting, protocol, attack)
        for r in play(setting, protocol, attack):
            for name, fields in {"poisoned": None, **asked}.items():
                cells.setdefault(name, {}).setdefault(attack, []).append(_measured(r, fields))
    head = [protocol.upper(), *attacks]
    lines = [head, ["---"] * len(head)]
    lines += [[name, *(_cell(found[attack]) for attack in attacks)] for name, found in cells.items()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def choices(tables: Mapping[str, str]) -> str:
    """Return the table of what to ask for, made from the tables of all protocols.

    A cell is the MSE of projection over the method's, under the attack and, in brackets, without any.
    """
    found = {protocol: _errors(text) for protocol, text in tables.items()}
    head = ["known", "if this is the attack", *(protocol.upper() for protocol in PROTOCOLS)]
    lines = [head, ["---"] * len(head)]
    for known, attack, methods in CHOICES:
        line = [known, attack]
        for protocol in PROTOCOLS:
            if protocol not in methods:
                line.append("")
                continue
            name = f"`{methods[protocol]}" + ("" if "`" in methods[protocol] else "`")
            projected, asked = found[protocol]["`norm-sub`"], found[protocol][name]
            better, clean = (projected[under] / asked[under] for under in (attack, "none"))
            line.append(f"{name}: {better:.2g} ({clean:.2g})")
        lines.append(line)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _errors(table: str) -> dict[str, dict[str, float]]:
    """Return the MSE by row and column of a printed table, without the cells that have none."""
    head, _, *lines = ([cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.strip().splitlines())
    return {
        line[0]: {
            name: float(cell.split()[0]) for name, cell in zip(head[1:], line[1:], strict=True) if cell != "refused"
        }
        for line in lines
    }


def _measured(r: Round, fields: Mapping[str, Any] | None) -> tuple[float, float] | None:
    """Return MSE and FG; None where the method refuses."""
    result = r.poisoned.frequencies
    if fields is not None:
        method = fields.get("method", "ldprecover")
        known: dict[str, Any] = {"n": r.poisoned.n, "reports": r.reports}
        if "targets" in METHODS[method].needs or "targets" in fields:
            known["targets"] = r.targets
        if "custom" in fields:
            known |= {"malicious_model": "custom", "support": r.support, "eta": fields["eta"]}
        try:
            result = recover(r.oracle, result, method=method, **known).recovered
        except ParameterError:
            return None
    return mse(result, r.true), frequency_gain(result, r.genuine.frequencies, r.targets)


def _cell(found: list[tuple[float, float] | None]) -> str:
    known = [cell for cell in found if cell is not None]
    if len(known) < len(found):
        return "refused"
    error, gain = np.mean(known, axis=0)
    return f"{error:.1e} ({round(gain, 2) + 0.0:+.2f})".replace("e-0", "e-")


def main() -> None:
    """Print the tables."""
    setting = asked_for(__doc__, DEFAULT)
    found = {}
    for protocol in PROTOCOLS:
        found[protocol] = table(setting, protocol)
        sys.stdout.write(f"{found[protocol]}\n")
        sys.stdout.flush()
    sys.stdout.write(choices(found))


if __name__ == "__main__":
    main()
