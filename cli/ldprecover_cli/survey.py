"""`survey`: open a round or a form and print the link of its survey, or one link a ticket."""

import base64
import csv
from collections.abc import Iterable
from contextlib import nullcontext
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

from typer import Argument, Context, Option

from ldprecover.sentences import counted, repeats_sentence
from ldprecover_cli.connection import connected
from ldprecover_cli.errors import UsageError, check_new, new_file
from ldprecover_cli.options import (
    DEFAULT_URL,
    AsIs,
    Column,
    Encoding,
    Epsilon,
    ExpectedUsers,
    Json,
    Key,
    Language,
    Question,
    ReadAccess,
    SeriesName,
    Thanks,
    Title,
    Url,
    Yes,
    confirm_opening,
)
from ldprecover_cli.output import JsonObject, console, note, note_items, plain, print_json

if TYPE_CHECKING:
    from ldprecover_client import Form, RoundStatus

_QUESTIONS = (
    "a list of answers needs --question; the questions of a TOML file have keys instead of "
    "--question, --column and --encoding"
)


def _defaults(context: Context, file: Path) -> Path:
    """Take the keys of a form's file as the values of options that are absent."""
    if file.suffix.lower() == ".toml" and file.is_file():
        from ldprecover_cli.form_file import load_form

        context.default_map = load_form(file, context.params.get("as_is", False))
    return file


