"""Options that several commands share."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from ldprecover_cli import completion
from ldprecover_cli.errors import CommandError

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
RoundOrFormArgument = Annotated[
    str,
    Argument(
        help="Id or name of the round or form; the round opened last when absent.",
        metavar="ROUND|FORM",
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
Language = Annotated[
    str | None,
    Option(
        help="Language of the survey and its answers, as `de`; else the browser's.", metavar="TAG"
    ),
]
ReadAccess = Annotated[
    Literal["public", "key"],
    Option(
        help="Who may read the results, and so see each perturbed report arrive: anyone, or "
        "holders of an analyst key."
    ),
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
SeriesName = Annotated[
    str | None,
    Option(
        "--series",
        help="The series to continue or begin: rounds that ask the same, one of them open.",
        metavar="NAME",
    ),
]
Closes = Annotated[
    str | None,
    Option(help="When the server closes it: a time, or after 30m, 36h, 7d or 2w.", metavar="TIME"),
]
Column = Annotated[
    str | None,
    Option("--column", help="Column of the file, where it has several.", metavar="NAME"),
]
Encoding = Annotated[
    str,
    Option(
        "--encoding",
        help="Of the file, by the name that Python has for it; spreadsheets on Windows may write "
        "cp1252.",
        metavar="NAME",
    ),
]
AsIs = Annotated[
    bool,
    Option(
        "--as-is",
        help="Take labels that may be no items, such as sums and notes, without a question.",
        is_eager=True,  # since the file of a form is read while options are
    ),
]
Least = Annotated[
    int,
    Option(
        help="Of a file with one row a user: leave out values that fewer rows have, since items "
        "are public.",
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
        help="For custom: the share of malicious reports that support each item, one a line, or "
        "the first column of a CSV or Parquet file.",
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
Window = Annotated[
    int,
    Option(
        "--window",
        min=1,
        max=520,
        help="Count this many rounds of its series together: the round and those before it.",
        metavar="N",
    ),
]
Seed = Annotated[int, Option("--seed", min=0, help="Seed of all random numbers of the command.")]


def is_terminal() -> bool:
    """Return whether somebody can be asked."""
    return all(stream and stream.isatty() for stream in (sys.stdin, sys.stdout))


def confirm_opening() -> None:
    """Ask on a terminal whether to open a round or form. Raises CommandError if not."""
    if is_terminal() and not typer.confirm("Nothing can be changed later. Open it?", err=True):
        raise CommandError("nothing was opened")
