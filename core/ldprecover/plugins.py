"""Plugins: protocols, recovery methods and attacks of other distributions, by entry points.

    [project.entry-points."ldprecover.protocols"]
    mine = "my_package:Mine"

An entry point of "ldprecover.protocols" is a FrequencyOracle, of "ldprecover.methods" a Method, and
of "ldprecover.attacks" an Attack, under the object's own name. Nothing is imported before `load` is
called; `ldprecover_attacker.plugins.load` loads attacks too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from importlib.metadata import EntryPoint, entry_points
from typing import Any, get_args, get_type_hints

from ldprecover._origins import (
    LOADED,
    Origin,
    blamed,
    distribution_of,
    named,
    named_in,
    plugin_distributions,
)
from ldprecover.errors import ParameterError, PluginError
from ldprecover.protocols import PROTOCOLS, FrequencyOracle, OwnParameter
from ldprecover.recovery import METHODS, NEEDS, Method, Option, RecoveryInputs, RecoveryRequest

__all__ = [
    "GROUPS",
    "REGISTRIES",
    "Registry",
    "blamed",
    "check_class",
    "check_name",
    "distribution_of",
    "installed",
    "load",
    "loaded",
    "named",
    "named_in",
    "plugin_distributions",
]

GROUPS = ("ldprecover.protocols", "ldprecover.methods", "ldprecover.attacks")
"""The groups of entry points."""

_LONGEST = 16  # characters of a protocol's name, which databases keep
_NAME = r"[a-z][a-z0-9-]{0,39}"
_NAME_WORDS = "at most 40 small letters, digits and hyphens, a letter first"
_GIVES = get_args(get_type_hints(Method)["gives"])
_USES = tuple(
    sorted(
        {each.name for cls in (RecoveryRequest, RecoveryInputs) for each in fields(cls)}
        - {"method", "options", "oracle", "poisoned", "request"}
    )
)
_NOT_FREE = {
    "access",
    "checksum",
    "closed_at",
    "counts",
    "digest",
    "domain_size",
    "epsilon",
    "format",
    "id",
    "items",
    "n",
    "name",
    "opened_at",
    "p",
    "protocol",
    "q",
    "read_access",
    "retention",
    "round",
    "series",
    "state",
    "tickets",
}
"""The fields of a round: a protocol's own parameter cannot have these names."""


@dataclass(frozen=True)
class Registry:
    """A table of built-in objects and plugins of one group.

    `check` returns the object's own name and raises ParameterError, or an error of the object, if
    it breaks its contract. `reserved` maps names that a plugin cannot have to their meaning.
    """

    group: str
    table: dict[str, Any]
    check: Callable[[Any], str]
    reserved: Mapping[str, str]


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
    names_to_load = None if names is None else set(names)
    if names_to_load is not None and not names_to_load:
        return  # do not read the metadata of every installed distribution
    entries = [
        (registry, entry) for registry in chosen for entry in entry_points(group=registry.group)
    ]
    missing = (
        set() if names_to_load is None else names_to_load - {entry.name for _, entry in entries}
    )
    if missing:
        groups = " or ".join(registry.group for registry in chosen)
        _fail(
            PluginError(f"no installed distribution has a plugin {min(missing)!r} in {groups}"),
            failed,
        )
    for registry, entry in entries:
        if names_to_load is None or entry.name in names_to_load:
            try:
                _enter(registry, entry)
            except PluginError as error:
                _fail(error, failed)


def _fail(error: PluginError, failed: Callable[[PluginError], None] | None) -> None:
    if failed is None:
        raise error
    failed(error)


