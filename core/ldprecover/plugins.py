"""Plugins: protocols, recovery methods and attacks of other distributions, by entry points.

    [project.entry-points."ldprecover.protocols"]
    mine = "my_package:Mine"

An entry point of "ldprecover.protocols" is a FrequencyOracle, of "ldprecover.methods" a Method, and
of "ldprecover.attacks" an Attack, under the object's own name. Nothing is imported before `load` is
called; `ldprecover_attacker.plugins.load` loads attacks too. `ensure` loads the one plugin of a
name, and methods and attacks by "module:name".
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import Any

from ldprecover._checks import did_you_mean
from ldprecover.errors import ParameterError, PluginError
from ldprecover.protocols import PROTOCOLS, FrequencyOracle
from ldprecover.recovery import METHODS, Method

__all__ = [
    "GROUPS",
    "METHOD_REGISTRY",
    "PROTOCOL_REGISTRY",
    "REGISTRIES",
    "Registry",
    "check_class",
    "check_name",
    "ensure",
    "installed",
    "load",
    "loaded",
    "name_of",
]

GROUPS = ("ldprecover.protocols", "ldprecover.methods", "ldprecover.attacks")
"""The groups of entry points."""

_LONGEST = 16  # characters of a protocol's name, which databases keep
_NAME = r"[a-z][a-z0-9-]{0,39}"
_NAME_WORDS = "at most 40 small letters, digits and hyphens, a letter first"
LOADED: dict[tuple[str, str], str] = {}
"""The distribution of each plugin loaded by this process, by its entry point's group and name."""


OBJECTS: dict[str, object] = {}
"""The objects that `name_of` names and no module has."""


@dataclass(frozen=True)
class Registry:
    """A table of built-in objects and plugins of one group.

    `check` returns the object's own name and raises ParameterError for another kind of object.
    `reserved` maps names that a plugin cannot have to their meaning. `adapt` returns the entry for
    an object named by "module:name", and raises ParameterError; None if such names are not taken.
    """

    group: str
    table: dict[str, Any]
    check: Callable[[Any], str]
    reserved: Mapping[str, str]
    adapt: Callable[[Any, str], Any] | None = None


def installed() -> dict[str, tuple[str, ...]]:
    """Return the names of the installed plugins by group, without importing any."""
    return {
        group: tuple(sorted({entry.name for entry in entry_points(group=group)}))
        for group in GROUPS
    }


def loaded(groups: Iterable[str] = GROUPS) -> tuple[str, ...]:
    """Return the names of the plugins of these groups that this process has loaded."""
    chosen = set(groups)
    return tuple(sorted({name for group, name in LOADED if group in chosen}))


def load(
    names: Iterable[str] | None = None,
    registries: Iterable[Registry] | None = None,
    *,
    failed: Callable[[PluginError], None] | None = None,
) -> None:
    """Load the plugins of these names, or all installed ones, and enter them in the tables.

    A name stands for the plugins of this name in every group: protocols and methods, unless
    `registries` are given. Loaded plugins are skipped. Raises PluginError, with the plugin and its
    distribution, if a plugin is not installed, cannot be imported or breaks its contract, or if its
    name is taken or reserved. With `failed`, that function is called with the error instead, and
    the other plugins are loaded.

        load(failed=print)
    """
    chosen = REGISTRIES if registries is None else tuple(registries)
    if names is not None:
        names = set(names)
        if not names:
            return  # do not read the metadata of every installed distribution
    entries = [
        (registry, entry) for registry in chosen for entry in entry_points(group=registry.group)
    ]
    if missing := {*(names or ())} - {entry.name for _, entry in entries}:
        groups = " or ".join(registry.group for registry in chosen)
        _fail(
            PluginError(f"no installed distribution has a plugin {min(missing)!r} in {groups}"),
            failed,
        )
    for registry, entry in entries:
        if names is None or entry.name in names:
            try:
                _enter(registry, entry)
            except PluginError as error:
                _fail(error, failed)


def ensure(name: object, registry: Registry) -> None:
    """Load the plugin of this name, if the table lacks it and it is installed.

    "module:name" is the object that an importable module has now, which needs no installation. Any
    other name is left to who looks it up. Raises PluginError.

        ensure("my_method:recover", METHOD_REGISTRY)
    """
    if not isinstance(name, str):
        return
    module, colon, attribute = name.partition(":")
    if not colon:
        if name not in registry.table and any(
            entry.name == name for entry in entry_points(group=registry.group)
        ):
            load([name], [registry])
    elif registry.adapt is not None:
        try:
            value = OBJECTS.get(name) or attrgetter(attribute)(import_module(module))
            registry.table[name] = registry.adapt(value, name)
        except ParameterError as error:
            prefix = "" if str(error).startswith(name) else f"{name}: "
            raise PluginError(f"{prefix}{error}") from error
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            near = did_you_mean(attribute, vars(sys.modules.get(module, object)))
            raise PluginError(f"{name!r} cannot be loaded: {reason}{near}") from error
        if name not in OBJECTS:
            LOADED[registry.group, name] = module


