"""A simulated poisoned round: the tallies of genuine and malicious users, and the truth.

Counts are drawn from their law if it is known. Reports are made one by one if they are crafted, if
a method reads them, or if they are sent to a server.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ldprecover import (
    OLH,
    Estimates,
    FrequencyOracle,
    ParameterError,
    Recovery,
    RecoveryRequest,
    Tally,
    frequency_oracle,
)
from ldprecover.estimation.simulation import input_poisoning_tally, one_hot_tally, sampled_tally
from ldprecover.protocols import crafter_of, default_hash_range
from ldprecover.recovery import RecoveryInputs, ReportSource, run_method
from ldprecover_attacker import Attack
from ldprecover_client import Population
from ldprecover_experiments.studies.attacks import TARGETS
from ldprecover_experiments.studies.parameters import Cell, GenuineUsers, malicious_users

Vector = NDArray[np.float64]
Targets = tuple[int, ...]

HASH_ONLY = "olh-hash-only"
"""OLH without its randomised response: what the paper's Table I has for OLH."""


class _HashOnly(OLH):
    """OLH without its randomised response: no privacy, and no noise but hash collisions."""

    @property
    def p(self) -> float:
        return 1.0


@dataclass(frozen=True, eq=False)
class PoisonedRound:
    """A round of n genuine and m malicious users.

    `truth` holds the frequencies f_X of the genuine users. `targets` are the items that the attack
    raises, None for an attack without targets. `reports` holds all packed reports, the genuine ones
    first; None if only counts were drawn. `earlier` is the tally of an earlier clean round, if any,
    and `attack` the attack.

        clean = PoisonedRound.clean(oracle, Population.of(load_dataset("cities"), 5000, seed=1))
        poisoned = clean.under(MGA([3, 40]), m=250, rng=np.random.default_rng(0), targets=(3, 40))
        poisoned.recover(RecoveryRequest("norm-sub")).recovered
    """

    oracle: FrequencyOracle
    truth: Vector
    genuine: Tally
    malicious: Tally
    targets: Targets | None = None
    reports: NDArray[Any] | None = None
    earlier: Tally | None = None
    attack: Attack | None = None

    def __repr__(self) -> str:
        return (
            f"PoisonedRound({self.oracle.protocol}, epsilon {self.oracle.epsilon:g}, "
            f"{self.genuine.n:,} users, {self.malicious.n:,} malicious, "
            f"{self.oracle.domain_size:,} items)"
        )

    @classmethod
    def clean(cls, oracle: FrequencyOracle, users: Population) -> Self:
        """Return the round of these users alone."""
        reports = users.reports(oracle)
        nobody = Tally.empty(oracle.summary_size)
        return cls(oracle, users.frequencies, Tally.of(oracle, reports), nobody, reports=reports)

    def under(
        self,
        attack: Attack | None,
        m: int,
        rng: np.random.Generator,
        targets: Targets | None = None,
    ) -> Self:
        """Return this clean round with m reports of an attack.

        Raises ParameterError for an attack that the protocol has no reports for.
        """
        if attack is None:
            return replace(self, targets=targets)
        assert self.reports is not None
        assert self.malicious.n == 0
        malicious = attack.reports(self.oracle, m, rng)
        everything = np.concatenate([self.reports, malicious])
        return replace(
            self,
            malicious=Tally.of(self.oracle, malicious),
            targets=targets,
            reports=everything,
            attack=attack,
        )

    def recover(self, request: RecoveryRequest, *, with_reports: bool = True) -> Recovery:
        """Return the recovery of this round. Raises ParameterError for a request that does not fit.

        `with_reports` False withholds the reports from the method.
        """
        reports = self.reports if with_reports else None
        source = None if reports is None else ReportSource(self.oracle, reports)
        return run_method(
            RecoveryInputs(
                self.oracle,
                self.poisoned.frequencies,
                request,
                n=self.together.n,
                reports=source,
            )
        )

    @cached_property
    def together(self) -> Tally:
        """The tally of all reports, which the server has."""
        return self.genuine + self.malicious

    @cached_property
    def poisoned(self) -> Estimates:
        """The estimates f~_Z from all reports."""
        return Estimates.of(self.oracle, self.together)

    @cached_property
    def f_genuine(self) -> Vector:
        """The estimate f~_X~ from the genuine reports alone."""
        return self.oracle.estimate(self.genuine.counts(self.oracle), self.genuine.n)

    @cached_property
    def f_malicious(self) -> Vector | None:
        """The estimate f~_Y from the malicious reports alone; None without malicious users."""
        return (
            self.oracle.estimate(self.malicious.counts(self.oracle), self.malicious.n)
            if self.malicious.n
            else None
        )

    @property
    def eta(self) -> float:
        """m/n."""
        return self.malicious.n / self.genuine.n

    @property
    def support(self) -> Vector:
        """pi, the share of the malicious reports that support each item.

        Without malicious users it is uniform, with the fixed report size or else one item a report.
        """
        if self.malicious.n:
            return self.malicious.counts(self.oracle) / self.malicious.n
        return np.full(
            self.oracle.domain_size, (self.oracle.fixed_size or 1) / self.oracle.domain_size
        )


