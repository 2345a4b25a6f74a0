"""Measure what recovery makes of attacks, and print the tables of docs/recovery.md.

    python docs/scripts/recovery_table.py --trials 10

Everything happens in this process: genuine users perturb, malicious users make the reports that would
travel, both are counted, and every method recovers from the same poisoned frequencies. MSE is measured
against the true frequencies f_X, FG against the estimate f~_X~ from the genuine reports alone. A cell
is the mean over the trials; a trial draws its targets, its reports and the attacker's secrets anew.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldprecover import Estimates, FrequencyOracle, Tally, frequency_oracle, recover
from ldprecover.metrics import frequency_gain, mse
from ldprecover.recovery import DEFAULT_ETA
from ldprecover_attacker import AA, MGA, Attack, InputPoisoning, Manip
from ldprecover_client import Population, load_dataset

PROTOCOLS = ("grr", "oue", "olh")
Vector = NDArray[np.float64]
Targets = tuple[int, ...]


@dataclass(frozen=True)
class Setting:
    """What the rounds have in common; the paper's setting by default (VI-A)."""

    dataset: str = "cities"
    users: int = 389_894
    epsilon: float = 0.5
    beta: float = 0.05
    targets: int = 10
    trials: int = 10
    seed: int = 1

    @property
    def malicious(self) -> int:
        """m, so that m/(n + m) is beta."""
        return round(self.users * self.beta / (1 - self.beta))

    @property
    def true_eta(self) -> float:
        """m/n."""
        return self.malicious / self.users


@dataclass(frozen=True)
class Round:
    """One trial of one attack: true, genuine and poisoned frequencies, and what a server could know."""

    oracle: FrequencyOracle
    true: Vector
    genuine: Vector
    poisoned: Vector
    earlier: Vector  # estimates of a clean round before this one, of as many users
    targets: Targets
    targeted: bool
    rng: np.random.Generator

    def risen_most(self, k: int, since: Vector) -> Targets:
        """Return the k items whose estimate rose most."""
        return tuple(np.argsort(since - self.poisoned, kind="stable")[:k].tolist())

    @property
    def known(self) -> Targets:
        """What LDPRecover* is told: the targets; under an attack without any, the r/2 greatest rises (paper, VI-A)."""
        return self.targets if self.targeted else self.risen_most(len(self.targets) // 2, self.genuine)

    def errors(self, estimate: Vector) -> tuple[float, float]:
        """Return MSE, and FG of the targets."""
        return mse(estimate, self.true), frequency_gain(estimate, self.genuine, self.targets)


Make = Callable[[Round], Vector]  # an estimate of the genuine frequencies from what is known of a round


def attacks(protocol: str) -> dict[str, Callable[[Targets], Attack] | None]:
    """Return the attacks of the tables, by name: what their reports are is another matter for each protocol."""
    models = {"": "crafted"} if protocol != "oue" else {", sampled": "sampled", ", crafted": "crafted"}
    found: dict[str, Callable[[Targets], Attack] | None] = {"none": None}
    if protocol == "grr":
        found["MGA"] = MGA
    else:
        found["MGA, sampled"] = lambda targets: MGA(targets, model="sampled")
        found["MGA, crafted"] = MGA
    for suffix, model in models.items():
        found[f"Manip{suffix}"] = lambda _, model=model: Manip(model=model)
        found[f"AA, diffuse{suffix}"] = lambda _, model=model: AA("diffuse", model=model)
        found[f"AA, peaked{suffix}"] = lambda _, model=model: AA("peaked", model=model)
    found["MGA, input poisoning"] = lambda targets: InputPoisoning(MGA(targets))
    return found


def rounds(setting: Setting, protocol: str, names: tuple[str, ...] = ()) -> Iterator[tuple[str, Round]]:
    """Yield the trials of each attack (of these names, where given); the same whichever others are asked for."""
    dataset = load_dataset(setting.dataset)
    d = len(dataset.items)
    oracle = frequency_oracle(protocol, setting.epsilon, d)

    def estimate(tally: Tally) -> Vector:
        return Estimates.of(oracle, tally).frequencies

    for trial in range(setting.trials):
        # Two clean rounds: the one that is attacked and one before it.
        seeds = [setting.seed * 10_000 + 2 * trial, setting.seed * 10_000 + 2 * trial + 1]
        users = [Population.of(dataset, setting.users, seed, draw="apportioned") for seed in seeds]
        honest, before = (Tally.of(oracle, group.reports(oracle)) for group in users)
        targets = tuple(np.random.default_rng([setting.seed, trial]).choice(d, setting.targets, replace=False).tolist())
        for number, (name, make) in enumerate(attacks(protocol).items()):
            if names and name not in names:
                continue
            rng = np.random.default_rng([setting.seed, trial, PROTOCOLS.index(protocol), number])
            tally = honest
            if make is not None:
                reports = make(targets).reports(oracle, setting.malicious, rng)
                tally = honest + Tally.of(oracle, reports)
            yield (
                name,
                Round(
                    oracle=oracle,
                    true=users[0].frequencies,
                    genuine=estimate(honest),
                    poisoned=estimate(tally),
                    earlier=estimate(before),
                    targets=targets,
                    targeted=name == "none" or "MGA" in name,
                    rng=rng,
                ),
            )


def untold(eta: float = DEFAULT_ETA) -> Make:
    """LDPRecover without targets; at eta 0 projection alone."""
    return lambda r: recover(r.oracle, r.poisoned, eta=eta).recovered


def told(model: str, targets: Callable[[Round], Targets] = lambda r: r.known, eta: float = DEFAULT_ETA) -> Make:
    """LDPRecover*, told these targets."""
    return lambda r: recover(r.oracle, r.poisoned, eta=eta, targets=targets(r), malicious_model=model).recovered


def measure(
    setting: Setting, protocol: str, methods: dict[str, Make], names: tuple[str, ...] = ()
) -> dict[str, dict[str, tuple[float, float]]]:
    """Return mean MSE and mean FG: attack -> method -> (MSE, FG)."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for name, played in rounds(setting, protocol, names):
        cells = found.setdefault(name, {method: [] for method in methods})
        for method, make in methods.items():
            cells[method].append(played.errors(make(played)))
    return {
        name: {method: (float(np.mean([c[0] for c in column])), float(np.mean([c[1] for c in column])))
               for method, column in cells.items()}
        for name, cells in found.items()
    }  # fmt: skip


METHODS: dict[str, Make] = {
    "poisoned": lambda r: r.poisoned,
    "projected": untold(eta=0),
    "LDPRecover": untold(),
    "LDPRecover*, paper": told("paper"),
    "LDPRecover*, exact": told("exact"),
}


def main() -> None:
    for protocol in PROTOCOLS:
        result = measure(Setting(trials=int(sys.argv[1])), protocol, METHODS)
        for name, cells in result.items():
            print(f"{protocol} {name:25}", *(f"{m:.2e} ({g:+.3f})" for m, g in cells.values()))


main()
