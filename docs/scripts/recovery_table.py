"""Measure what recovery makes of attacks, and print the tables of docs/recovery.md.

    python docs/scripts/recovery_table.py --trials 10

Everything happens in this process: genuine users perturb, malicious users make the reports that would
travel, both are counted, and every method recovers from the same poisoned frequencies. MSE is measured
against the true frequencies f_X; FG, in brackets, against the estimate f~_X~ from the genuine reports
alone. A cell is the mean over the trials; each trial draws reports, targets and the attacker's secrets anew.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from setting import PROTOCOLS, Setting, asked_for

from ldprecover import Estimates, FrequencyOracle, Tally, frequency_oracle, project_simplex, recover
from ldprecover.metrics import frequency_gain, mse
from ldprecover.recovery import DEFAULT_ETA
from ldprecover_attacker import make_attack
from ldprecover_client import Population, load_dataset

RISE = 4.0
"""Standard errors by which an estimate must have risen since an earlier round for its item to be suspected."""

Vector = NDArray[np.float64]
Targets = tuple[int, ...]

DEFAULT = Setting(trials=10)


@dataclass(frozen=True)
class Round:
    """One trial of one attack: what is true, and what a server may know of it.

    `earlier` are the estimates of another clean round of as many users, who hold the same items.
    """

    oracle: FrequencyOracle
    true: Vector
    genuine: Estimates
    poisoned: Estimates
    earlier: Estimates
    targets: Targets
    targeted: bool
    others: Targets  # as many other items

    @cached_property
    def told(self) -> Targets:
        """What LDPRecover* is told: the targets, or where there are none the r/2 greatest rises (paper, VI-A)."""
        rise = self.poisoned.frequencies - self.genuine.frequencies
        return self.targets if self.targeted else tuple(np.argsort(-rise)[: len(self.targets) // 2].tolist())

    @cached_property
    def suspected(self) -> Targets:
        """The items that have risen by RISE standard errors since the earlier round."""
        error = np.hypot(self.poisoned.standard_errors, self.earlier.standard_errors)
        rise = self.poisoned.frequencies - self.earlier.frequencies
        return tuple(np.flatnonzero(rise > RISE * error).tolist())


Method = Callable[[Round], Vector]
"""From what is known of a round to the recovered frequencies."""


def untold(eta: float = DEFAULT_ETA) -> Method:
    """LDPRecover without targets; at eta = 0 it is projection alone."""
    return lambda r: recover(r.oracle, r.poisoned.frequencies, eta=eta).recovered


def told(model: str, eta: float = DEFAULT_ETA, targets: Callable[[Round], Targets] = lambda r: r.told) -> Method:
    """LDPRecover*."""
    return lambda r: (
        recover(r.oracle, r.poisoned.frequencies, eta=eta, targets=targets(r), malicious_model=model).recovered
    )


def without_targets(r: Round) -> Vector:
    """Targets at zero, the other items projected: what one can do without any model of the attack."""
    others = np.delete(np.arange(r.true.size), r.told)
    result = np.zeros_like(r.true)
    result[others] = project_simplex(r.poisoned.frequencies[others])
    return result


def attacks(protocol: str) -> dict[str, dict[str, Any] | None]:
    """Return the attacks by name, as options of `make_attack`.

    Only those with reports of their own: both report models give the same GRR reports, and the same OLH
    reports but for MGA.
    """
    found: dict[str, dict[str, Any] | None] = {"none": None}
    models = ("sampled", "crafted")
    found |= {f"MGA, {model}": {"name": "mga", "model": model} for model in models[protocol == "grr" :]}
    for model in models[protocol != "oue" :]:
        found[f"Manip, {model}"] = {"name": "manip", "model": model}
        found[f"AA diffuse, {model}"] = {"name": "aa", "kind": "diffuse", "model": model}
        found[f"AA peaked, {model}"] = {"name": "aa", "kind": "peaked", "model": model}
    return found | {"MGA, input poisoning": {"name": "mga", "input_poisoning": True}}


def play(setting: Setting, protocol: str, only: str | None = None) -> dict[str, list[Round]]:
    """Return the trials of each attack. A trial is the same whatever else is played."""
    dataset = load_dataset(setting.dataset)
    d = len(dataset.items)
    oracle = frequency_oracle(protocol, setting.epsilon, d)
    chosen = {name: options for name, options in attacks(protocol).items() if only in (None, name)}
    played: dict[str, list[Round]] = {name: [] for name in chosen}
    for trial in range(setting.trials):
        seeds = np.random.SeedSequence([setting.seed, trial]).generate_state(3)
        groups = [Population.of(dataset, setting.users, int(seed), draw="apportioned") for seed in seeds[:2]]
        earlier, genuine = (Tally.of(oracle, group.reports(oracle)) for group in groups)
        items = np.random.default_rng(seeds[2]).permutation(d)[: 2 * setting.targets].tolist()
        targets, others = tuple(items[: setting.targets]), tuple(items[setting.targets :])
        for name, options in chosen.items():
            poisoned = genuine
            if options is not None:
                attack = make_attack(**options, targets=targets if _is_targeted(name) else None)
                rng = np.random.default_rng([setting.seed, trial, *name.encode()])
                poisoned += Tally.of(oracle, attack.reports(oracle, setting.malicious, rng))
            played[name].append(
                Round(
                    oracle=oracle,
                    true=groups[0].frequencies,
                    genuine=Estimates.of(oracle, genuine),
                    poisoned=Estimates.of(oracle, poisoned),
                    earlier=Estimates.of(oracle, earlier),
                    targets=targets,
                    targeted=_is_targeted(name),
                    others=others,
                )
            )
    return played


METHODS: dict[str, Method] = {
    "poisoned": lambda r: r.poisoned.frequencies,
    "projected only": untold(eta=0),
    "LDPRecover": untold(),
    "LDPRecover*, paper": told("paper"),
    "LDPRecover*, exact": told("exact"),
}
KINDS: dict[str, Callable[[float], Method]] = {
    "LDPRecover": untold,
    "LDPRecover*, paper": lambda eta: told("paper", eta),
    "LDPRecover*, exact": lambda eta: told("exact", eta),
}
NAMED: dict[str, Method] = {
    "no item (LDPRecover)": untold(),
    "all targets": told("paper"),
    "half of them": told("paper", targets=lambda r: r.targets[: len(r.targets) // 2]),
    "all targets, and as many others": told("paper", targets=lambda r: r.targets + r.others),
    "others only, as many": told("paper", targets=lambda r: r.others),
    "what rose since an earlier round": told("paper", targets=lambda r: r.suspected),
    "all targets, and no model: they at zero, the rest projected": without_targets,
}
CRAFTED, SAMPLED = "MGA, crafted", "MGA, sampled"
BETAS = (0.01, 0.02, 0.03, 0.04, 0.05)


def tables(setting: Setting) -> Iterator[str]:
    """Yield the tables in Markdown."""
    played = {protocol: play(setting, protocol) for protocol in PROTOCOLS}
    for protocol, attacked in played.items():
        yield _table(
            [protocol.upper(), "sum", *METHODS],
            ([name, _sum(rounds), *(_cell(rounds, m) for m in METHODS.values())] for name, rounds in attacked.items()),
        )
    yield _facts([rounds for attacked in played.values() for rounds in attacked.values()])

    etas = (0.01, setting.true_eta, DEFAULT_ETA, 0.4, 1.0)
    yield _table(
        ["η", "", *(f"{eta:.2g}" for eta in etas)],
        (
            [f"{protocol.upper()}, {name}", kind, *(_cell(attacked[name], make(eta)) for eta in etas)]
            for protocol, attacked in played.items()
            for name in (SAMPLED, CRAFTED)
            if name in attacked
            for kind, make in KINDS.items()
        ),
    )
    yield _table(
        ["named as targets", *(f"{protocol.upper()}, {CRAFTED}" for protocol in PROTOCOLS)],
        ([name, *(_cell(played[p][CRAFTED], method) for p in PROTOCOLS)] for name, method in NAMED.items()),
    )
    yield _table(
        ["rose since an earlier round", *(protocol.upper() for protocol in PROTOCOLS)],
        ([name, *(_found(played[p].get(name, [])) for p in PROTOCOLS)] for name in played["oue"] if _is_targeted(name)),
    )
    one_hot = [play(replace(setting, beta=beta), "oue", only=SAMPLED)[SAMPLED] for beta in BETAS]
    yield _table(
        [f"OUE, {SAMPLED}", *(f"β = {beta:g}" for beta in BETAS)],
        ([name, *(_cell(rounds, method) for rounds in one_hot)] for name, method in METHODS.items()),
    )


def _is_targeted(attack: str) -> bool:
    return attack == "none" or attack.startswith("MGA")


def _sum(rounds: Sequence[Round]) -> str:
    return f"{np.mean([r.poisoned.sum for r in rounds]):.2f}"


def _mse(rounds: Sequence[Round], method: Method) -> Vector:
    return np.array([mse(method(r), r.true) for r in rounds])


def _cell(rounds: Sequence[Round], method: Method) -> str:
    error = f"{_mse(rounds, method).mean():.2e}".replace("e-0", "e-")
    if not rounds[0].targeted:
        return error
    gain = np.mean([frequency_gain(method(r), r.genuine.frequencies, r.targets) for r in rounds])
    return f"{error} ({round(gain, 2) + 0.0:+.2f})"


def _facts(attacked: Sequence[Sequence[Round]]) -> str:
    errors = [_mse(rounds, method) for rounds in attacked for method in METHODS.values()]
    spread = [e.std() / np.sqrt(max(e.size - 1, 1)) / e.mean() for e in errors]
    projected, untold, told = (METHODS[name] for name in ("projected only", "LDPRecover", "LDPRecover*, paper"))
    better = sum(int((_mse(rounds, untold) < _mse(rounds, projected)).sum()) for rounds in attacked)
    zeroed = sum(not told(r)[list(r.told)].any() for rounds in attacked for r in rounds)
    trials = sum(map(len, attacked))
    return (
        f"LDPRecover had a lower MSE than projection alone in {better} of these {trials} trials. LDPRecover*, paper, "
        f"set every item it was told to zero in {zeroed} of {trials}. The standard error of a mean MSE is "
        f"{np.median(spread):.0%} of it in the median, {max(spread):.0%} at most.\n"
    )


def _found(rounds: Sequence[Round]) -> str:
    if not rounds:
        return ""
    hits = np.mean([len(set(r.suspected) & set(r.targets)) for r in rounds])
    return f"{hits:.1f} targets, {np.mean([len(r.suspected) for r in rounds]) - hits:.1f} others"


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Print the tables."""
    for table in tables(asked_for(__doc__, DEFAULT)):
        sys.stdout.write(f"{table}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
