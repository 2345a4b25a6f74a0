"""One poisoned round as its simulator sees it: both tallies apart, and the truth.

Its counts are drawn where their law is known; reports are really made where they are crafted, where
a method reads them, and where they travel.
"""

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
    recover,
)
from ldprecover.estimation.simulation import input_poisoning_tally, one_hot_tally, sampled_tally
from ldprecover.protocols import crafter_of
from ldprecover_attacker import Attack
from ldprecover_client import Population
from ldprecover_experiments.attacks import parse
from ldprecover_experiments.parameters import TARGETS, Cell, GenuineUsers, malicious_users

Vector = NDArray[np.float64]
Targets = tuple[int, ...]

HASH_ONLY = "olh-hash-only"
"""OLH without its randomised response: what the paper's Table I has for OLH."""


def variants(protocol: str) -> tuple[str, ...]:
    """Return the names under which cells may have a protocol: its own, and those of what the paper
    made of it.
    """
    return tuple(name for name in (protocol, HASH_ONLY) if name.partition("-")[0] == protocol)


class _HashOnly(OLH):
    """OLH whose users skip the randomised response: no privacy, and only hash collisions for
    noise.
    """

    @property
    def p(self) -> float:
        return 1.0


@dataclass(frozen=True, eq=False)
class PoisonedRound:
    """A round of n genuine and m malicious users.

    `truth` are the frequencies f_X of the genuine users; `targets` the items that the attack
    raises, None for one without any; `reports` all reports, packed, the genuine ones first, where
    they were made and kept; `earlier` the tally of a clean round before this one, where one was
    drawn.
    """

    oracle: FrequencyOracle
    truth: Vector
    genuine: Tally
    malicious: Tally
    targets: Targets | None = None
    reports: NDArray[Any] | None = None
    earlier: Tally | None = None

    @classmethod
    def clean(cls, oracle: FrequencyOracle, users: Population, canaries: Targets = ()) -> Self:
        """Return the round in which these users report, and nobody else; none of them holds a
        canary.
        """
        reports = users.reports(oracle, canaries)
        nobody = Tally.empty(oracle.summary_size)
        truth = np.zeros(oracle.domain_size)
        truth[np.delete(np.arange(truth.size), list(canaries))] = users.frequencies
        return cls(oracle, truth, Tally.of(oracle, reports), nobody, reports=reports)

    def under(
        self,
        attack: Attack | None,
        m: int,
        rng: np.random.Generator,
        targets: Targets | None = None,
    ) -> Self:
        """Return this clean round with m reports of an attack added. Raises ParameterError where it
        cannot be made.
        """
        if attack is None:
            return replace(self, targets=targets)
        assert self.reports is not None
        assert self.malicious.n == 0
        made = attack.reports(self.oracle, m, rng)
        everything = np.concatenate([self.reports, made])
        return replace(
            self, malicious=Tally.of(self.oracle, made), targets=targets, reports=everything
        )

    def recover(self, request: RecoveryRequest, *, with_reports: bool = True) -> Recovery:
        """Return the recovery of this round. Raises ParameterError for a request that does not fit.

        `with_reports` False withholds the reports from the method.
        """
        reports = self.reports if with_reports else None
        frequencies = self.poisoned.frequencies
        return recover(self.oracle, frequencies, request, n=self.together.n, reports=reports)

    @cached_property
    def together(self) -> Tally:
        """The tally of all reports: what the server has."""
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
        """The estimate f~_Y from the malicious reports alone; None where nobody is malicious."""
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

        Where nobody is malicious, that of reports of one item each, or of as many as every report
        has.
        """
        if self.malicious.n:
            return self.malicious.counts(self.oracle) / self.malicious.n
        return np.full(
            self.oracle.domain_size, (self.oracle.fixed_size or 1) / self.oracle.domain_size
        )


class RoundSimulation:
    """What a cell's users are about to do: its secrets are drawn, nobody has reported yet.

    Raises ParameterError for an attack, a model or a protocol that do not go together.
    """

    def __init__(self, cell: Cell, genuine_users: GenuineUsers, seed: int) -> None:
        d = len(genuine_users.items)
        self.cell, self.genuine_users = cell, genuine_users
        self.m = malicious_users(genuine_users.n, cell.beta)
        self.oracle = _oracle(cell.protocol, cell.epsilon, d)
        streams = map(np.random.default_rng, cell.seed(genuine_users, seed).spawn(4))
        secrets, self.genuine_rng, self.malicious_rng, self.earlier_rng = streams
        spec = None if cell.attack in ("none", "honest") else parse(cell.attack)
        chosen = _targets(TARGETS if spec is None else spec.targets, genuine_users.items, secrets)
        self.targets = chosen if spec is not None and spec.targeted else None
        self.attack = (
            None
            if spec is None
            else spec.make(cell.model, self.targets).resolve(genuine_users.items)
        )
        # A report that the attack itself makes draws its secrets again; no law needs them.
        lawful = None if cell.model == "crafted" else self.attack
        self.weights = (
            genuine_users.frequencies if lawful is None else lawful.distribution(d, secrets)
        )

    def malicious_tally(self) -> Tally:
        """Return the tally of the malicious users. Only crafted reports are really made."""
        rng, model = self.malicious_rng, self.cell.model
        if not self.m:
            return Tally.empty(self.oracle.summary_size)
        if model == "crafted":
            return Tally.of(self.oracle, self.malicious_reports())
        if model == "input":
            return input_poisoning_tally(self.oracle, self.weights, self.m, rng)
        if model == "sampled":
            return sampled_tally(self.oracle, self.weights, self.m, rng)
        return one_hot_tally(self.oracle, self.weights, self.m, rng)

    def earlier_tally(self, drift: float) -> Tally:
        """Return the tally of a clean round before this one, of as many users."""
        then = self.genuine_users.frequencies * np.exp(
            drift * self.earlier_rng.standard_normal(self.genuine_users.counts.size)
        )
        counts = self.earlier_rng.multinomial(self.genuine_users.n, then / then.sum())
        return self.oracle.honest_tally(counts, self.earlier_rng)

    def genuine_reports(self) -> NDArray[Any]:
        """Return the packed reports of the genuine users."""
        counts = self.genuine_users.counts
        return self.oracle.perturb(np.repeat(np.arange(counts.size), counts), self.genuine_rng)

    def malicious_reports(self, m: int | None = None) -> NDArray[Any]:
        """Return the packed reports of the m malicious users. Raises ParameterError where the model
        has none.
        """
        rng, model = self.malicious_rng, self.cell.model
        m = self.m if m is None else m
        if model == "one-hot" and crafter_of(self.oracle).encoded_others:
            name = self.oracle.protocol.upper()
            raise ParameterError(
                f"no {name} report supports exactly one item: such malicious users are counts alone"
            )
        if self.attack is not None and model == "crafted":
            return self.attack.reports(self.oracle, m, rng)
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
    drift: float | None = None,
) -> PoisonedRound:
    """Simulate one cell; with `reports`, and where the cell draws random subsets of them, every
    report is made.

    With `drift` there is an earlier round of as many users, none of them malicious, whose
    frequencies were these times exp(drift normal), item by item, and a factor. What else is drawn
    does not depend on it.
    """
    simulation = RoundSimulation(cell, genuine_users, seed)
    kept = None
    if reports or cell.xi:
        made = simulation.genuine_reports(), simulation.malicious_reports()
        genuine, malicious = (Tally.of(simulation.oracle, each) for each in made)
        kept = np.concatenate(made)
    else:
        genuine, malicious = (
            simulation.oracle.honest_tally(genuine_users.counts, simulation.genuine_rng),
            simulation.malicious_tally(),
        )
    earlier = None if drift is None else simulation.earlier_tally(drift)
    return PoisonedRound(
        simulation.oracle,
        genuine_users.frequencies,
        genuine,
        malicious,
        simulation.targets,
        kept,
        earlier,
    )


def _oracle(protocol: str, epsilon: float, d: int) -> FrequencyOracle:
    if protocol != HASH_ONLY:
        return frequency_oracle(protocol, epsilon, d)
    return _HashOnly(epsilon, d, _HashOnly.default_parameter(epsilon, d))


def _targets(
    wanted: int | tuple[str, ...], items: tuple[str, ...], rng: np.random.Generator
) -> Targets:
    if isinstance(wanted, int):
        return tuple(sorted(rng.choice(len(items), size=wanted, replace=False).tolist()))
    unknown = [label for label in wanted if label not in items]
    if unknown:
        raise ParameterError(f"targets: no item is labelled {unknown[0]!r}")
    return tuple(sorted(map(items.index, wanted)))
