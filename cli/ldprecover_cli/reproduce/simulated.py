"""One poisoned round, drawn in this process: counts where their law is known, real reports where they are crafted."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldprecover import OLH, FrequencyOracle, Tally, frequency_oracle
from ldprecover.simulation import input_poisoning_tally, one_hot_tally, sampled_tally
from ldprecover_attacker import Attack, InputPoisoning, ItemAttack, Several, make_attack
from ldprecover_cli.reproduce.cells import TARGETS, Cell, Crowd
from ldprecover_cli.reproduce.experiments import HASH_ONLY

__all__ = ["Plan", "Round", "draw_round"]

Vector = NDArray[np.float64]


class _HashOnly(OLH):
    """OLH whose users skip the randomised response: no privacy, and only hash collisions for noise."""

    @property
    def p(self) -> float:
        return 1.0


@dataclass(frozen=True, eq=False)
class Round:
    """A poisoned round as the simulator sees it: both tallies apart, and the truth f_X.

    `targets` are the items that MGA raises, None for an attack without any; `reports` all reports, packed,
    where the cell draws random subsets of them.
    """

    oracle: FrequencyOracle
    truth: Vector
    genuine: Tally
    malicious: Tally
    targets: tuple[int, ...] | None
    reports: NDArray[Any] | None = None


class Plan:
    """What a cell's users are about to do: its secrets are drawn, nobody has reported yet."""

    def __init__(self, cell: Cell, crowd: Crowd, seed: int) -> None:
        d = len(crowd.items)
        self.cell, self.crowd = cell, crowd
        self.m = cell.malicious_users(crowd.n)
        self.oracle = _oracle(cell.protocol, cell.epsilon, d)
        secrets, self.genuine_rng, self.malicious_rng = map(np.random.default_rng, cell.seed(crowd, seed).spawn(3))
        chosen = tuple(sorted(secrets.choice(d, size=TARGETS, replace=False).tolist()))
        self.targets = chosen if cell.attack == "mga" else None
        self.attack = _attack(cell, self.targets)
        self.weights = crowd.frequencies if self.attack is None else _distribution(self.attack, d, secrets)

    def malicious_tally(self) -> Tally:
        """Return the tally of the malicious users. Only crafted reports are really made."""
        rng, model = self.malicious_rng, self.cell.model
        if not self.m:
            return Tally.empty(self.oracle.summary_size)
        if model == "crafted":
            assert self.attack is not None
            return Tally.of(self.oracle, self.attack.reports(self.oracle, self.m, rng))
        if model == "input":
            return input_poisoning_tally(self.oracle, self.weights, self.m, rng)
        if model == "sampled":
            return sampled_tally(self.oracle, self.weights, self.m, rng)
        return one_hot_tally(self.oracle, self.weights, self.m, rng)

    def genuine_reports(self) -> NDArray[Any]:
        """Return the packed reports of the genuine users."""
        counts = self.crowd.counts
        return self.oracle.perturb(np.repeat(np.arange(counts.size), counts), self.genuine_rng)

    def malicious_reports(self) -> NDArray[Any]:
        """Return the packed reports of the malicious users, where the model has any."""
        rng = self.malicious_rng
        if self.attack is not None and self.cell.model == "crafted":
            return self.attack.reports(self.oracle, self.m, rng)
        items = rng.choice(self.weights.size, size=self.m, p=self.weights)
        return self.oracle.perturb(items, rng) if self.cell.model == "input" else self.oracle.encode(items, rng)


def draw_round(cell: Cell, crowd: Crowd, seed: int) -> Round:
    """Simulate one cell."""
    plan = Plan(cell, crowd, seed)
    if cell.xi:
        genuine_reports, malicious_reports = plan.genuine_reports(), plan.malicious_reports()
        return Round(
            plan.oracle,
            crowd.frequencies,
            Tally.of(plan.oracle, genuine_reports),
            Tally.of(plan.oracle, malicious_reports),
            plan.targets,
            np.concatenate([genuine_reports, malicious_reports]),
        )
    genuine = plan.oracle.honest_tally(crowd.counts, plan.genuine_rng)
    return Round(plan.oracle, crowd.frequencies, genuine, plan.malicious_tally(), plan.targets)


def _oracle(protocol: str, epsilon: float, d: int) -> FrequencyOracle:
    if protocol != HASH_ONLY:
        return frequency_oracle(protocol, epsilon, d)
    olh = frequency_oracle("olh", epsilon, d)
    assert isinstance(olh, OLH)
    return _HashOnly(olh.epsilon, d, olh.hash_range)


def _attack(cell: Cell, targets: tuple[int, ...] | None) -> Attack | None:
    """Return the attack of a cell; None where all users are honest."""
    if cell.attack in ("none", "honest"):
        return None
    name, _, rest = cell.attack.partition("-")
    kind, _, several = rest.partition("-x")
    options: dict[str, Any] = {"attackers": int(several or 1), "input_poisoning": cell.model == "input"}
    if cell.model != "input":
        options["model"] = "crafted" if cell.model == "crafted" else "sampled"
    return make_attack(name, kind=kind or None, targets=targets, **options)


def _distribution(attack: Attack, d: int, rng: np.random.Generator) -> Vector:
    """Return P over the items; of several attackers, among whom users are assigned evenly, the mean of theirs."""
    if isinstance(attack, Several):
        mean: Vector = np.mean([_distribution(one, d, rng) for one in attack.attacks], axis=0)
        return mean
    one = attack.attack if isinstance(attack, InputPoisoning) else attack
    assert isinstance(one, ItemAttack)
    return one.distribution(d, rng)
