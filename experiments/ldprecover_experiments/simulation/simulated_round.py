"""Rounds of labelled items for notebooks: simulate, attack, recover, plot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

from ldprecover import ParameterError, Recovery, RecoveryRequest, RoundParameters
from ldprecover._checks import did_you_mean
from ldprecover.estimation.metrics import mse
from ldprecover.items import find_items, highest, label_indices, quoted
from ldprecover.plugins import METHOD_REGISTRY, PROTOCOL_REGISTRY, ensure
from ldprecover.recovery import Method, RecoveryFunction
from ldprecover_attacker import Attack, TargetedAttack, make_attack
from ldprecover_attacker.campaign import campaign_rng
from ldprecover_attacker.functions import attack_class
from ldprecover_attacker.plugins import ATTACK_REGISTRY
from ldprecover_client import Population
from ldprecover_experiments.simulation.datasets import dataset_of
from ldprecover_experiments.simulation.drawing import draw_items, new_axes, shown_items
from ldprecover_experiments.simulation.parameters import (
    BETA,
    PAPER_USERS,
    draw_targets,
    malicious_users,
)
from ldprecover_experiments.simulation.poisoned_round import (
    PoisonedRound,
    Targets,
    Vector,
    own_targets,
)
from ldprecover_experiments.simulation.tables import TextTable
from ldprecover_interface.results import Columns, ColumnsMixin, recovery_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def simulate(
    data: Any,
    protocol: str = "oue",
    epsilon: float = 1.0,
    *,
    users: int | None = None,
    seed: int = 0,
    column: str | None = None,
    encoding: str = "utf-8",
    as_is: bool = False,
    least: int = 1,
) -> SimulatedRound:
    """Return a round of genuine users, who report their items under a protocol.

        r = simulate("cities", protocol="oue", epsilon=1).attack("mga", targets=3)
        r.recover().plot()

    Parameters:
        data: The name of a data set ("cities", "fire", "emoji" or a synthetic one), a mapping of
            labels to counts, a file, or values in memory, one a user, as `dataset_of` takes them.
        protocol: The name of the frequency oracle, such as "grr", "oue" or "olh".
        epsilon: The privacy budget, from 0.01 to 10.
        users: The number of users, who draw their items from the frequencies of the data. Without
            it the users hold exactly the items of the data; of "cities" and "fire" as many users
            as in the paper, in proportion.
        seed: The seed of users, reports, targets and attack. The same seed gives the same round.
        column: The column to count, for a table or a file with one row a user.
        encoding: That of a file: utf-16, or one of Python's that has ASCII, such as cp1252.
        as_is: Whether to take labels of a file that may be no items, such as sums and notes.
        least: Values that fewer users have are left out.

    Raises DatasetError and ParameterError.
    """
    dataset = dataset_of(data, column, encoding=encoding, as_is=as_is, least=least)
    ensure(protocol, PROTOCOL_REGISTRY)
    parameters = RoundParameters(protocol, epsilon, dataset.items)
    if users is None:
        n = PAPER_USERS.get(dataset.name) or int(dataset.counts.sum())
        population = Population.of(dataset, n, seed, "apportioned")
    else:
        population = Population.of(dataset, users, seed)
    return SimulatedRound(parameters, PoisonedRound.clean(parameters.oracle, population), seed)


Shown = tuple[tuple[str, ...], Targets, Mapping[str, Vector]]
"""The labels, the indices of the targets, and the truth and estimates by name."""


class LabelledEstimates(ColumnsMixin, ABC):
    """Estimates by label, as a data frame, a plot and a table."""

    @property
    @abstractmethod
    def columns(self) -> Columns:
        """The true frequencies, and the columns that `ldprecover result` writes."""

    @property
    @abstractmethod
    def items(self) -> tuple[str, ...]:
        """The labels of the items."""

    @property
    @abstractmethod
    def _caption(self) -> str:
        """The round in a line."""

    @abstractmethod
    def _by_label(self) -> Shown:
        """Return the labels, the targets and the estimates."""

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the ten most frequent items and the targets; return the matplotlib axes.

        Without `axes` they are those of a new figure of pyplot, which a notebook shows. Raises
        ExperimentError without matplotlib.
        """
        axes = new_axes() if axes is None else axes
        items, targets, columns = self._by_label()
        draw_items(axes, items, targets, columns)
        axes.set_title(self._caption)
        axes.legend()
        return axes

    def _repr_html_(self) -> str:
        items, targets, columns = self._by_label()
        rows = [
            [("> " if i in targets else "") + items[i]]
            + [f"{100 * column[i]:.2f} %" for column in columns.values()]
            for i in shown_items(columns, targets)
        ]
        return TextTable(("item", *columns), rows, self._caption, len(columns))._repr_html_()


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedRound(LabelledEstimates):
    """A simulated round of labelled items, as `simulate` returns it.

    `parameters` has the protocol, epsilon and the items. `round` has truth, tallies and reports.
    """

    parameters: RoundParameters
    round: PoisonedRound
    seed: int

    @property
    def items(self) -> tuple[str, ...]:
        """The labels of the items."""
        return self.parameters.items

    @property
    def columns(self) -> Columns:
        """The true frequencies, and those of `result frequencies`."""
        vectors = {
            "true": self.round.truth,
            "support": self.round.tally.counts(self.round.oracle),
            "frequency": self.round.poisoned.frequencies,
            "standard_error": self.round.poisoned.standard_errors,
        }
        return {name: vector.tolist() for name, vector in vectors.items()}

    @property
    def targets(self) -> tuple[str, ...]:
        """The labels of the items that the attack raises."""
        return tuple(self.items[i] for i in self.round.targets or ())

    def attack(
        self,
        attack: str | Attack | Callable[..., Any],
        *,
        targets: int | str | Iterable[str | int] | None = None,
        beta: float = BETA,
        **options: Any,
    ) -> Self:
        """Return this round with malicious users, a share `beta` of all, from 0 to 0.9.

            r.attack("mga", targets=["New York, NY", "Reno, NV"], beta=0.1)

        `attack` is a key of `ldprecover_attacker.ATTACKS`, the name of an installed plugin, or
        "module:name"; an Attack; or a function (oracle, rng, m) that returns m reports, which is
        given the indices of the targets too if it has a parameter `targets`. `targets` are labels
        or indices, or the number of targets to draw; those of an Attack are its own. `options` are
        those of `ldprecover_attacker.make_attack`, for an attack by name; the model
        "input" perturbs its items honestly. Raises ParameterError, also for a round that is
        attacked already.

            r.attack(lambda oracle, rng, m: oracle.encode(rng.integers(3, size=m), rng))
        """
        if self.round.attack is not None:
            raise ParameterError("the round is attacked already; attack the round of simulate")
        d, n = len(self.items), self.round.genuine.n
        if not isinstance(targets, str | Iterable | None):
            chosen: Targets | None = draw_targets(d, targets, self.seed)
        else:
            chosen = None if targets is None else self._indices(targets)
        instance = _instance(attack, chosen, options).resolve(self.items)
        chosen = own_targets(instance, d) if chosen is None else chosen
        attacked = self.round.under(
            instance, malicious_users(n, beta), campaign_rng(self.seed), chosen
        )
        return replace(self, round=attacked)

    def recover(
        self,
        method: str | Method | RecoveryFunction = "auto",
        *,
        targets: str | Iterable[str | int] = (),
        **assumptions: Any,
    ) -> SimulatedRecovery:
        """Return what a recovery method makes of the reports.

            r.recover("ldprecover", targets=r.targets, eta=0.05)

        `method` is a key of `ldprecover.recovery.METHODS`, the name of an installed plugin, or
        "module:name"; a Method; or a function of the estimates, an array of d unbiased
        frequencies, and the oracle, which returns d frequencies. `targets` are the labels or
        indices of the items that the method takes to be attacked. `assumptions` are other fields
        of `ldprecover.RecoveryRequest`. Raises ParameterError.

            r.recover(lambda estimates, oracle: np.maximum(estimates, 0))
        """
        allowed = {field.name for field in fields(RecoveryRequest)} - {"own"}
        for stray in assumptions.keys() - allowed:
            raise ParameterError(
                f"a recovery has no assumption {stray!r:.40}{did_you_mean(stray, allowed)}"
            )
        if isinstance(method, str):
            ensure(method, METHOD_REGISTRY)
            assumptions["method"] = method
        else:
            if not isinstance(method, Method) and (assumptions or targets):
                stated = min(assumptions, default="targets")
                raise ParameterError(
                    f"a function is not given {stated}: write it into the function"
                )
            assumptions["own"] = method
        request = RecoveryRequest(targets=self._indices(targets), **assumptions)
        return SimulatedRecovery(self, self.round.recover(request))

    def _by_label(self) -> Shown:
        estimate = "poisoned" if self.round.malicious.n else "estimated"
        columns = {"true": self.round.truth, estimate: self.round.poisoned.frequencies}
        return self.items, self.round.targets or (), columns

    @property
    def _caption(self) -> str:
        n = self.round.genuine.n
        return (
            f"{self.parameters.protocol}, epsilon {self.parameters.epsilon:g}, "
            f"{n:,} user{'s' * (n != 1)}, {self.round.malicious.n:,} malicious, "
            f"{len(self.items):,} items"
        )

    def __repr__(self) -> str:
        return f"SimulatedRound({self._caption})"

    def _indices(self, targets: str | Iterable[str | int]) -> Targets:
        is_one = isinstance(targets, str) or getattr(targets, "shape", None) == ()
        named: list[Any] = [targets] if is_one else list(targets)
        index = label_indices(self.items, named)
        for target in named:
            if isinstance(target, str) and target not in index:
                hint = did_you_mean(target, self.items)
                raise ParameterError(f"targets: no item is labelled {quoted(target)}{hint}")
        return tuple(sorted(set(find_items(named, self.items))))


