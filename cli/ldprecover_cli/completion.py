"""What a shell completes values with. Each is asked for at the moment a person presses Tab, and not
before.
"""

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldprecover import PluginError

_SECONDS = 1.0
"""A server that takes longer to list its rounds is not waited for."""


def load_plugins(failed: "Callable[[PluginError], None]" = lambda _: None) -> None:
    """Load every plugin that is installed, and call `failed` for each that cannot be.

    Where none is installed, nothing else is imported.
    """
    if any(
        entry_points(group=f"ldprecover.{kind}") for kind in ("protocols", "methods", "attacks")
    ):
        from ldprecover_attacker.plugins import load

        load(failed=failed)


def attacks() -> list[str]:
    """Return the attacks there are."""
    load_plugins()
    from ldprecover_attacker import ATTACKS

    return sorted(ATTACKS)


def protocols() -> list[str]:
    """Return the protocols there are, and the word for the one that suits best."""
    load_plugins()
    from ldprecover.protocols import PROTOCOLS

    return [*PROTOCOLS, "auto"]


def methods() -> list[str]:
    """Return the recovery methods there are."""
    load_plugins()
    from ldprecover.recovery import METHODS

    return list(METHODS)


def datasets(incomplete: str) -> list[str]:
    """Return the data sets that ship with the package, and the files that begin so."""
    from glob import escape, glob

    from ldprecover_client import DATASETS

    # a path's ./ is what was typed
    return [*DATASETS, *sorted(glob(f"{escape(incomplete)}*"))]  # noqa: PTH207


def rounds(ctx: Any) -> list[str]:
    """Return the names of a server's rounds, "current" among them; that alone where none answers at
    once.
    """
    from ldprecover_client import Client, ClientError, Retries

    try:
        with Client(
            ctx.params["url"], timeout=_SECONDS, deadline=_SECONDS, retries=Retries(attempts=1)
        ) as client:
            return ["current", *(round.name for round in client.rounds())]
    except (ClientError, KeyError):
        return ["current"]
