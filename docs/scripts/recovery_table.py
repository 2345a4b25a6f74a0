"""Measure what recovery makes of attacks, and print the tables of docs/measurements/recovery.md.

    python docs/scripts/recovery_table.py --trials 10

Everything happens in this process: genuine users perturb, malicious users make the reports that
would travel, both are counted, and every method recovers from the same poisoned frequencies. MSE is
measured against the true frequencies f_X; FG, in brackets, against the estimate f~_X~ from the
genuine reports alone. A cell is the mean over the trials; each trial draws reports, targets and the
attacker's secrets anew.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from round_setting import RoundSetting, asked_for, pads_one_item

from ldprecover import Estimates, FrequencyOracle, RecoveryRequest, project_simplex
from ldprecover.estimation.metrics import frequency_gain, mse
from ldprecover.protocols import PROTOCOLS
from ldprecover.recovery import DEFAULT_ETA
from ldprecover_attacker import make_attack
from ldprecover_experiments import PoisonedRound
from ldprecover_experiments.measures import known_targets
from ldprecover_experiments.poisoned_round import Targets, Vector
from ldprecover_experiments.tables import Table

RISE = 4.0
"""Standard errors by which an estimate must have risen since an earlier round for its item to be
suspected.
"""

DEFAULT = RoundSetting(trials=10)


@dataclass(frozen=True, eq=False)
class Trial:
    """One trial of one attack, and what a server may know of it beside the reports.

    `earlier` are the estimates of another clean round of as many users, who hold the same items.
    `targets` are drawn for every attack, and `others` as many other items; `round` has its own
    where the attack has any.
    """

    round: PoisonedRound
    earlier: Estimates
    targets: Targets
    others: Targets

    @property
    def targeted(self) -> bool:
        """Whether gains are measured."""
        return self.round.targets is not None

    @cached_property
    def told(self) -> Targets:
        """The targets that LDPRecover* knows."""
        return known_targets(self.round, len(self.targets) // 2)

    @cached_property
    def suspected(self) -> Targets:
        """The items that have risen by RISE standard errors since the earlier round."""
        error = np.hypot(self.round.poisoned.standard_errors, self.earlier.standard_errors)
        rise = self.round.poisoned.frequencies - self.earlier.frequencies
        return tuple(np.flatnonzero(rise > RISE * error).tolist())


Method = Callable[[Trial], Vector]
"""From what is known of a trial to the recovered frequencies."""


def untold(eta: float = DEFAULT_ETA) -> Method:
    """LDPRecover without targets; at eta = 0 it is projection alone."""
    return told("paper", eta, lambda t: ())


def told(
    model: str, eta: float = DEFAULT_ETA, targets: Callable[[Trial], Targets] = lambda t: t.told
) -> Method:
    """LDPRecover*."""

    def recovered(t: Trial) -> Vector:
        request = RecoveryRequest(eta=eta, targets=targets(t), malicious_model=model)
        return t.round.recover(request).recovered

    return recovered


def without_targets(t: Trial) -> Vector:
    """Targets at zero, the other items projected: what one can do without any model of the
    attack.
    """
    others = np.delete(np.arange(t.round.truth.size), t.told)
    result = np.zeros_like(t.round.truth)
    result[others] = project_simplex(t.round.poisoned.frequencies[others])
    return result


def attacks(oracle: FrequencyOracle) -> dict[str, dict[str, Any] | None]:
    """Return the attacks by name, as options of `make_attack`.

    Only those with reports of their own: both report models give the same GRR reports, and the same
    reports but for MGA where nothing is padded.
    """
    found: dict[str, dict[str, Any] | None] = {"none": None}
    models = ("sampled", "crafted")
    found |= {
        f"MGA, {model}": {"name": "mga", "model": model}
        for model in models[oracle.traits.one_item :]
    }
    for model in models[not pads_one_item(oracle) :]:
        found[f"Manip, {model}"] = {"name": "manip", "model": model}
        found[f"AA diffuse, {model}"] = {"name": "aa", "kind": "diffuse", "model": model}
        found[f"AA peaked, {model}"] = {"name": "aa", "kind": "peaked", "model": model}
    return found | {"MGA, input poisoning": {"name": "mga", "input_poisoning": True}}


def play(setting: RoundSetting, protocol: str, only: str | None = None) -> dict[str, list[Trial]]:
    """Return the trials of each attack. A trial is the same whatever else is played."""
    oracle = setting.oracle(protocol)
    chosen = {
        name: options
        for name, options in attacks(setting.oracle(protocol)).items()
        if only in (None, name)
    }
    played: dict[str, list[Trial]] = {name: [] for name in chosen}
    for trial in range(setting.trials):
        *users, secret = np.random.SeedSequence([setting.seed, trial]).generate_state(3)
        earlier, clean = (setting.clean(oracle, int(seed)) for seed in users)
        items = (
            np.random.default_rng(secret)
            .permutation(oracle.domain_size)[: 2 * setting.targets]
            .tolist()
        )
        targets, others = tuple(items[: setting.targets]), tuple(items[setting.targets :])
        for name, options in chosen.items():
            its = targets if _is_targeted(name) else None
            attack = None if options is None else make_attack(**options, targets=its)
            poisoned = clean.under(attack, setting.malicious, setting.attacker(trial, name), its)
            # Ten trials of a dozen attacks: the counts are enough.
            played[name].append(
                Trial(replace(poisoned, reports=None), earlier.poisoned, targets, others)
            )
    return played


METHODS: dict[str, Method] = {
    "poisoned": lambda t: t.round.poisoned.frequencies,
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
    "half of them": told("paper", targets=lambda t: t.targets[: len(t.targets) // 2]),
    "all targets, and as many others": told("paper", targets=lambda t: t.targets + t.others),
    "others only, as many": told("paper", targets=lambda t: t.others),
    "what rose since an earlier round": told("paper", targets=lambda t: t.suspected),
    "all targets, and no model: they at zero, the rest projected": without_targets,
}
CRAFTED, SAMPLED = "MGA, crafted", "MGA, sampled"
BETAS = (0.01, 0.02, 0.03, 0.04, 0.05)


def tables(setting: RoundSetting) -> Iterator[str]:
    """Yield the tables in Markdown, and the sentences on them."""
    played = {protocol: play(setting, protocol) for protocol in PROTOCOLS}
    for protocol, attacked in played.items():
        rows = [
            [name, _sum(trials), *(_cell(trials, m) for m in METHODS.values())]
            for name, trials in attacked.items()
        ]
        yield Table([protocol.upper(), "sum", *METHODS], rows).markdown()
    yield _facts([trials for attacked in played.values() for trials in attacked.values()])

    etas = (0.01, setting.true_eta, DEFAULT_ETA, 0.4, 1.0)
    rows = [
        [f"{protocol.upper()}, {name}", kind, *(_cell(attacked[name], make(eta)) for eta in etas)]
        for protocol, attacked in played.items()
        for name in (SAMPLED, CRAFTED)
        if name in attacked
        for kind, make in KINDS.items()
    ]
    yield Table(["η", "", *(f"{eta:.2g}" for eta in etas)], rows).markdown()
    rows = [
        [name, *(_cell(played[p][CRAFTED], method) for p in PROTOCOLS)]
        for name, method in NAMED.items()
    ]
    yield Table(
        ["named as targets", *(f"{protocol.upper()}, {CRAFTED}" for protocol in PROTOCOLS)], rows
    ).markdown()
    targeted = filter(_is_targeted, played["oue"])
    rows = [[name, *(_found(played[p].get(name, [])) for p in PROTOCOLS)] for name in targeted]
    yield Table(["rose since an earlier round", *map(str.upper, PROTOCOLS)], rows).markdown()
    one_hot = [play(replace(setting, beta=beta), "oue", only=SAMPLED)[SAMPLED] for beta in BETAS]
    rows = [
        [name, *(_cell(trials, method) for trials in one_hot)] for name, method in METHODS.items()
    ]
    yield Table([f"OUE, {SAMPLED}", *(f"β = {beta:g}" for beta in BETAS)], rows).markdown()


def _is_targeted(attack: str) -> bool:
    return attack == "none" or attack.startswith("MGA")


def _sum(trials: Sequence[Trial]) -> str:
    return f"{np.mean([t.round.poisoned.sum for t in trials]):.2f}"


def _mse(trials: Sequence[Trial], method: Method) -> Vector:
    return np.array([mse(method(t), t.round.truth) for t in trials])


def _cell(trials: Sequence[Trial], method: Method) -> str:
    error = f"{_mse(trials, method).mean():.2e}".replace("e-0", "e-")
    if not trials[0].targeted:
        return error
    gain = np.mean([frequency_gain(method(t), t.round.f_genuine, t.targets) for t in trials])
    return f"{error} ({round(gain, 2) + 0.0:+.2f})"


def _facts(attacked: Sequence[Sequence[Trial]]) -> str:
    errors = [_mse(trials, method) for trials in attacked for method in METHODS.values()]
    spread = [e.std() / np.sqrt(max(e.size - 1, 1)) / e.mean() for e in errors]
    projected, untold, told = (
        METHODS[name] for name in ("projected only", "LDPRecover", "LDPRecover*, paper")
    )
    better = sum(int((_mse(trials, untold) < _mse(trials, projected)).sum()) for trials in attacked)
    zeroed = sum(not told(t)[list(t.told)].any() for trials in attacked for t in trials)
    number = sum(map(len, attacked))
    return (
        f"LDPRecover had a lower MSE than projection alone in {better} of these {number} trials. "
        "LDPRecover*, paper, "
        f"set every item it was told to zero in {zeroed} of {number}. The standard error of a mean "
        "MSE is "
        f"{np.median(spread):.0%} of it in the median, {max(spread):.0%} at most."
    )


def _found(trials: Sequence[Trial]) -> str:
    if not trials:
        return ""
    hits = np.mean([len(set(t.suspected) & set(t.targets)) for t in trials])
    return f"{hits:.1f} targets, {np.mean([len(t.suspected) for t in trials]) - hits:.1f} others"


def main() -> None:
    """Print the tables."""
    for table in tables(asked_for(__doc__, DEFAULT)):
        sys.stdout.write(f"{table}\n\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