def survey(
    context: Context,
    file: Annotated[
        Path,
        Argument(
            help="Answers: a text file, one a line, or a CSV or Parquet file; or a TOML file of "
            "several questions.",
            callback=_defaults,
            is_eager=True,
        ),
    ],
    *,
    question: Question = None,
    title: Title = None,
    thanks: Thanks = None,
    language: Language = None,
    name: Annotated[str | None, Option(help="Name of the round or form.", metavar="NAME")] = None,
    series: SeriesName = None,
    column: Column = None,
    encoding: Encoding = "utf-8",
    as_is: AsIs = False,
    users: ExpectedUsers = None,
    epsilon: Epsilon = 1.0,
    tickets: Annotated[
        int | None,
        Option(
            help="Only people with a link of this many may answer, each once.",
            min=1,
            max=1_000_000,
        ),
    ] = None,
    shuffle: Annotated[
        bool, Option("--shuffle", help="Show each person the answers in a random order.")
    ] = False,
    output: Annotated[
        Path | None,
        Option(
            "--output",
            "-o",
            help="The new CSV file of the links with tickets; links.csv when absent.",
            metavar="FILE",
        ),
    ] = None,
    read_access: ReadAccess = "public",
    preview: Annotated[
        bool,
        Option("--preview", help="Open nothing: print a link that shows what phones would."),
    ] = False,
    yes: Yes = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Run a survey: open its round and print the link. The answers of a question are a list.

    First it says how exact the shares will be. On a terminal it asks before it opens a round whose
    noise exceeds the average share.

    A TOML file is a form: each person answers one of its `questions`, tables with question, items,
    file, column and encoding. Its other keys are name, series, title, thanks, language, epsilon,
    users, tickets, shuffle and read_access; the options replace them. With tickets, these assign
    the questions.

    Example: ldprecover survey products.csv --question "Which of these did you buy last?"

    Example: ldprecover survey buy.csv --question "Which?" --column Produkt --encoding cp1252

    Example: ldprecover survey buy.csv --question "Which?" --tickets 5000 --output links.csv

    Example: ldprecover survey usage.toml --tickets 5000

    Example: ldprecover survey usage.toml --preview

    Example: ldprecover survey lunch.txt --question "How was lunch?" --series lunch
    """
    from ldprecover.planning import plan_form
    from ldprecover_client.http import server_url
    from ldprecover_client.reporter import MAX_EPSILON

    questions: list[JsonObject] | None = (context.default_map or {}).get("questions")
    if output and (not tickets or output.suffix != ".csv"):
        raise UsageError("--output is for the links of --tickets: a file that ends in .csv")
    if epsilon > MAX_EPSILON:
        raise UsageError(
            f"--epsilon: the survey sends no report above {MAX_EPSILON:g}: take that or less, and "
            "more people or fewer items; practice rounds of `ldprecover class` take more"
        )
    links = (output or Path("links.csv")) if tickets else None
    if links and not preview:
        check_new(links)
    if questions is None:
        rounds = [_listed(file, question, column, encoding, as_is)]
    elif question or column or encoding != "utf-8":
        raise UsageError(_QUESTIONS)
    else:
        rounds = questions
    people = min(filter(None, (users, tickets)), default=10_000)
    plan = plan_form([len(each["items"]) for each in rounds], epsilon, people)
    *accuracies, gain = plan.sentences
    for i, each in enumerate(rounds):
        if questions is not None:
            note(f"{i + 1}. {each['question']}")
        note_items(each["items"])
        note(accuracies[i])
        each |= {"thanks": thanks, "language": language, "epsilon": epsilon}
        each["protocol"] = plan.rounds[i].protocol
        each["read_access"] = read_access
    if len(rounds) > 1:
        assigned = "the ticket assigns it" if links else "each device draws it, so attackers choose"
        number = counted(len(rounds), "question")
        note(f"Each person answers one of {number}: {assigned}. {gain}")
    if series is not None:
        note(repeats_sentence(epsilon))
    if url.startswith("http:"):
        note(
            "Without https only browsers on the server's machine can report: for others give --url "
            "a public address with https."
        )
    if preview:
        access = "ticket" if links else "open"
        shown = _previewed(rounds, title, access, questions is not None)
        link = f"{server_url(url)}/page/survey.html{'?shuffle' if shuffle else ''}#preview={shown}"
        console().print(f"Preview: {link}", soft_wrap=True)
        return
    if any(each.drowns for each in plan.accuracies) and not (yes or json):
        confirm_opening()
    # Create the file first: a round cannot be opened again.
    opened: Form | RoundStatus | None = None
    file_of_links = new_file(links, 0o600) if links else nullcontext()
    try:
        with connected(url, key) as client, file_of_links as stream:
            survey_page = f"{client.url}/page/survey.html"
            if questions is None:
                access = "ticket" if links else "open"
                opened = client.open_round(
                    name=name, title=title, access=access, series=series, **rounds[0]
                )
                link, mint = f"{survey_page}?round={opened.name}", client.mint_tickets
            else:
                assign = "ticket" if links else "client"
                opened = client.open_form(
                    name=name, title=title, assign=assign, rounds=rounds, series=series
                )
                link, mint = f"{survey_page}?form={opened.name}", client.mint_form_tickets
            if shuffle:
                link += "&shuffle"
            if stream:
                _write_links(stream, link, mint(opened.id, tickets or 0))
    except BaseException:
        if opened is not None:
            note(
                f"{opened.name} is open, but {links} is not written: `ldprecover admin ticket "
                f"{opened.name} --count {tickets}` makes its tickets."
            )
        raise
    if json:
        print_json(opened)
        return
    if links:
        link = f"{counted(tickets or 0, 'link')}, one a person, in {links}: keep the file secret."
    else:
        link = f"Survey: {link}"
    opened_name = plain(opened.name)
    console().print(
        f"{opened_name} is open.\n{link}\n"
        f"To see its results: ldprecover result frequencies {opened_name} -o results.csv",
        soft_wrap=True,
    )


def _listed(
    file: Path, question: str | None, column: str | None, encoding: str, as_is: bool
) -> JsonObject:
    """Return the question about a list of answers, as a form has it. Raises UsageError."""
    from ldprecover import RoundParameters
    from ldprecover_client import load_items

    items = load_items(file, column, encoding=encoding, as_is=as_is)
    RoundParameters("grr", 1.0, items)  # raises for fewer than two
    if not question:
        raise UsageError(_QUESTIONS)
    return {"question": question, "items": items}


def _previewed(rounds: Iterable[JsonObject], title: str | None, access: str, is_form: bool) -> str:
    """Return what the server would answer about a survey, as JSON in the letters of URLs.

    Its `form` is null for one round. Raises ParameterError.
    """
    from ldprecover import RoundParameters

    shown = []
    for i, each in enumerate(rounds):
        parameters = RoundParameters(each["protocol"], each["epsilon"], tuple(each["items"]))
        oracle, id = parameters.oracle, f"preview-{i + 1}"
        fields = {"id": id, "name": id, "form": "preview" if is_form else None, "title": title}
        derived = {"digest": parameters.digest, "p": oracle.p, "q": oracle.q, "access": access}
        shown.append(each | fields | derived | parameters.own)
    form: JsonObject = {"id": "preview", "name": "preview", "title": title}
    form["assign"] = "ticket" if access == "ticket" else "client"
    keys = ("id", "question", "language")
    form["rounds"] = [{key: each[key] for key in keys} | {"state": "open"} for each in shown]
    document = {"form": form if is_form else None, "rounds": shown}
    return base64.urlsafe_b64encode(dumps(document).encode()).decode()


def _write_links(stream: TextIO, link: str, tickets: Iterable[str]) -> None:
    rows = csv.writer(stream)
    rows.writerow(["link", "ticket"])
    # After the hash: browsers send that part to no server, so no log has the ticket.
    rows.writerows([f"{link}#ticket={ticket}", ticket] for ticket in tickets)
