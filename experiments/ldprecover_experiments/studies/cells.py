"""Cells, the units of a study: their parameters, their genuine users and their simulation.

Counts are drawn from their law if it is known. Reports are made one by one if they are crafted or
if a method reads them.
"""

from __future__ import annotations

import hashlib
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ldprecover import OLH, FrequencyOracle, ParameterError, Tally, frequency_oracle
from ldprecover.crafting import crafter_of
from ldprecover.crafting.tallies import input_poisoning_tally, one_hot_tally, sampled_tally
from ldprecover.items import find_items
from ldprecover.protocols import default_hash_range
from ldprecover.reports import tally_sampler
from ldprecover_client import Dataset, Population
from ldprecover_experiments.simulation.datasets import dataset_of
from ldprecover_experiments.simulation.parameters import (
    BETA,
    EPSILON,
    ETA,
    PAPER_USERS,
    TARGETS,
    malicious_users,
)
from ldprecover_experiments.simulation.poisoned_round import PoisonedRound, Targets, own_targets
from ldprecover_experiments.studies.specs import AttackSpec

HASH_ONLY = "olh-hash-only"
"""OLH without its randomised response: what the paper's Table I has for OLH."""


class _HashOnly(OLH):
    """OLH without its randomised response: no privacy, and no noise but hash collisions."""

    @property
    def p(self) -> float:
        return 1.0


class GenuineUsers(Dataset):
    """The genuine users of a data set: the number that hold each item, equal in all trials."""

    @property
    def n(self) -> int:
        """Number of genuine users."""
        return int(self.counts.sum())

    @cached_property
    def digest(self) -> str:
        """Eight hex digits of SHA-256 over the counts; distinguishes files of one name."""
        return hashlib.sha256(self.counts.astype("<i8").tobytes()).hexdigest()[:8]


def load_genuine_users(source: Any, users: int | None = None) -> GenuineUsers:
    """Return the genuine users of a data set.

    `source` is that of `dataset_of`. The default number of users is the paper's for a stand-in of
    its data, and that of the data otherwise. Another number keeps the proportions of the data.
    Raises DatasetError.
    """
    dataset = dataset_of(source)
    n = users or PAPER_USERS.get(dataset.name) or int(dataset.counts.sum())
    counts = Population.of(dataset, n, 0, "apportioned").counts
    return GenuineUsers(dataset.name, dataset.items, counts, dataset.source)


@dataclass(frozen=True)
class Cell:
    """One trial of one attack on one protocol and data set, and what recovery assumes of it.

    `xi` is the share of users in a subset, 0 where there are no subsets. The attacked round is one
    of `questions` in a form. Each genuine user answers a uniform one. With `assign` "ticket" so
    does each malicious user; with "client" all of them answer the attacked one.

        Cell("cities", "oue", AttackSpec(name="mga")).label
    """

    data: str
    protocol: str
    attack: AttackSpec
    beta: float = BETA
    epsilon: float = EPSILON
    _: KW_ONLY
    eta: float = ETA
    questions: int = 1
    assign: str = "ticket"
    xi: float = 0.0
    trial: int = 0

    @property
    def setting(self) -> Self:
        """The first trial of the cell; means are over the trials of a setting."""
        return replace(self, trial=0)

    @property
    def columns(self) -> dict[str, str | float]:
        """The fields as text and numbers."""
        return vars(self) | {"attack": str(self.attack), "model": self.attack.model}

    @property
    def title(self) -> str:
        """The columns in a line."""
        return ", ".join(f"{name} {value}" for name, value in self.columns.items())

    @property
    def label(self) -> str:
        """The text of the attack, with its report model unless that is the paper's.

        Attackers who choose their question have "client" after it.
        """
        client = ", client" if self.assign == "client" else ""
        if self.attack.label:
            return self.attack.label + client
        attack = str(self.attack).translate(str.maketrans("", "", '{}"'))  # such as: apa each: 4
        plain = self.attack.model == "one-hot" or not self.attack.malicious
        return (attack if plain else f"{attack} ({self.attack.model})") + client

    def seed(self, genuine_users: GenuineUsers, seed: int) -> np.random.SeedSequence:
        """Return the seed of the simulated round.

        It does not depend on eta and xi, so that all recoveries see the same poisoned counts, nor
        on the name of a function. Forms differ in who answers the question, not in the secrets.
        """
        simulated = (
            genuine_users.digest,
            self.protocol,
            self.attack.drawn,
            self.attack.model,
            self.beta,
            self.epsilon,
            self.trial,
            seed,
        )
        digest = hashlib.sha256(repr(simulated).encode()).digest()
        return np.random.SeedSequence(int.from_bytes(digest, "big"))