def _enter(registry: Registry, entry: EntryPoint) -> None:
    distribution = "of no name" if entry.dist is None else entry.dist.name
    source = Origin(distribution, entry.value)
    if LOADED.get((registry.group, entry.name)) == source:
        return
    subject = (
        f"the plugin {entry.name!r} of {registry.group} in the distribution {source.distribution}"
    )
    if entry.name in registry.table:
        owner = LOADED.get((registry.group, entry.name), "ldprecover itself")
        raise PluginError(f"{subject} has a name that is taken by {owner}")
    if entry.name in registry.reserved:
        raise PluginError(
            f"{subject} has a name that is reserved: it means {registry.reserved[entry.name]}"
        )
    value = _tried(entry.load, f"{subject} cannot be imported")
    own = _tried(lambda: registry.check(value), f"{subject} does not keep the contract")
    if own != entry.name:
        raise PluginError(f"{subject} does not keep the contract: it calls itself {own!r:.80}")
    registry.table[entry.name] = value
    LOADED[registry.group, entry.name] = source


def _tried(call: Callable[[], Any], subject: str) -> Any:
    """Return the result of a plugin's code. Raises PluginError for any error, also SystemExit."""
    try:
        return call()
    except KeyboardInterrupt as stopped:  # Ctrl-C, usually; the note names a plugin that raised it
        stopped.add_note(subject)
        raise
    except BaseException as error:
        reason = (
            str(error) if isinstance(error, ParameterError) else f"{type(error).__name__}: {error}"
        )
        raise PluginError(f"{subject}: {reason}") from error


def _protocol(kind: Any) -> str:
    check_class(kind, FrequencyOracle, ("protocol", "title", "traits"))
    name, own = kind.protocol, kind.parameter
    _check_text(kind, "title")
    if not (
        isinstance(name, str)
        and name.isidentifier()
        and name.isascii()
        and name == name.lower()
        and len(name) <= _LONGEST
    ):
        raise ParameterError(
            f"protocol must be a name of at most {_LONGEST} small letters, digits and _, not "
            f"{name!r}"
        )
    if own is not None and not isinstance(own, OwnParameter):
        raise ParameterError(f"parameter must be an OwnParameter or None, not {own!r:.80}")
    if own is not None and (not own.name.isidentifier() or own.name in _NOT_FREE):
        raise ParameterError(
            f"parameter must be a name that a round does not have yet, not {own.name!r}"
        )
    oracle = kind(1.0, 2) if own is None else kind(1.0, 2, own.default(1.0, 2))
    if not 0 < oracle.q < oracle.p <= 1:
        raise ParameterError(f"0 < q < p <= 1 must hold, not q = {oracle.q} and p = {oracle.p}")
    return str(name)


def _method(method: Any) -> str:
    if not isinstance(method, Method):
        raise ParameterError(f"it must be a Method, not {method!r:.80}")
    check_name(method.name)
    vocabulary = {"uses": _USES, "needs": NEEDS, "better_with": NEEDS}
    for name, words in vocabulary.items():
        value = getattr(method, name)
        if not isinstance(value, frozenset | set) or not value <= set(words):
            raise ParameterError(
                f"{name} must be a set of some of {', '.join(words)}, not {value!r:.80}"
            )
    for name in ("summary", "cost"):
        _check_text(method, name)
    for name in ("recover", "unfit"):
        if not callable(getattr(method, name)):
            raise ParameterError(f"{name} must be a function, not {getattr(method, name)!r:.80}")
    if method.gives not in _GIVES:
        raise ParameterError(f"gives must be one of {', '.join(_GIVES)}, not {method.gives!r:.80}")
    if not isinstance(method.options, tuple) or not all(
        isinstance(each, Option) for each in method.options
    ):
        raise ParameterError(f"options must be a tuple of Option, not {method.options!r:.80}")
    return method.name


def _check_text(value: Any, name: str) -> None:
    text = getattr(value, name)
    if not isinstance(text, str) or not text.strip():
        raise ParameterError(f"{name} must be one line of text, not {text!r:.80}")


def check_name(name: object) -> None:
    """Raise ParameterError unless it can name a method or an attack in commands, files and URLs."""
    if not isinstance(name, str) or not re.fullmatch(_NAME, name):
        raise ParameterError(f"name must be {_NAME_WORDS}, not {name!r:.80}")


def check_class(kind: Any, base: type, attributes: Iterable[str] = ()) -> None:
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
    ),
)
"""The tables of this package."""
