"""The client of the server that a command names, and its errors for people."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ldprecover_cli.errors import CommandError, close_to
from ldprecover_cli.options import CURRENT, Scope
from ldprecover_cli.output import plain

if TYPE_CHECKING:
    from ldprecover_client import Client, Retries


@contextmanager
def connected(
    url: str,
    key: str | None = None,
    *,
    scope: Scope = "admin",
    retries: "Retries | None" = None,
) -> Iterator["Client"]:
    """Yield a client of the server.

    Raises CommandError with a hint if the key lacks `scope` or a round or form does not exist.
    """
    from ldprecover_client.errors import InvalidAnswerError, RefusedError
    from ldprecover_client.http import Client
    from ldprecover_client.retries import INTERACTIVE

    with Client(url, key=key, retries=retries or INTERACTIVE) as client:
        try:
            yield client
        except RefusedError as error:
            if error.slug == "unauthorized":
                raise CommandError(_key_message(key, scope)) from error
            noun, _, missing = (error.detail or "")[3:].partition(" has the id or name ")
            if missing:
                listed = client.forms() if noun == "form" else client.rounds()
                near = close_to(missing.strip("'"), [each.name for each in listed])
                hint = " (for a form add --form, where a command has it)" if noun == "round" else ""
                raise CommandError(
                    f"no {noun} is called {missing}{hint}: "
                    f"{near or '`ldprecover round list` shows all rounds'}"
                ) from error
            raise
        except InvalidAnswerError as error:
            raise CommandError(f"{client.url}: {error}; check --url") from error


@dataclass(frozen=True)
class ChosenRound:
    """A round that a command reads: `reference` for requests, `title` for people."""

    reference: str
    title: str


@contextmanager
def connected_to(
    round: str,
    url: str,
    key: str | None = None,
    *,
    scope: Scope = "analyst",
) -> Iterator[tuple["Client", ChosenRound]]:
    """Yield a client as `connected` does, and the round it is for.

    The reference of the current round is its id: another may be opened between two requests.
    """
    with connected(url, key, scope=scope) as client:
        reference, name = round, round
        if round == CURRENT and (summaries := client.rounds()):
            reference, name = summaries[0].id, summaries[0].name
        yield client, ChosenRound(reference, titled(name, round))


def titled(name: str, reference: str) -> str:
    """Return the name of a round, and that it is the current one if it was not named."""
    return f"{plain(name)} (the current one)" if reference == CURRENT else plain(name)


def _key_message(key: str | None, scope: Scope) -> str:
    """Return the message for a key that is missing or unknown."""
    if scope == "admin":
        variable = "LDPRECOVER_ADMIN_KEY"
        hint = (
            "the server printed one at its first start, and `ldprecover admin key create` on its "
            "database makes another"
        )
    else:
        variable = "LDPRECOVER_KEY"
        hint = f"`ldprecover admin key create --scope {scope}` on its database makes one"
    if key is not None:
        return f"the server does not know this key, or it was revoked: {hint}"
    article = "a" if scope == "report" else "an"
    return f"this needs {article} {scope} key of the server, in --key or {variable}: {hint}"
