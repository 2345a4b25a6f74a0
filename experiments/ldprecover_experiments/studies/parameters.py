"""Parameters of experiments: genuine users, cells, and the seeds derived from both."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ldprecover import ParameterError
from ldprecover_client import Population
from ldprecover_experiments.simulation.datasets import dataset_of
from ldprecover_experiments.studies.attacks import TARGETS, AttackSpec

BETA, EPSILON, ETA = 0.05, 0.5, 0.2
"""The paper's setting (VI-A): malicious share, privacy budget, assumed m/n."""

PAPER_USERS = {"cities": 389_894, "fire": 667_574}
"""Genuine users of the paper's data sets, which the shipped ones stand in for."""

_STREAM = 3
"""Stream of the seed; populations and campaigns of the same seed use the streams 0 to 2."""


def draw_targets(d: int, r: int, seed: int) -> tuple[int, ...]:
    """Return r of d items, drawn uniformly, sorted. Raises ParameterError unless 1 <= r < d."""
    if not 1 <= r < d:
        raise ParameterError(
            f"the number of targets must be from 1 to {d - 1}, as there are {d} items, not {r}"
        )
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM,)))
    return tuple(sorted(rng.choice(d, size=r, replace=False).tolist()))


def malicious_users(n: int, beta: float) -> int:
    """Return m = n beta/(1 - beta), rounded, so that beta = m/(n + m).

    Raises ParameterError unless 0 <= beta <= 0.9.
    """
    if not 0 <= beta <= 0.9:
        raise ParameterError(f"beta must be from 0 to 0.9, not {beta:g}")
    return round(n * beta / (1 - beta))


@dataclass(frozen=True)
class GenuineUsers:
    """The genuine users of a data set: the number that hold each item, equal in all trials."""

    name: str
    items: tuple[str, ...]
    counts: NDArray[np.int64]

    @property
    def n(self) -> int:
        """Number of genuine users."""
        return int(self.counts.sum())

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """True frequencies f_X of the d items."""
        return self.counts / self.n

    @cached_property
    def digest(self) -> str:
        """Eight hex digits of SHA-256 over the counts; distinguishes files of one name."""
        return hashlib.sha256(self.counts.astype("<i8").tobytes()).hexdigest()[:8]


def load_genuine_users(
    source: Any, column: str | None = None, users: int | None = None, *, targets: int = TARGETS
) -> GenuineUsers:
    """Return the genuine users of a data set.

    `source` and `column` are those of `dataset_of`. The default number of users is the paper's for
    a stand-in of its data, and that of the data otherwise. Another number keeps the proportions of
    the data. Raises DatasetError, and ParameterError for fewer items than targets.
    """
    dataset = dataset_of(source, column)
    n = users or PAPER_USERS.get(dataset.name) or int(dataset.counts.sum())
    if len(dataset.items) <= targets:
        raise ParameterError(
            f"{dataset.name} has {len(dataset.items)} items; the experiments need more than "
            f"{targets}"
        )
    return GenuineUsers(
        dataset.name, dataset.items, Population.of(dataset, n, 0, "apportioned").counts
    )


def load_users_by_data(
    sources: Iterable[Any],
    column: str | Sequence[str | None] | None = None,
    users: int | None = None,
    *,
    targets: int = TARGETS,
) -> dict[str, GenuineUsers]:
    """Return the genuine users of several data sets, by the name of the data set.

    `column` is that of all sources, or one for each of them. Raises as `load_genuine_users` does,
    and ParameterError for two data sets of one name.
    """
    users_by_data: dict[str, GenuineUsers] = {}
    columns = repeat(column) if column is None or isinstance(column, str) else column
    for source, own in zip(sources, columns, strict=False):
        loaded = load_genuine_users(source, own, users, targets=targets)
        if loaded.name in users_by_data:
            raise ParameterError(
                f"two data sets are called {loaded.name}: rename one, its name is in the results"
            )
        users_by_data[loaded.name] = loaded
    return users_by_data


@dataclass(frozen=True)
class Cell:
    """One trial of one attack on one protocol and data set, and what recovery assumes of it.

    `model` is how a malicious report is made: "one-hot" supports exactly its item (the paper's),
    "sampled" is its item encoded and not perturbed, "crafted" is the attack's own report, "input"
    is perturbed honestly. Without an attack the model is "none", or "input" for a share beta of
    further honest users. `xi` is the share of users in a subset, 0 where there are no subsets.

        Cell("cities", "oue", AttackSpec.of("mga"), "crafted").label
    """

    data: str
    protocol: str
    attack: AttackSpec | None
    model: str
    beta: float = BETA
    epsilon: float = EPSILON
    eta: float = ETA
    xi: float = 0.0
    trial: int = 0

    @property
    def setting(self) -> Self:
        """The first trial of the cell; means are over the trials of a setting."""
        return replace(self, trial=0)

    @property
    def attack_text(self) -> str:
        """The text of the attack, without one "none", or "honest" for further honest users."""
        return str(self.attack or ("honest" if self.model == "input" else "none"))

    @property
    def columns(self) -> dict[str, str | float]:
        """The fields as text and numbers."""
        return vars(self) | {"attack": self.attack_text}

    @property
    def label(self) -> str:
        """The name of the attack, with its report model unless that is the paper's."""
        attack = self.attack_text.translate(str.maketrans("", "", '{}"'))  # such as: apa each: 4
        plain = self.model == "one-hot" or self.attack is None
        return attack if plain else f"{attack} ({self.model})"

    def seed(self, genuine_users: GenuineUsers, seed: int) -> np.random.SeedSequence:
        """Return the seed of the simulated round.

        It does not depend on eta and xi, so that all recoveries see the same poisoned counts.
        """
        simulated = (
            genuine_users.digest,
            self.protocol,
            self.attack_text,
            self.model,
            self.beta,
            self.epsilon,
            self.trial,
            seed,
        )
        digest = hashlib.sha256(repr(simulated).encode()).digest()
        return np.random.SeedSequence(int.from_bytes(digest, "big"))
