"""Simulated genuine users: their true values, which the simulator keeps, and their honest
reports.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldprecover import FrequencyOracle
from ldprecover_client.bulk import BATCH_SIZE, submit_reports
from ldprecover_client.datasets import Dataset
from ldprecover_client.errors import ArgumentError
from ldprecover_client.http import Client, Transport
from ldprecover_client.journal import Journal
from ldprecover_client.progress import Progress, progress_bar
from ldprecover_client.retry import Retries
from ldprecover_client.seeds import with_tickets

_VALUES, _REPORTS = 0, 1  # the seed's streams, so that the protocol does not change who holds what


@dataclass(frozen=True, eq=False)
class Population:
    """n genuine users whose values follow an item distribution, each with one honest report.

    `weights` are counts or frequencies of the d items, at least two, finite, none negative, not all
    zero; they are normalised. With `draw` "multinomial" each user's value is drawn independently;
    with "apportioned" the users are dealt out in proportion, by largest remainders, and the seed
    only shuffles them. `items`, when given, are the labels that a round must have for `report_to`.
    The same seed gives the same users, values and reports. Raises ArgumentError.
    """

    weights: ArrayLike
    n: int
    seed: int
    draw: Literal["multinomial", "apportioned"] = "multinomial"
    items: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=np.float64)
        if weights.ndim != 1 or weights.size < 2:
            raise ArgumentError("weights must be a one-dimensional array over at least two items")
        if not (np.isfinite(weights).all() and (weights >= 0).all() and 0 < weights.sum() < np.inf):
            raise ArgumentError("weights must be finite, none negative and not all zero")
        if isinstance(self.n, bool) or not isinstance(self.n, int) or self.n < 1:
            raise ArgumentError("n must be an integer of at least 1")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise ArgumentError("seed must be an integer of at least 0")
        if self.draw not in ("multinomial", "apportioned"):
            raise ArgumentError('draw must be "multinomial" or "apportioned"')
        if self.items is not None and len(self.items) != weights.size:
            raise ArgumentError(
                f"there must be as many items as weights, {weights.size}, not {len(self.items)}"
            )
        weights /= weights.sum()
        weights.flags.writeable = False
        object.__setattr__(self, "weights", weights)

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        n: int,
        seed: int,
        draw: Literal["multinomial", "apportioned"] = "multinomial",
    ) -> Self:
        """Return n users whose values follow a data set."""
        return cls(dataset.counts, n, seed, draw, dataset.items)

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
        """True frequencies f_X of these users, of shape (d,): what estimates and recoveries are
        measured against.
        """
        return self.counts / self.n

    def values(self) -> NDArray[np.int64]:
        """Return each user's item index, of shape (n,), in random order: any part of it is a
        sample.
        """
        rng = self._rng(_VALUES)
        if self.draw == "multinomial":
            rng.multinomial(self.n, self._distribution)  # the draw that gave `counts`
        return rng.permutation(np.repeat(np.arange(self.domain_size), self.counts))

    def reports(self, oracle: FrequencyOracle, canaries: Sequence[int] = ()) -> NDArray[Any]:
        """Return each user's report under an oracle, perturbed with the seeded generator.

        `canaries` are items of the oracle that nobody holds: the users' items are the others, in
        their order. A simulation alone may draw from a seed; a real user is a `Reporter`. Raises
        ArgumentError when the oracle is over another number of items.
        """
        held = np.delete(np.arange(oracle.domain_size), list(canaries))
        if held.size != self.domain_size:
            raise ArgumentError(
                f"these users hold {self.domain_size} items, the round has {held.size}"
            )
        return oracle.perturb(held[self.values()], self._rng(_REPORTS))

    def report_to(
        self,
        url: str,
        round: str = "current",
        *,
        key: str | None = None,
        tickets: Sequence[str] | None = None,
        batch_size: int = BATCH_SIZE,
        connections: int = 4,
        progress: Progress | Literal["bar"] | None = "bar",
        journal: Journal | None = None,
        timeout: float = 30.0,
        retries: Retries | None = None,
        transport: Transport | None = None,
    ) -> int:
        """Have every user report to a round; return how many reports were accepted.

        `progress` "bar" shows a bar on standard error, if that is a terminal; see `submit_reports`
        for the rest. Raises ArgumentError when the round is over other items, and what
        `submit_reports` raises.
        """
        with Client(url, key=key, timeout=timeout, retries=retries, transport=transport) as client:
            parameters = client.parameters(round)
        canaries, items = parameters.parameters.canaries, parameters.parameters.items
        if self.items is not None and self.items != tuple(
            x for i, x in enumerate(items) if i not in canaries
        ):
            raise ArgumentError("the round's items are not those of these users")
        oracle = parameters.parameters.oracle
        bar = progress_bar("genuine users report", first="genuine users perturb their values")
        with bar if progress == "bar" else nullcontext(progress) as move:
            its = oracle if tickets is None else with_tickets(oracle, tickets[: self.n])
            reports = self.reports(its, canaries)
            return submit_reports(
                url,
                parameters.id,
                reports,
                key=key,
                tickets=tickets,
                batch_size=batch_size,
                connections=connections,
                progress=move,
                journal=journal,
                timeout=timeout,
                retries=retries,
                transport=transport,
                oracle=oracle,
            )

    @property
    def _distribution(self) -> NDArray[np.float64]:
        return np.asarray(self.weights, dtype=np.float64)

    def _rng(self, stream: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(stream,)))


def _apportion(frequencies: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Return whole users in proportion: floors first, the rest to the largest remainders (ties:
    lower index).
    """
    quotas = frequencies * n
    counts = np.floor(quotas).astype(np.int64)
    order = np.argsort(counts - quotas, kind="stable")
    counts[order[: n - int(counts.sum())]] += 1
    return counts