def _instance(attack: object, targets: Targets | None, options: dict[str, Any]) -> Attack:
    """Return the attack that `SimulatedRound.attack` is given. Raises ParameterError."""
    if isinstance(attack, str):
        ensure(attack, ATTACK_REGISTRY)
        is_input = options.get("model") == "input"
        chosen = options | {"model": None} if is_input else options
        return make_attack(attack, targets=targets, input_poisoning=is_input, **chosen)
    if isinstance(attack, type):
        raise ParameterError(f"give an attack of the class, as {attack.__name__}(...)")
    if options:
        raise ParameterError(f"{min(options)} is an option of attacks by name")
    if isinstance(attack, Attack):
        own = getattr(attack, "attack", attack)
        if targets is not None and hasattr(own, "targets"):
            raise ParameterError(f"{attack.name} has targets: give them to the attack alone")
        return attack
    kind = attack_class(attack)
    if not issubclass(kind, TargetedAttack):
        return kind()
    if targets is None:
        raise ParameterError(f"{kind.name} needs targets")
    return kind(targets)


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedRecovery(LabelledEstimates):
    """A recovery of a simulated round, beside the truth. `recovery` has all its results."""

    round: SimulatedRound
    recovery: Recovery

    @property
    def items(self) -> tuple[str, ...]:
        """The labels of the items."""
        return self.round.items

    @property
    def columns(self) -> Columns:
        """The true frequencies, and those of `result recover`."""
        true = self.round.round.truth.tolist()
        return {"true": true, **recovery_columns(self.recovery, self.items)}

    @property
    def frequencies(self) -> dict[str, float]:
        """The recovered frequency of each label."""
        return dict(zip(self.items, self.recovery.recovered.tolist(), strict=True))

    @property
    def mse(self) -> float:
        """The mean squared error of the recovered frequencies."""
        return mse(self.recovery.recovered, self.round.round.truth)

    def _by_label(self) -> Shown:
        items, targets, columns = self.round._by_label()
        name = f"recovered by {self.recovery.method}"
        return items, targets, {**columns, name: self.recovery.recovered}

    @property
    def _caption(self) -> str:
        return self.round._caption

    def __repr__(self) -> str:
        top = highest(self.recovery.recovered, self.round.items)
        return f"SimulatedRecovery({self.recovery.method}, {len(self.frequencies):,} items: {top})"
