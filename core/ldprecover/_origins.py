"""Where the protocols, recovery methods and attacks that plugins have brought come from."""

from dataclasses import dataclass
from types import TracebackType

__all__ = ["LOADED", "Origin", "distribution_of", "named", "plugin_at_fault"]


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
    """Return "the method 'mine' of the distribution my-ldp", or without a distribution where no plugin brought it."""
    distribution = distribution_of(f"ldprecover.{kind}s", name)
    return f"the {kind} {name!r}" + ("" if distribution is None else f" of the distribution {distribution}")


def plugin_at_fault(error: BaseException) -> str | None:
    """Return the plugin in whose package an error was raised, or what it called last raised it; None for no plugin."""
    packages = {
        origin.value.partition(":")[0].partition(".")[0]: f"the plugin {name!r} of the distribution"
        f" {origin.distribution}"
        for (_, name), origin in LOADED.items()
    }
    found = None
    at: TracebackType | None = error.__traceback__
    while at is not None:
        package = str(at.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        found = packages.get(package, found)
        at = at.tb_next
    return found
