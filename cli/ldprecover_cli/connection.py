"""The client of the server that a command names, and its errors for people."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ldprecover.items import quoted
from ldprecover_cli.errors import CommandError, close_to
from ldprecover_cli.options import CURRENT, Scope
from ldprecover_cli.output import plain

if TYPE_CHECKING:
    from ldprecover_client import Client, Retries

T = TypeVar("T")
U = TypeVar("U")


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
            _, _, missing = (error.detail or "")[3:].partition(" has the id or name ")
            if missing:
                raise CommandError(_missing_message(client, missing.strip("'"))) from error
            if error.slug == "series-not-found":
                name = (error.detail or "").partition(" has the name ")[2].strip("'")
                raise CommandError(_missing_series(client, name)) from error
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
        if round == CURRENT:
            status = client.round(CURRENT)
            reference, name = status.id, status.name
        yield client, ChosenRound(reference, titled(name, round))


def round_or_form(
    reference: str, for_round: Callable[[str], T], for_form: Callable[[str], U]
) -> T | U:
    """Return the result of a call for a round; if no round has this id or name, for a form.

    Raises the error of the round if there is no form either.
    """
    from ldprecover_client.errors import RefusedError

    try:
        return for_round(reference)
    except RefusedError as missing:
        if missing.slug != "round-not-found":
            raise
        try:
            return for_form(reference)
        except RefusedError as error:
            raise (missing if error.slug == "form-not-found" else error) from None


def titled(name: str, reference: str) -> str:
    """Return the name of a round, and that it is the current one if it was not named."""
    return f"{plain(name)} (the current one)" if reference == CURRENT else plain(name)


def _missing_message(client: "Client", name: str) -> str:
    """Return the message for a name that no round has, or no form."""
    from ldprecover_client.errors import RefusedError

    forms = {form.name: form for form in client.forms()}
    if form := forms.get(name):
        return f"{plain(name)} is a form: name one of its rounds, such as {form.rounds[0].name}"
    with suppress(RefusedError):
        newest = client.series(name).entries[0]
        return f"{plain(name)} is a series: name one of its rounds, such as {newest.name}"
    near = close_to(name, [*(round.name for round in client.rounds()), *forms])
    hint = near or "`ldprecover round list` shows all rounds"
    return f"no round or form is called {quoted(name)}: {hint}"


def _missing_series(client: "Client", name: str) -> str:
    """Return the message for a name that no series has."""
    series = {round.series for round in client.rounds() if round.series is not None}
    hint = close_to(name, sorted(series)) or "`ldprecover round list` shows all rounds"
    return f"no series is called {quoted(name)}: {hint}"


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