class RoundSimulation:
    """The simulation of a cell, with its secrets drawn and no report made.

    Raises ParameterError for an attack, a model and a protocol that do not fit together.
    """

    def __init__(self, cell: Cell, genuine_users: GenuineUsers, seed: int) -> None:
        d = len(genuine_users.items)
        self.cell, self.genuine_users = cell, genuine_users
        self.m = malicious_users(genuine_users.n, cell.beta)
        self.oracle = _oracle(cell.protocol, cell.epsilon, d)
        streams = map(np.random.default_rng, cell.seed(genuine_users, seed).spawn(4))
        secrets, self.genuine_rng, self.malicious_rng, self.earlier_rng = streams
        spec = cell.attack
        chosen = _targets(TARGETS if spec is None else spec.targets, genuine_users.items, secrets)
        self.targets = chosen if spec is not None and spec.targeted else None
        self.attack = (
            None
            if spec is None
            else spec.make(cell.model, self.targets).resolve(genuine_users.items)
        )
        # Crafted reports draw the attack's secrets again; only laws of counts need the weights.
        item_attack = None if cell.model == "crafted" else self.attack
        self.weights = (
            genuine_users.frequencies
            if item_attack is None
            else item_attack.distribution(d, secrets)
        )

    def malicious_tally(self) -> Tally:
        """Return the tally of the malicious users. Only crafted reports are made one by one."""
        if not self.m:
            return Tally.empty(self.oracle.summary_size)
        if self.cell.model == "crafted":
            return Tally.of(self.oracle, self.malicious_reports())
        laws = {"input": input_poisoning_tally, "sampled": sampled_tally}
        law = laws.get(self.cell.model, one_hot_tally)
        return law(self.oracle, self.weights, self.m, self.malicious_rng)

    def earlier_tally(self) -> Tally:
        """Return the tally of an earlier clean round of as many users from the same law."""
        counts = self.earlier_rng.multinomial(self.genuine_users.n, self.genuine_users.frequencies)
        return self.oracle.simulation.honest_tally(counts, self.earlier_rng)

    def genuine_reports(self) -> NDArray[Any]:
        """Return the packed reports of the genuine users."""
        counts = self.genuine_users.counts
        self.oracle.wire.check_users(self.genuine_users.n)
        return self.oracle.perturb(np.repeat(np.arange(counts.size), counts), self.genuine_rng)

    def malicious_reports(self, m: int | None = None) -> NDArray[Any]:
        """Return m malicious packed reports. Raises ParameterError for a model without reports."""
        rng, model = self.malicious_rng, self.cell.model
        m = self.m if m is None else m
        if model == "one-hot" and crafter_of(self.oracle).encoded_others != 0:
            name = self.oracle.protocol.upper()
            raise ParameterError(
                f"no {name} report supports exactly one item: such malicious users are counts alone"
            )
        if self.attack is not None and model == "crafted":
            return self.attack.reports(self.oracle, m, rng)
        self.oracle.wire.check_users(m)
        items = rng.choice(self.weights.size, size=m, p=self.weights)
        return (
            self.oracle.perturb(items, rng) if model == "input" else self.oracle.encode(items, rng)
        )


def simulate_round(
    cell: Cell,
    genuine_users: GenuineUsers,
    seed: int,
    *,
    reports: bool = False,
    earlier: bool = False,
) -> PoisonedRound:
    """Return a simulated round of a cell.

    With `reports`, or if the cell draws random subsets of the users, every report is made. With
    `earlier` there is an earlier clean round, which changes no other random draw.
    """
    simulation = RoundSimulation(cell, genuine_users, seed)
    packed = None
    if reports or cell.xi:
        both = simulation.genuine_reports(), simulation.malicious_reports()
        genuine, malicious = (Tally.of(simulation.oracle, each) for each in both)
        packed = np.concatenate(both)
    else:
        genuine, malicious = (
            simulation.oracle.simulation.honest_tally(genuine_users.counts, simulation.genuine_rng),
            simulation.malicious_tally(),
        )
    return PoisonedRound(
        simulation.oracle,
        genuine_users.frequencies,
        genuine,
        malicious,
        simulation.targets,
        packed,
        simulation.earlier_tally() if earlier else None,
        simulation.attack,
    )


def _oracle(protocol: str, epsilon: float, d: int) -> FrequencyOracle:
    if protocol != HASH_ONLY:
        return frequency_oracle(protocol, epsilon, d)
    return _HashOnly(epsilon, d, default_hash_range(epsilon))


def _targets(
    targets: int | tuple[str, ...], items: tuple[str, ...], rng: np.random.Generator
) -> Targets:
    if isinstance(targets, int):
        return tuple(sorted(rng.choice(len(items), size=targets, replace=False).tolist()))
    unknown = [label for label in targets if label not in items]
    if unknown:
        raise ParameterError(f"targets: no item is labelled {unknown[0]!r}")
    return tuple(sorted(map(items.index, targets)))
