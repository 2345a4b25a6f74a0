"""One cell of the evaluation: what is simulated once, and the seed that follows from it."""

import hashlib
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from ldprecover_cli.attackers import malicious_users
from ldprecover_cli.failures import UsageError
from ldprecover_client import Population, load_dataset

__all__ = ["BETA", "EPSILON", "ETA", "PAPER_USERS", "TARGETS", "Cell", "Crowd", "load_crowd"]

BETA, EPSILON, ETA, TARGETS = 0.05, 0.5, 0.2, 10
"""The paper's setting (VI-A): malicious share, privacy budget, assumed m/n, number r of targets."""

PAPER_USERS = {"cities": 389_894, "fire": 667_574}
"""Genuine users of the paper's data sets, which the shipped ones stand in for."""


@dataclass(frozen=True)
class Crowd:
    """The genuine users of one data set: how many hold each item, the same in every trial."""

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

    @property
    def digest(self) -> str:
        """Eight hex digits of SHA-256 over the counts: tells files of one name apart."""
        return hashlib.sha256(self.counts.astype("<i8").tobytes()).hexdigest()[:8]


def load_crowd(name_or_path: str, column: str | None = None, users: int | None = None) -> Crowd:
    """Return the users of a data set: the paper's number for a stand-in, otherwise as many as the data have.

    Another number deals the users out in the data's proportions. Raises DatasetError, and UsageError for
    a data set with too few items for the paper's ten targets.
    """
    dataset = load_dataset(name_or_path, column)
    n = users or PAPER_USERS.get(dataset.name) or int(dataset.counts.sum())
    if len(dataset.items) <= TARGETS:
        raise UsageError(f"{dataset.name} has {len(dataset.items)} items; the experiments need more than {TARGETS}")
    return Crowd(dataset.name, dataset.items, Population.of(dataset, n, 0, "apportioned").counts)


@dataclass(frozen=True)
class Cell:
    """One trial of one attack on one protocol and data set, and what recovery assumes of it.

    `model` is how a malicious report is made: "one-hot" supports exactly its item (the paper's),
    "sampled" is an unperturbed OLH report with a random seed, "crafted" is of Cao et al., "input" is
    perturbed honestly. `xi` is the share of users in a subset, 0 where there are no subsets.
    """

    data: str
    protocol: str
    attack: str
    model: str
    beta: float = BETA
    epsilon: float = EPSILON
    eta: float = ETA
    xi: float = 0.0
    trial: int = 0

    @property
    def group(self) -> tuple[str | float, ...]:
        """The cell without its trial: what trials are averaged over."""
        return astuple(self)[:-1]

    def malicious_users(self, n: int) -> int:
        """m, such that m/(n + m) is beta."""
        return malicious_users(n, self.beta)

    def seed(self, crowd: Crowd, seed: int) -> np.random.SeedSequence:
        """Return the seed of what is simulated.

        It leaves eta and xi out: what recovery assumes is compared on the same poisoned counts.
        """
        simulated = (crowd.digest, self.protocol, self.attack, self.model, self.beta, self.epsilon, self.trial, seed)
        digest = hashlib.sha256(repr(simulated).encode()).digest()
        return np.random.SeedSequence(int.from_bytes(digest, "big"))