def name_of(value: object) -> str:
    """Return "module:name" of a function or an object for `ensure`, and a text as it is.

    One that no module's file has by its name, such as a lambda, is kept in this process. It
    replaces an earlier one of a name that its module has; another one's name is numbered. A
    functools.partial has the name of its function and "partial".
    """
    if isinstance(value, str):
        return value
    kind: Any = value.func if isinstance(value, partial) else value
    kind = kind if hasattr(kind, "__qualname__") else type(kind)
    name = plain = f"{kind.__module__}:{getattr(value, 'name', kind.__qualname__)}"
    if isinstance(value, partial):
        name = plain = f"{plain} partial"
    with suppress(AttributeError, ImportError):
        module = import_module(kind.__module__)
        if attrgetter(kind.__qualname__)(module) is value:
            if Path(getattr(module, "__file__", None) or "").is_file():  # not <stdin>
                return name
            OBJECTS[name] = value
    numbers = count(2)
    while OBJECTS.setdefault(name, value) is not value:
        name = f"{plain} {next(numbers)}"
    return name


def _fail(error: PluginError, failed: Callable[[PluginError], None] | None) -> None:
    if failed is None:
        raise error
    failed(error)


def _enter(registry: Registry, entry: EntryPoint) -> None:
    distribution = "of no name" if entry.dist is None else entry.dist.name
    if LOADED.get((registry.group, entry.name)) == distribution:
        return
    subject = f"the plugin {entry.name!r} of {registry.group} in the distribution {distribution}"
    if entry.name in registry.table:
        owner = LOADED.get((registry.group, entry.name), "ldprecover itself")
        raise PluginError(f"{subject} has a name that is taken by {owner}")
    if entry.name in registry.reserved:
        raise PluginError(
            f"{subject} has a name that is reserved: it means {registry.reserved[entry.name]}"
        )
    try:
        value = entry.load()
        name = registry.check(value)
    except ParameterError as error:
        raise PluginError(f"{subject} does not keep the contract: {error}") from error
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise PluginError(f"{subject} cannot be loaded: {reason}") from error
    if name != entry.name:
        raise PluginError(f"{subject} does not keep the contract: it calls itself {name!r:.80}")
    registry.table[entry.name] = value
    LOADED[registry.group, entry.name] = distribution


def _protocol(kind: Any) -> str:
    check_class(kind, FrequencyOracle, ("protocol", "title", "traits"))
    name: str = kind.protocol
    if not (name.isidentifier() and name.isascii() and name.islower() and len(name) <= _LONGEST):
        raise ParameterError(
            f"protocol must be a name of at most {_LONGEST} small letters, digits and _, not "
            f"{name!r}"
        )
    return name


def _method(method: Any) -> str:
    if not isinstance(method, Method):
        raise ParameterError(f"it must be a Method, not {method!r:.80}")
    check_name(method.name)
    return method.name


def check_name(name: str) -> None:
    """Raise ParameterError unless it can name a method or an attack in commands, files and URLs."""
    if not re.fullmatch(_NAME, name):
        raise ParameterError(f"name must be {_NAME_WORDS}, not {name!r:.80}")


def check_class(kind: Any, base: type, attributes: Iterable[str]) -> None:
    """Raise ParameterError unless `kind` is a concrete subclass of `base` with these attributes."""
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise ParameterError(f"it must be a subclass of {base.__name__}, not {kind!r:.80}")
    missing = [
        *sorted(getattr(kind, "__abstractmethods__", ())),
        *(n for n in attributes if not hasattr(kind, n)),
    ]
    if missing:
        raise ParameterError(f"it lacks {', '.join(missing)}")


REGISTRIES = (
    Registry(GROUPS[0], PROTOCOLS, _protocol, {"auto": "the protocol that suits a round best"}),
    Registry(
        GROUPS[1],
        METHODS,
        _method,
        {
            "genuine": "the estimate without the attack",
            "poisoned": "the estimate before any recovery",
        },
        Method.of,
    ),
)
"""The tables of this package."""
PROTOCOL_REGISTRY, METHOD_REGISTRY = REGISTRIES
