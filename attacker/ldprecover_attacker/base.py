"""The one contract of every attack."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import FrequencyOracle, ParameterError
from ldprecover._checks import check_real, check_whole, finite_vector
from ldprecover.crafting import crafter_of
from ldprecover.items import target_indices
from ldprecover.types import FloatArray, Int64Array, Reports, Rng

MODELS = ("crafted", "sampled")

_USERS = "m, the number of malicious users,"

_ONE_HOT = (
    "sampled reports of GRR and OUE are one-hot; a one-hot OLH report cannot travel, because one "
    "that supports an item supports every other item with probability 1/g as well"
)


@dataclass(frozen=True, eq=False)
class AttackPlan:
    """An attack on one oracle whose secrets are drawn: its reports are now independent and alike.

    `send(m, rng)` returns m reports. `support(m)` returns pi: for each of the d items the expected
    fraction of m reports that support it.
    """

    send: Callable[[int, Rng], Reports]
    support: Callable[[int], FloatArray]


@dataclass(frozen=True)
class Attack(ABC):
    """The reports of m malicious users, from a protocol, m and a seeded generator.

    An attack is a value: equal attacks, oracles, m and generator states give equal reports. Every
    call draws the attacker's secret (Manip's H, AA's distribution) before anything else. So a
    generator in the same state gives `support` the secret of `reports`.

        attack = MGA([3, 40])
        reports = attack.reports(oracle, m=1000, rng=np.random.default_rng(0))
        attack.gain(oracle, frequencies, beta=0.05)
    """

    name: ClassVar[str]

    def reports(self, oracle: FrequencyOracle, m: int, rng: Rng) -> Reports:
        """Return m malicious reports: rows of `oracle.wire.dtype`, which are their packed bytes.

        Raises ParameterError for a negative m, more reports than fit in memory or a domain that
        the attack does not fit.
        """
        m = check_whole(_USERS, m, 0)
        oracle.wire.check_users(m)
        return self.plan(oracle, rng).send(m, rng)

    def support(self, oracle: FrequencyOracle, rng: Rng | None = None, *, m: int = 1) -> FloatArray:
        """Return pi: pi(v) is the expected fraction of malicious reports that support v, for each
        of d items.

        Given the attacker's secrets, which `rng` draws as it does for `reports` (None: some
        others), and exact; for OLH under an ideal hash, of MGA-A and APA to 1 %.
        The number of users m matters to an exhaustive search for seeds alone, whose good seeds run
        out.

        Raises as `reports` does.
        """
        m = check_whole(_USERS, m, 1)
        rng = np.random.default_rng() if rng is None else rng
        return self.plan(oracle, rng).support(m)

    def support_sum(self, oracle: FrequencyOracle, rng: Rng | None = None, *, m: int = 1) -> float:
        """Return S, the expected sum of f~_Y over all items: (k - qd)/(p - q) if a report supports
        k on average.
        """
        return float(oracle.estimate(self.support(oracle, rng, m=m), 1).sum())

    def gain(
        self,
        oracle: FrequencyOracle,
        frequencies: ArrayLike,
        beta: float,
        *,
        targets: Sequence[int] | None = None,
        rng: Rng | None = None,
        m: int = 1,
    ) -> float:
        """Return G, the expected rise of the sum of the targets' estimates.

        G = beta (sum_T (pi(t) - q)/(p - q) - f_T), where f are the true frequencies of the genuine
        users, beta = m/(n + m) is the malicious share, and T are item indices: the attack's own
        unless given (Cao et al., USENIX Security 2021). `rng` and `m` as for `support`.

        Raises ParameterError when the attack has no targets and none are given, and for targets,
        frequencies or a beta that do not fit.
        """
        d = oracle.domain_size
        chosen = (
            self.target_indices(d)
            if targets is None
            else np.array(target_indices(targets, d), np.int64)
        )
        f = finite_vector(frequencies, "frequencies", d)
        beta = check_real("beta, the share of malicious users,", beta, 0, 1)
        malicious = oracle.estimate(self.support(oracle, rng, m=m), 1)
        return beta * float(malicious[chosen].sum() - f[chosen].sum())

    def target_indices(self, d: int) -> Int64Array:
        """Return the indices of the raised items. Raises ParameterError without targets."""
        raise ParameterError(f"{self.name} has no targets: say which items are meant")

    def distribution(self, d: int, rng: Rng) -> FloatArray:
        """Return P(v) over d items. Raises ParameterError for an attack that draws no items."""
        raise ParameterError(f"{self.name} draws no items")

    def resolve(self, items: Sequence[str]) -> Self:
        """Return the attack on a round with these item labels: by default the same one.

        Labels become indices, and defaults that depend on the domain become numbers. Raises
        ParameterError for an attack that does not fit the round.
        """
        return self

    @abstractmethod
    def plan(self, oracle: FrequencyOracle, rng: Rng) -> AttackPlan:
        """Draw the attacker's secrets, and return the plan that uses them."""


