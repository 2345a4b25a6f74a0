"""Measure every recovery method under a few attacks, and print the tables that compare them.

They stand in docs/measurements/recovery.md and docs/explanation/recovery.md.

    python docs/scripts/methods_table.py --trials 5

Everything happens in this process, and every method is given the same reports. A cell is the mean
over the trials: MSE against the true frequencies f_X, and in brackets FG against the estimate f~_X~
from the genuine reports alone. Methods that need targets are told the right ones; eta is its
default, 0.2, but for the rows with the right model: `custom`, given the share of the malicious
reports that really supports each item.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from round_setting import RoundSetting, asked_for, rows_of

from ldprecover.protocols import PROTOCOLS
from ldprecover.recovery import METHODS
from ldprecover_attacker import make_attack
from ldprecover_experiments import MethodSpec, Outcome, PoisonedRound
from ldprecover_experiments.measures import POISONED, measure
from ldprecover_experiments.tables import Table

ATTACKS: dict[str, dict[str, Any] | None] = {
    "none": None,
    "MGA, crafted": {"name": "mga"},
    "MGA, sampled": {"name": "mga", "model": "sampled"},
    "MGA-A, r' = 4": {"name": "mga-a", "each": 4},
    "APA, r' = 4": {"name": "apa", "each": 4},
    "MGA, input poisoning": {"name": "mga", "input_poisoning": True},
}
LEFT_OUT = ("conditional-probability", "em")
"""The first is for a single target, the second takes minutes."""

ON_ONE_ITEM = ("none", "MGA, crafted", "MGA, input poisoning")
"""The others send the same GRR reports as crafted MGA."""

TOLD = (
    MethodSpec("`ldprecover`, targets", targets=True),
    MethodSpec("`ldprecover`, right model and η", support=True, eta="true"),
    MethodSpec('`ldprecover`, right model, η `"auto"`', support=True, eta="auto"),
)

_PADDED, _INDEPENDENT = ("oue", "sue", "ss"), ("oue", "olh", "sue")
COUNTS = MethodSpec("`unmix`, counts alone", "unmix", reads=False)
_UNMIXED = ("grr", *_INDEPENDENT, "ss")
CHOICES = (
    ("nothing; counts alone are kept", "MGA, crafted", dict.fromkeys(_UNMIXED, COUNTS.name)),
    ("nothing; the reports are kept", "MGA, crafted", dict.fromkeys(_UNMIXED, "`unmix`")),
    (
        "the same, of attackers who vary their targets",
        "MGA-A, r' = 4",
        dict.fromkeys((*_INDEPENDENT, "ss"), "`unmix`"),
    ),
    (
        "the same, of attackers who hide",
        "APA, r' = 4",
        dict.fromkeys((*_INDEPENDENT, "ss"), "`unmix`"),
    ),
    (
        "the same, of attackers who lie honestly",
        "MGA, input poisoning",
        dict.fromkeys(_UNMIXED, "`unmix`"),
    ),
    ("all targets", "MGA, crafted", dict.fromkeys(PROTOCOLS, TOLD[0].name)),
    (
        "all targets; the reports are kept",
        "MGA, crafted",
        {"grr": "`detection-any`", **dict.fromkeys(_PADDED, "`detection-all`")},
    ),
    (
        "all targets, of attackers who hide",
        "APA, r' = 4",
        dict.fromkeys((*_INDEPENDENT, "ss", "hr"), TOLD[0].name),
    ),
    (
        "what malicious reports support, and η",
        "MGA, crafted",
        dict.fromkeys(PROTOCOLS, TOLD[1].name),
    ),
)
"""What is known -> the attack to compare under, and the method to ask for by protocol."""

BESIDE = {"ldprecover": TOLD, "unmix": (COUNTS,)}
"""Ways of asking for a method that have rows of their own."""

DEFAULT = RoundSetting(trials=5)


def methods(setting: RoundSetting, protocol: str) -> list[MethodSpec]:
    """Return what is measured under a protocol."""
    found = []
    for name, method in METHODS.items():
        if name not in LEFT_OUT and method.unfit(setting.oracle(protocol)) is None:
            found += [MethodSpec(f"`{name}`", name), *BESIDE.get(name, ())]
    return found


def play(setting: RoundSetting, protocol: str, attack: str) -> Iterator[PoisonedRound]:
    """Yield the trials of an attack."""
    oracle, options = setting.oracle(protocol), ATTACKS[attack]
    for trial in range(setting.trials):
        users, secret = np.random.SeedSequence([setting.seed, trial]).generate_state(2)
        chosen = np.random.default_rng(secret).permutation(oracle.domain_size)[: setting.targets]
        targets = tuple(sorted(chosen.tolist()))
        plan = None if options is None else make_attack(**options, targets=targets)
        rng = setting.attacker(trial, attack)
        yield setting.clean(oracle, int(users)).under(plan, setting.malicious, rng, targets)


def table(setting: RoundSetting, protocol: str) -> str:
    """Return the table of one protocol in Markdown."""
    one_item = setting.oracle(protocol).traits.one_item
    attacks = [name for name in ATTACKS if not one_item or name in ON_ONE_ITEM]
    asked = methods(setting, protocol)
    cells: dict[str, dict[str, list[Outcome]]] = {
        name: {} for name in ("poisoned", *(spec.name for spec in asked))
    }
    for attack in attacks:
        for round_ in play(setting, protocol, attack):
            for outcome in measure(round_, [POISONED, *asked]):
                cells[outcome.method].setdefault(attack, []).append(outcome)
    rows = [[name, *(_cell(found[attack]) for attack in attacks)] for name, found in cells.items()]
    return Table([protocol.upper(), *attacks], rows).markdown()


def choices(tables: Mapping[str, str]) -> str:
    """Return the table of what to ask for, made from the tables of all protocols.

    A cell is the MSE of projection over the method's, under the attack and, in brackets, without
    any.
    """
    found = {protocol: rows_of(text) for protocol, text in tables.items()}

    def better(protocol: str, name: str, attack: str) -> str:
        def by(under: str) -> float:
            projected, asked = (
                float(found[protocol][row][under].split()[0]) for row in ("`norm-sub`", name)
            )
            return projected / asked

        return f"{name}: {by(attack):.2g} ({by('none'):.2g})"

    rows = [
        [known, attack, *(better(p, methods[p], attack) if p in methods else "" for p in PROTOCOLS)]
        for known, attack, methods in CHOICES
    ]
    return Table(["known", "if this is the attack", *map(str.upper, PROTOCOLS)], rows).markdown()


def _cell(found: Sequence[Outcome]) -> str:
    error, gain = np.mean([(outcome.mse, outcome.fg or 0.0) for outcome in found], axis=0)
    return (
        "refused"
        if np.isnan(error)
        else f"{error:.1e} ({round(gain, 2) + 0.0:+.2f})".replace("e-0", "e-")
    )


def tables(setting: RoundSetting) -> Iterator[str]:
    """Yield the tables in Markdown."""
    found = {}
    for protocol in PROTOCOLS:
        found[protocol] = table(setting, protocol)
        yield found[protocol]
    yield choices(found)


def main() -> None:
    """Print the tables."""
    for each in tables(asked_for(__doc__, DEFAULT)):
        sys.stdout.write(f"{each}\n\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
