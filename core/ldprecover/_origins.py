"""The distributions that the loaded plugins come from."""

import traceback
from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """The distribution that has an entry point, and the entry's value, `module:attribute`."""

    distribution: str
    value: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.value}"


LOADED: dict[tuple[str, str], Origin] = {}
"""The origin of each plugin loaded by this process, by its entry point's group and name."""


def distribution_of(group: str, name: str) -> str | None:
    """Return the distribution of a loaded plugin, or None for a built-in."""
    origin = LOADED.get((group, name))
    return None if origin is None else origin.distribution


def named(kind: str, name: str) -> str:
    """Return a name as in "the method 'mine' of the distribution my-ldp"; a built-in has none."""
    distribution = distribution_of(f"ldprecover.{kind}s", name)
    return f"the {kind} {name!r}" + (
        "" if distribution is None else f" of the distribution {distribution}"
    )


def named_in(module: str) -> str:
    """Return the names of the loaded plugins of a module or package, or ""."""
    return " and ".join(
        named(group.removeprefix("ldprecover.")[:-1], name)
        for (group, name), origin in LOADED.items()
        if f"{origin.value.partition(':')[0]}.".startswith(f"{module}.")
    )


def blamed(error: BaseException) -> str:
    """Return the names of the loaded plugins that raised an error, or "".

    The innermost frame counts that runs a plugin's code, or has an object of a plugin's class.
    """
    cause: BaseException | None = error
    while LOADED and cause is not None:
        for frame, _ in reversed(list(traceback.walk_tb(cause.__traceback__))):
            classes = map(type, frame.f_locals.values())
            for module in (frame.f_globals.get("__name__"), *(kind.__module__ for kind in classes)):
                if names := named_in(str(module)):
                    return names
        cause = cause.__cause__
    return ""


def plugin_distributions() -> tuple[str, ...]:
    """Return the names of the distributions whose plugins this process has loaded, sorted."""
    return tuple(sorted({origin.distribution for origin in LOADED.values()}))
