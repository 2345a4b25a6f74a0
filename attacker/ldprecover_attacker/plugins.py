"""Attacks of other distributions, found by their entry points in the group "ldprecover.attacks"."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from typing import Any

from ldprecover import ParameterError, PluginError
from ldprecover.plugins import (
    GROUPS,
    LOADED,
    REGISTRIES,
    Registry,
    check_class,
    check_name,
    ensure,
)
from ldprecover.plugins import load as load_of
from ldprecover_attacker.base import Attack
from ldprecover_attacker.catalogue import ATTACKS, OPTIONS
from ldprecover_attacker.functions import attack_class

_RESERVED = {"none": "no attack", "honest": "malicious users who follow the protocol"}


def load(
    names: Iterable[str] | None = None, *, failed: Callable[[PluginError], None] | None = None
) -> None:
    """Load the protocols, methods and attacks of these names, or all that are installed.

    Raises PluginError as `ldprecover.plugins.load` does, or calls `failed` with it.
    """
    load_of(names, (*REGISTRIES, ATTACK_REGISTRY), failed=failed)


def loaded_keys() -> tuple[tuple[str, str], ...]:
    """Return group and name of everything that is loaded, for `load_keys` in another process."""
    return tuple(LOADED)


def load_keys(keys: Iterable[tuple[str, str]]) -> None:
    """Load what another process has loaded, installed or by "module:name". Raises PluginError."""
    registries = {registry.group: registry for registry in (*REGISTRIES, ATTACK_REGISTRY)}
    for group, name in keys:
        ensure(name, registries[group])


def _attack(kind: Any) -> str:
    check_class(kind, Attack, ("name",))
    check_name(kind.name)
    for field in fields(kind):
        if (
            field.init
            and field.default is MISSING
            and field.default_factory is MISSING
            and field.name not in OPTIONS
        ):
            raise ParameterError(
                f"its option {field.name} must have a default: commands cannot set it"
            )
    return str(kind.name)


ATTACK_REGISTRY = Registry(GROUPS[2], ATTACKS, _attack, _RESERVED, attack_class)
"""The table of attacks."""
