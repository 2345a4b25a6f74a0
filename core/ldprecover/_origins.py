"""Where the protocols, recovery methods and attacks that plugins have brought come from."""

from dataclasses import dataclass
from types import TracebackType


@dataclass(frozen=True)
class Origin:
    """The distribution that has an entry point, and the entry's value, `module:attribute`."""

    distribution: str
    value: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.value}"


LOADED: dict[tuple[str, str], Origin] = {}
"""Of every plugin that this process has loaded, by the group of its entry point and its name."""


def distribution_of(group: str, name: str) -> str | None:
    """Return the distribution of a loaded plugin, None for what no plugin has brought."""
    origin = LOADED.get((group, name))
    return None if origin is None else origin.distribution


def named(kind: str, name: str) -> str:
    """Return "the method 'mine' of the distribution my-ldp", or without a distribution where no
    plugin brought it.
    """
    distribution = distribution_of(f"ldprecover.{kind}s", name)
    return f"the {kind} {name!r}" + (
        "" if distribution is None else f" of the distribution {distribution}"
    )


def plugin_at_fault(error: BaseException) -> str | None:
    """Return in words whose package an error was raised in or came through last: its plugins; None
    for none's.
    """
    packages: dict[str, list[str]] = {}
    of: dict[str, str] = {}
    for (_, name), origin in LOADED.items():
        package = origin.value.partition(":")[0].partition(".")[0]
        packages.setdefault(package, []).append(repr(name))
        of[package] = origin.distribution
    found = None
    at: TracebackType | None = error.__traceback__
    while at is not None:
        package = str(at.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        found = package if package in packages else found
        at = at.tb_next
    if found is None:
        return None
    names = packages[found]
    which = f"the plugin {names[0]}" if len(names) == 1 else f"the plugins {', '.join(names)}"
    return f"{which} of the distribution {of[found]}"
