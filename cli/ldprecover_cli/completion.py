"""Values for shell completion, looked up only when a person presses Tab."""

from typing import Any

_SECONDS = 1.0
"""Timeout for a server's list of rounds."""


def attacks() -> list[str]:
    """Return the names of all attacks."""
    from ldprecover_attacker import ATTACKS

    return sorted(ATTACKS)


def protocols() -> list[str]:
    """Return the names of all protocols."""
    from ldprecover.protocols import PROTOCOLS

    return list(PROTOCOLS)


def methods() -> list[str]:
    """Return the names of all recovery methods."""
    from ldprecover.recovery import METHODS

    return list(METHODS)


def datasets(incomplete: str) -> list[str]:
    """Return the data sets of the package, and files that begin with `incomplete`."""
    from glob import escape, glob

    from ldprecover_client import DATASETS

    # pathlib would drop a leading ./ that the person typed
    return [*DATASETS, *sorted(glob(f"{escape(incomplete)}*"))]  # noqa: PTH207


def rounds(ctx: Any) -> list[str]:
    """Return "current" and a server's names of rounds and forms, if it answers within a second."""
    from ldprecover_client import Client, ClientError, Retries

    try:
        with Client(
            ctx.params["url"], timeout=_SECONDS, deadline=_SECONDS, retries=Retries(attempts=1)
        ) as client:
            forms = [form.name for form in client.forms()]
            return ["current", *(round.name for round in client.rounds()), *forms]
    except (ClientError, KeyError):
        return ["current"]
