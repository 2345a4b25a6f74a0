"""Simulated genuine users: their true values and their honest reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldprecover import FrequencyOracle, ParameterError
from ldprecover._checks import check_whole, finite_vector
from ldprecover.items import label_key
from ldprecover.protocols import MAX_USERS
from ldprecover_client.answers import Round
from ldprecover_client.bulk import BATCH_SIZE, BulkReceipt, simulate_users
from ldprecover_client.datasets import Dataset
from ldprecover_client.errors import ArgumentError
from ldprecover_client.http import Client
from ldprecover_client.progress import Progress

# Streams of the seed. Values have their own, so they are the same for every protocol. The stream 2
# is that of campaigns.
_VALUES, _REPORTS = 0, 1


@dataclass(frozen=True, eq=False)
class Population:
    """n genuine users whose values follow an item distribution, each with one honest report.

    `weights`, shape (d,), are counts or frequencies of at least two items: finite, 0 or more, not
    all zero. They are normalised. With `draw` "multinomial" each value is drawn independently; with
    "apportioned" the counts are proportional, by largest remainders, and the seed only shuffles
    them. `items` are the labels that a round must have for `report_to`, or None for any. The same
    seed gives the same users, values and reports. Raises ArgumentError.

        Population.of(load_dataset("cities"), n=10_000, seed=1).report_to(url, "cities", key=key)
    """

    weights: ArrayLike
    n: int
    _: KW_ONLY
    seed: int
    draw: Literal["multinomial", "apportioned"] = "multinomial"
    items: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        try:
            weights = finite_vector(self.weights, "weights")
            n = check_whole("n, the number of users,", self.n, 1, MAX_USERS)
            seed = check_whole("seed", self.seed, 0)
        except ParameterError as error:
            raise ArgumentError(str(error)) from None
        if weights.size < 2:
            raise ArgumentError("weights must be a one-dimensional array over at least two items")
        if (weights < 0).any() or not 0 < weights.sum() < np.inf:
            raise ArgumentError("weights must be finite, none negative and not all zero")
        if self.draw not in ("multinomial", "apportioned"):
            raise ArgumentError('draw must be "multinomial" or "apportioned"')
        if self.items is not None and len(self.items) != weights.size:
            raise ArgumentError(
                f"there must be as many items as weights, {weights.size}, not {len(self.items)}"
            )
        weights /= weights.sum()
        weights.flags.writeable = False
        vars(self).update(weights=weights, n=n, seed=seed)  # it is frozen

    def __repr__(self) -> str:
        return f"Population({self.n:,} users, {self.domain_size:,} items, seed {self.seed})"

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        n: int,
        seed: int,
        draw: Literal["multinomial", "apportioned"] = "multinomial",
    ) -> Self:
        """Return n users whose values follow a data set."""
        return cls(dataset.counts, n, seed=seed, draw=draw, items=dataset.items)

    @property
    def domain_size(self) -> int:
        """Number of items, d."""
        return len(self._distribution)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many users truly hold each item, of shape (d,)."""
        if self.draw == "multinomial":
            counts = self._rng(_VALUES).multinomial(self.n, self._distribution)
        else:
            counts = _apportion(self._distribution, self.n)
        counts.flags.writeable = False
        return counts

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """True frequencies f_X of these users, of shape (d,)."""
        return self.counts / self.n

    def values(self) -> NDArray[np.int64]:
        """Return each user's item index, of shape (n,), in random order."""
        rng = self._rng(_VALUES)
        if self.draw == "multinomial":
            rng.multinomial(self.n, self._distribution)  # advance past the draw of `counts`
        return rng.permutation(np.repeat(range(self.domain_size), self.counts))

    def reports(self, oracle: FrequencyOracle) -> NDArray[Any]:
        """Return each user's report under an oracle, perturbed with the seeded generator.

        Only a simulation may use a seeded generator; real users use `Reporter`. Raises
        ArgumentError if the oracle has another number of items, and ParameterError for more users
        than fit in memory.
        """
        if oracle.domain_size != self.domain_size:
            raise ArgumentError(
                f"these users hold {self.domain_size} items, the round has {oracle.domain_size}"
            )
        oracle.wire.check_users(self.n)
        return oracle.perturb(self.values(), self._rng(_REPORTS))

    def report_to(
        self,
        server: str | Client,
        round: str | Round = "current",
        *,
        key: str | None = None,
        tickets: Sequence[str] | None = None,
        batch_size: int = BATCH_SIZE,
        connections: int = 4,
        progress: Progress | Literal["bar"] | None = "bar",
        secret: bytes | None = None,
    ) -> BulkReceipt:
        """Send every user's report to a round; return how many were accepted.

        `round` is an id, a name, "current", or a round that was fetched before. `progress` "bar"
        shows a bar on standard error, if that is a terminal; `submit_reports` describes the other
        arguments. Raises ArgumentError if the round has other items, and the errors of
        `submit_reports`.
        """
        return simulate_users(
            server,
            round,
            self._reports_to,
            key=key,
            tickets=tickets,
            batch_size=batch_size,
            connections=connections,
            progress=progress,
            secret=secret,
            doing=("genuine users report", "genuine users perturb their values"),
        )[1]

    def _reports_to(self, round: Round) -> NDArray[Any]:
        items = round.parameters.items
        if self.items and [*map(label_key, self.items)] != [*map(label_key, items)]:
            raise ArgumentError("the round's items are not those of these users")
        return self.reports(round.parameters.oracle)

    @property
    def _distribution(self) -> NDArray[np.float64]:
        return np.asarray(self.weights, dtype=np.float64)

    def _rng(self, stream: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(stream,)))


def _apportion(frequencies: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Return n users apportioned by largest remainders; ties go to the lower index."""
    quotas = frequencies * n
    counts = np.floor(quotas).astype(np.int64)
    order = np.argsort(counts - quotas, kind="stable")
    counts[order[: n - counts.sum()]] += 1
    return counts
