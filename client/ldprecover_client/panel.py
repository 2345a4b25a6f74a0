"""The simulated people of a series, who answer in rotation: they stay, change, leave and come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldprecover import ParameterError
from ldprecover._checks import check_real, check_whole, finite_vector
from ldprecover_client.errors import ArgumentError


@dataclass(frozen=True)
class PanelRound:
    """One round of a panel: the values of those who answer, and how many people hold each item.

    `values`, shape (answers,), are item indices; `counts`, shape (d,), are of all n people in use.
    `answers`, shape (n,), is how often each of them has answered.

        next(Panel([5, 3], 100, period=4, limit=2, seed=1).rounds()).counts.sum()  # 100
    """

    values: NDArray[np.int64]
    counts: NDArray[np.int64]
    answers: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Panel:
    """n people in use at any time, each of whom answers once in `period` rounds.

    The round of a person's first answer is drawn evenly from its first period. After `limit`
    answers it is silent. `weights`, shape (d,), are the law of the values; from the round `step` on
    it is `after`, and as few people as possible change their values then. Between two rounds a
    share `leave` of the people is replaced by new ones, and a share `change` draws new values. The
    same seed gives the same people. Raises ArgumentError.

        for week in Panel([5, 3, 2], 1_000, period=13, limit=4, seed=1).rounds():
            week.values
    """

    weights: ArrayLike
    n: int
    _: KW_ONLY
    period: int
    limit: int
    seed: int
    leave: float = 0.001
    change: float = 0.01
    step: int = 0
    after: ArrayLike | None = None

    def __post_init__(self) -> None:
        try:
            for name in ("n", "period", "limit"):
                check_whole(name, getattr(self, name), 1)
            for name in ("leave", "change"):
                check_real(name, getattr(self, name), 0, 1)
            laws = [finite_vector(each, "weights") for each in (self.weights, self._after)]
        except ParameterError as error:
            raise ArgumentError(str(error)) from None
        if laws[0].size != laws[1].size or any((law < 0).any() or not law.any() for law in laws):
            raise ArgumentError("weights must be of the same items, none negative, not all zero")

    @property
    def _after(self) -> ArrayLike:
        return self.weights if self.after is None else self.after

    def rounds(self, number: int = 52) -> Iterator[PanelRound]:
        """Yield rounds 1 to `number`."""
        rng = np.random.default_rng(self.seed)
        law, after = (np.asarray(each) / np.sum(each) for each in (self.weights, self._after))
        values = rng.choice(law.size, size=self.n, p=law)
        due = rng.integers(self.period, size=self.n)  # rounds until the next answer
        answers = np.zeros(self.n, dtype=np.int64)
        for i in range(1, number + 1):
            if i == self.step and (gain := np.maximum(after - law, 0)).any():
                staying = np.minimum(after / np.where(law, law, 1), 1)[values]
                moved = rng.random(self.n) >= staying
                values[moved] = rng.choice(law.size, size=moved.sum(), p=gain / gain.sum())
                law = after
            new = rng.random(self.n) < self.leave
            due[new], answers[new] = rng.integers(self.period, size=new.sum()), 0
            new |= rng.random(self.n) < self.change
            values[new] = rng.choice(law.size, size=new.sum(), p=law)
            answering = (due == 0) & (answers < self.limit)
            answers += answering
            counts = np.bincount(values, minlength=law.size)
            yield PanelRound(values[answering], counts, answers.copy())
            due = (due - 1) % self.period