class RoundSimulation:
    """The simulation of a cell, with its secrets drawn and no report made.

    Raises ParameterError for an attack, a model and a protocol that do not fit together.
    """

    def __init__(self, cell: Cell, genuine_users: GenuineUsers, seed: int) -> None:
        d = len(genuine_users.items)
        self.cell, self.genuine_users = cell, genuine_users
        self.oracle = oracle_of(cell.protocol, cell.epsilon, d)
        streams = map(np.random.default_rng, cell.seed(genuine_users, seed).spawn(5))
        secrets, self.genuine_rng, self.malicious_rng, self.earlier_rng, assigner = streams
        self.counts = assigner.binomial(genuine_users.counts, 1 / cell.questions)
        self.m = malicious_users(genuine_users.n, cell.beta)
        if cell.assign == "ticket":
            self.m = int(assigner.binomial(self.m, 1 / cell.questions))
        spec = cell.attack
        # Where nobody attacks, methods that know targets know some too.
        r = min(TARGETS, d // 2) if spec.name == "none" else spec.targets or TARGETS
        chosen = _targets(r, genuine_users.items, secrets)
        if spec.targeted and len(chosen) == d:
            raise ParameterError(
                f"{genuine_users.name} has {d} items, and attacks need fewer targets ({TARGETS} by "
                "default)"
            )
        self.targets = chosen if spec.targeted or spec.name == "none" else None
        self.attack = (
            spec.make(self.targets).resolve(genuine_users.items) if spec.malicious else None
        )
        if self.targets is None and self.attack is not None:
            self.targets = own_targets(self.attack, d)
        # Crafted reports draw the attack's secrets again; only laws of counts need the weights.
        item_attack = None if spec.model == "crafted" else self.attack
        self.weights = (
            genuine_users.frequencies
            if item_attack is None
            else item_attack.distribution(d, secrets)
        )

    def malicious_tally(self) -> Tally:
        """Return the tally of the malicious users. Only crafted reports are made one by one."""
        if not self.m:
            return Tally.empty(self.oracle.summary_size)
        if self.cell.attack.model == "crafted":
            return Tally.of(self.oracle, self.malicious_reports())
        laws = {"input": input_poisoning_tally, "sampled": sampled_tally}
        law = laws.get(self.cell.attack.model, one_hot_tally)
        return law(self.oracle, self.weights, self.m, self.malicious_rng)

    def genuine_reports(self) -> NDArray[Any]:
        """Return the packed reports of the genuine users."""
        counts = self.counts
        self.oracle.wire.check_users(int(counts.sum()))
        return self.oracle.perturb(np.repeat(np.arange(counts.size), counts), self.genuine_rng)

    def malicious_reports(self, m: int | None = None) -> NDArray[Any]:
        """Return m malicious packed reports. Raises ParameterError for a model without reports."""
        rng, model = self.malicious_rng, self.cell.attack.model
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
    oracle, truth = simulation.oracle, genuine_users.frequencies
    packed = previous = None
    if reports or cell.xi:
        both = simulation.genuine_reports(), simulation.malicious_reports()
        genuine, malicious = (Tally.of(oracle, each) for each in both)
        packed = np.concatenate(both)
    else:
        genuine = tally_sampler(oracle).honest_tally(simulation.counts, simulation.genuine_rng)
        malicious = simulation.malicious_tally()
    if earlier:  # as many users from the same law
        rng = simulation.earlier_rng
        counts = rng.multinomial(simulation.counts.sum(), truth)
        previous = tally_sampler(oracle).honest_tally(counts, rng)
    return PoisonedRound(
        oracle,
        truth,
        genuine,
        malicious,
        targets=simulation.targets,
        reports=packed,
        earlier=previous,
        attack=simulation.attack,
    )


def oracle_of(protocol: str, epsilon: float, d: int) -> FrequencyOracle:
    """Return the oracle of a protocol, or of HASH_ONLY. Raises ParameterError."""
    if protocol != HASH_ONLY:
        return frequency_oracle(protocol, epsilon, d)
    return _HashOnly(epsilon, d, default_hash_range(epsilon))


def _targets(
    targets: int | tuple[str, ...], items: tuple[str, ...], rng: np.random.Generator
) -> Targets:
    if isinstance(targets, int):
        r = min(targets, len(items))  # fewer items only where no attack has targets
        return tuple(sorted(rng.choice(len(items), size=r, replace=False).tolist()))
    return tuple(sorted(find_items(targets, items)))
