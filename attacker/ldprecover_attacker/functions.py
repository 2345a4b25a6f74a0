"""Attacks that are functions, or objects of a module that names them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, ClassVar

from ldprecover import FrequencyOracle, ParameterError, ReportError
from ldprecover._checks import check_parameters
from ldprecover.plugins import check_class
from ldprecover.types import FloatArray, Int64Array, Reports, Rng
from ldprecover_attacker.base import Attack, AttackPlan
from ldprecover_attacker.targeted import TargetedAttack

_MEASURED = 10_000
"""The least number of reports from which the support of a function's reports is measured."""


def attack_class(value: object, name: str | None = None) -> type[Attack]:
    """Return the attack of this name, by default its own, that a function or an Attack is.

    The function takes the oracle, a generator and m, and returns m reports, as an array of a shape
    that `oracle.wire.rows` takes. If it has a parameter `targets`, it is given the indices of the
    targets too; a functools.partial may bind labels or indices. Its support is measured from its
    reports. An Attack has its own options; a class of attacks is returned as it is.

    Raises ParameterError for anything else.

        attack_class(lambda oracle, rng, m: oracle.encode(np.zeros(m, int), rng), "zeros")()
    """
    if isinstance(value, type):
        check_class(value, Attack, ("name",))
        return value
    if isinstance(value, Attack):
        return type("_Named", (_Named,), {"name": name or value.name, "attack": value})
    expected = "must be an Attack or a function (oracle, rng, m) -> reports"
    if not callable(value):
        raise ParameterError(f"an attack {expected}, not {repr(value).partition(' at 0x')[0]:.60}")
    title = name or str(getattr(value, "__name__", type(value).__name__))
    try:
        targeted = "targets" in signature(value).parameters
    except ValueError:  # a builtin without a signature, which fails the check
        targeted = False
    if targeted and isinstance(value, partial) and "targets" in value.keywords:
        options = dict(value.keywords)
        targets = options.pop("targets")
        kind: Any = attack_class(partial(value.func, *value.args, **options), title)
        return attack_class(kind(targets), title)
    check_parameters(value, 3, f"{title} {expected}", **({"targets": ()} if targeted else {}))
    base = _TargetedFunction if targeted else _Function
    return type(base.__name__, (base,), {"name": title, "function": staticmethod(value)})


@dataclass(frozen=True)
class _Function(Attack):
    """The reports of a function, checked."""

    function: ClassVar[Callable[..., Any]]

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> AttackPlan:
        options = self._options(oracle.domain_size)

        def send(m: int, rng: Rng) -> Reports:
            try:
                returned = self.function(oracle, rng, m, **options)
            except Exception as error:
                error.add_note(f"in the attack {self.name}")
                raise
            try:
                reports = oracle.wire.checked(returned)
            except (ParameterError, ReportError) as error:
                raise ParameterError(f"the reports of {self.name}: {error}") from error
            if len(reports) != m:
                raise ParameterError(f"{self.name} must return {m:,} reports, not {len(reports):,}")
            return reports

        def support(m: int) -> FloatArray:
            number = max(m, _MEASURED)
            return oracle.support_counts(send(number, rng)) / number

        return AttackPlan(send, support)

    def _options(self, d: int) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class _TargetedFunction(TargetedAttack, _Function):
    """The reports of a function that is given the targets."""

    def _options(self, d: int) -> dict[str, Any]:
        return {"targets": self.target_indices(d)}


@dataclass(frozen=True)
class _Named(Attack):
    """An attack whose options a module has chosen."""

    attack: ClassVar[Attack]

    def resolve(self, items: Sequence[str]) -> Any:
        return self.attack.resolve(items)

    def target_indices(self, d: int) -> Int64Array:
        return self.attack.target_indices(d)

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> AttackPlan:
        return self.attack.plan(oracle, rng)
