"""Options that several commands share, and the client of the server they name."""

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from ldprecover_cli import completion
from ldprecover_cli.errors import CommandError, UsageError, close_to, file_errors
from ldprecover_cli.output import plain

if TYPE_CHECKING:
    from ldprecover_client import Client, Retries

AUTO = "auto"
"""Value of --protocol: choose the best protocol for the round."""
CURRENT = "current"
"""The reference of the round that was opened last."""
DEFAULT_URL = "http://127.0.0.1:8000"

Scope = Literal["admin", "analyst", "report"]

Url = Annotated[
    str, Option("--url", envvar="LDPRECOVER_URL", help="Address of the server.", metavar="URL")
]
Key = Annotated[
    str | None,
    Option(
        "--key",
        envvar=["LDPRECOVER_KEY", "LDPRECOVER_ADMIN_KEY"],
        help="A key of the server with the scope that the command needs; an admin key has "
        "all scopes.",
        metavar="KEY",
    ),
]
DatabaseUrl = Annotated[
    str | None,
    Option(
        envvar="LDPRECOVER_DATABASE_URL",
        help="The server's database; the default is that of `serve`.",
    ),
]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")]
Json = Annotated[bool, Option("--json", help="Print only JSON on standard output.")]
RoundArgument = Annotated[
    str,
    Argument(
        help="Id or name of the round; the one opened last when absent.",
        metavar="ROUND",
        autocompletion=completion.rounds,
    ),
]
Epsilon = Annotated[
    float, Option(help="Privacy budget of one report, 0.01 to 10; smaller is more private.")
]
ExpectedUsers = Annotated[
    int | None, Option(help="People that you expect; 10,000 when absent.", min=1)
]
Question = Annotated[
    str | None, Option(help="What the survey asks, at most 300 characters.", metavar="TEXT")
]
Title = Annotated[
    str | None, Option(help="The survey's title, at most 120 characters.", metavar="TEXT")
]
Thanks = Annotated[
    str | None,
    Option(help="What the survey says after a report, at most 300 characters.", metavar="TEXT"),
]
ReadAccess = Annotated[
    Literal["public", "key"],
    Option(
        help="Who may read the results, and so see each perturbed report arrive: anyone, or "
        "holders of an analyst key."
    ),
]
IsForm = Annotated[
    bool, Option("--form", help="The argument is the id or name of a form: take all its rounds.")
]
DatasetName = Annotated[
    str | None,
    Option(
        "--dataset",
        help="cities, fire, emoji, or a text, CSV or Parquet file: one row a user, or the columns "
        "item and count.",
        metavar="NAME|FILE",
        autocompletion=completion.datasets,
    ),
]
Column = Annotated[
    str | None,
    Option("--column", help="Column of the file, where it has several.", metavar="NAME"),
]
Encoding = Annotated[
    Literal["utf-8", "cp1252", "utf-16"],
    Option("--encoding", help="Of the file; spreadsheets on Windows may write cp1252."),
]
Least = Annotated[
    int,
    Option(
        help="Of a file with one row a user: leave out values that fewer rows have. The items of a "
        "round are public.",
        min=1,
    ),
]
Eta = Annotated[
    str,
    Option(
        help="Assumed malicious users per genuine user, m/n, 0 to 10; or auto.", metavar="NUMBER"
    ),
]
KnownTargets = Annotated[
    list[str] | None,
    Option(
        "--target",
        help="An item known to be attacked; repeat for several. With targets ldprecover is "
        "LDPRecover*.",
    ),
]
NewJsonFile = Annotated[
    Path | None,
    Option(
        "--output", "-o", help="The new JSON file; standard output when absent.", metavar="FILE"
    ),
]
RecoveryMethod = Annotated[
    str,
    Option(
        "--method",
        help="A method that `ldprecover result methods` lists; auto chooses one, and says which.",
        autocompletion=completion.methods,
    ),
]
MaliciousModel = Annotated[
    str,
    Option(
        "--malicious-model",
        help="With targets: paper, exact for the corrected algebra, padded, searched or solved. "
        "With --support: custom.",
    ),
]
SupportFile = Annotated[
    Path | None,
    Option(
        "--support",
        help="For custom: a text file with one number a line, or a CSV or Parquet file whose first "
        "column has them: the share of malicious reports that support each item.",
        metavar="FILE",
    ),
]
MethodOptions = Annotated[
    list[str] | None,
    Option(
        "--option",
        help="An option of the method, as least=3; repeat for several. `ldprecover result methods "
        "--json` lists them.",
        metavar="NAME=VALUE",
    ),
]
Canaries = Annotated[
    list[str] | None,
    Option(
        "--canary",
        help="An item that is known to be held by nobody; repeat for several.",
        metavar="LABEL",
    ),
]
Seed = Annotated[int, Option("--seed", min=0, help="Seed of all random numbers of the command.")]


def number_or_text(text: str) -> float | str:
    """Return a finite number, whole ones as integers; otherwise the text, which others check."""
    number = _number(text)
    if number is None:
        return text
    return int(number) if number.is_integer() else number


def method_options(
    texts: Sequence[str] | None, option: str = "--option", example: str = "least=3"
) -> dict[str, Any]:
    """Return the numbers and words of NAME=VALUE by name. Raises UsageError."""
    values = values_by_name(option, example, texts)
    return {name: number_or_text(value) for name, value in values.items()}


def values_by_name(option: str, example: str, texts: Sequence[str] | None) -> dict[str, str]:
    """Return the values of NAME=VALUE by name. Raises UsageError."""
    values: dict[str, str] = {}
    for text in texts or []:
        name, _, value = text.partition("=")
        if not name or not value:
            raise UsageError(f"{option} takes a name and a value, as {example}, not {text!r}")
        if name in values:
            raise UsageError(f"{option} {name} is given twice")
        values[name] = value
    return values


def confirm_opening() -> None:
    """Ask on a terminal whether to open a round or form. Raises CommandError if not."""
    is_terminal = all(stream and stream.isatty() for stream in (sys.stdin, sys.stdout))
    if is_terminal and not typer.confirm("Nothing can be changed later. Open it?", err=True):
        raise CommandError("nothing was opened")


def read_lines(file: Path) -> list[str]:
    """Return the lines of a text file in UTF-8, which end as Python's do. Raises UsageError."""
    try:
        with file_errors("read", file), file.open(encoding="utf-8-sig") as lines:
            return [line.rstrip("\n") for line in lines]
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} must be a text file in UTF-8") from error


def support_of(file: Path | None) -> list[float] | None:
    """Return the numbers of a text file, one a line; None for no file. Raises UsageError."""
    if file is None:
        return None
    from ldprecover_client.tables import open_table

    numbers = []
    with open_table(file) as table:
        for place, (cell,) in table.rows([0]):
            if (number := _number(str(cell))) is None:
                raise UsageError(f"{place} must be a number")
            numbers.append(number)
    return numbers


def _number(text: str) -> float | None:
    """Return the finite number in a text, or None."""
    try:
        number = float(text)
    except ValueError:
        return None
    # Python reads 1_0 as 10, and digits of other scripts; no other program does.
    return number if math.isfinite(number) and text.isascii() and "_" not in text else None


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
                hint = " (for a form add --form, where a command has it)" * (noun == "round")
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