@dataclass(frozen=True)
class ItemAttack(Attack):
    """An attack whose users draw items from a distribution P."""

    @abstractmethod
    def distribution(self, d: int, rng: Rng) -> FloatArray:
        """Return P(v) over d items, non-negative with sum one; random parts are drawn from `rng`.

        `reports` draws P first, so a generator in the same state returns the P of its reports.
        """


@dataclass(frozen=True)
class ModelledAttack(ItemAttack):
    """An attack whose malicious users each draw an item from the attacker's distribution P (paper,
    V-C).

    `model` says what a user makes of its item:

    - "sampled" (the paper's): the item, encoded and not perturbed. GRR names the item, OUE sets its
      one bit, OLH sends a random seed and the item's bucket under it. The paper takes every such
      report to support one item, S = (1-qd)/(p-q); over HTTP that holds for GRR and OUE alone. An
      OLH report that supports v supports every other item with probability 1/g too, so its sum of
      malicious frequencies is S = (1-q)/(p-q), and no report can do otherwise.
    - "crafted" (Cao et al., USENIX Security 2021): the report that does most for the item while it
      supports about as many items as an honest one does: see `ldprecover.crafting.Crafter`.

    Raises ParameterError for another model.
    """

    _: KW_ONLY
    model: str = "crafted"

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            hint = f"; {_ONE_HOT}" if "hot" in str(self.model) else ""
            raise ParameterError(
                f"model must be one of {', '.join(MODELS)}, not {self.model!r}{hint}"
            )

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> AttackPlan:
        weights = self.distribution(oracle.domain_size, rng)
        if self.model == "crafted":
            return self._crafted(oracle, weights)
        return AttackPlan(
            send=lambda m, rng: oracle.encode(draw_items(weights, m, rng), rng),
            support=lambda m: crafter_of(oracle).encoded_support(weights),
        )

    def _crafted(self, oracle: FrequencyOracle, weights: FloatArray) -> AttackPlan:
        """Craft each report for the one item it drew, so that its support size looks honest."""
        return AttackPlan(
            send=lambda m, rng: crafter_of(oracle).craft(draw_items(weights, m, rng)[:, None], rng),
            support=lambda m: crafter_of(oracle).crafted_support(weights, 1),
        )


def honest_plan(oracle: FrequencyOracle, weights: FloatArray) -> AttackPlan:
    """Return the plan to draw items from P and to report them as an honest user does."""
    return AttackPlan(
        send=lambda m, rng: oracle.perturb(draw_items(weights, m, rng), rng),
        support=lambda m: oracle.laws.honest_support(weights),
    )


def draw_items(weights: FloatArray, m: int, rng: Rng) -> Int64Array:
    """Return the items of m malicious users, drawn independently from the distribution P."""
    return rng.choice(weights.size, size=m, p=weights)
