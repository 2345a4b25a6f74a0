"""Simulated genuine users: their true values and their honest reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import compress
from types import EllipsisType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldprecover import FrequencyOracle, ParameterError
from ldprecover._checks import check_whole, finite_vector
from ldprecover.items import label_key
from ldprecover.protocols import MAX_USERS
from ldprecover.rounds.tickets import assigned_round
from ldprecover_client.answers import Form, Round
from ldprecover_client.bulk import BATCH_SIZE, BulkReceipt, check_tickets, client_of, simulate_users
from ldprecover_client.datasets import Dataset
from ldprecover_client.errors import ArgumentError
from ldprecover_client.http import Client
from ldprecover_client.progress import Progress

# Streams of the seed. Values have their own, so they are the same for every protocol. The stream 2
# is that of campaigns.
_VALUES, _REPORTS, _QUESTIONS = 0, 1, 3


@dataclass(frozen=True, eq=False)
class Population:
    """n genuine users whose values follow an item distribution, each with one honest report.

    `weights`, shape (d,), are counts or frequencies of at least two items: finite, 0 or more, not
    all zero. They are normalised. With `draw` "multinomial" each value is drawn independently; with
    "apportioned" the counts are proportional, by largest remainders, and the seed only shuffles
    them. `items` are the labels that a round must have for `report_to`, or None for any. The same
    seed gives the same users, values and reports. `users` selects those who report, by index
    or by a mask of shape (n,) (default: all). Raises ArgumentError.

        Population.of(load_dataset("cities"), n=10_000, seed=1).report_to(url, "cities", key=key)
    """

    weights: ArrayLike
    n: int
    _: KW_ONLY
    seed: int
    draw: Literal["multinomial", "apportioned"] = "multinomial"
    items: tuple[str, ...] | None = None
    users: NDArray[Any] | EllipsisType = ...

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
        return oracle.perturb(self.values()[self.users], self._rng(_REPORTS))

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


@dataclass(frozen=True, eq=False)
class FormPopulation:
    """n genuine users with a value for each question of a form, of which each answers one.

    `populations` has one of n users for each question, in the form's order: user i of each is the
    same person.

        systems, editors = Population([5, 3], 100, seed=1), Population([2, 9], 100, seed=2)
        FormPopulation([systems, editors]).report_to(url, "usage", key=key)
    """

    populations: Sequence[Population]

    def report_to(
        self,
        server: str | Client,
        form: str | Form,
        *,
        key: str | None = None,
        tickets: Sequence[str] | None = None,
        **options: Any,
    ) -> tuple[BulkReceipt, ...]:
        """Send every user's one report to a form; return how many each round accepted, in order.

        `form` is an id, a name, or a form that was fetched before. The user's ticket assigns the
        question. Without tickets it is drawn with the seed of the first population. The other
        arguments are those of `Population.report_to`. Raises ArgumentError, before anything
        is sent, if not every question has a population of the same n users, and as
        `Population.report_to` does.
        """
        k = len(self.populations)
        if len({users.n for users in self.populations}) != 1:
            raise ArgumentError("each question of a form needs a population of the same n")
        first = self.populations[0]
        questions = first._rng(_QUESTIONS).integers(k, size=first.n)
        if tickets is not None:
            check_tickets(tickets, first.n)
            questions[:] = [assigned_round(ticket, k) for ticket in tickets[: first.n]]
        with client_of(server, key) as client:
            rounds = (client.form(form) if isinstance(form, str) else form).rounds
            if len(rounds) != k:
                raise ArgumentError(f"the form has {len(rounds)} questions, not {k}")
            receipts = []
            for i, round in enumerate(rounds):
                users = questions == i
                own = None if tickets is None else [*compress(tickets, users)]
                chosen = replace(self.populations[i], users=users)
                receipts.append(chosen.report_to(client, round.id, tickets=own, **options))
        return tuple(receipts)


def _apportion(frequencies: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Return n users apportioned by largest remainders; ties go to the lower index."""
    quotas = frequencies * n
    counts = np.floor(quotas).astype(np.int64)
    order = np.argsort(counts - quotas, kind="stable")
    counts[order[: n - counts.sum()]] += 1
    return counts
