"""`round open`: open a round over a list of items."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from ldprecover.sentences import counted
from ldprecover_cli import completion
from ldprecover_cli.connection import connected
from ldprecover_cli.errors import UsageError
from ldprecover_cli.option_values import closing_time, method_options
from ldprecover_cli.options import (
    AUTO,
    DEFAULT_URL,
    AsIs,
    Closes,
    Column,
    DatasetName,
    Encoding,
    Epsilon,
    ExpectedUsers,
    Json,
    Key,
    Language,
    Least,
    Question,
    ReadAccess,
    SeriesName,
    Thanks,
    Title,
    Url,
    Yes,
    confirm_opening,
)
from ldprecover_cli.output import console, note, note_items, plain, print_json

_ACCESS_OPTIONS = {"open": "", "key": " --key KEY", "ticket": " --ticket TICKET"}
_USERS = 10_000


def open_round(
    *,
    name: Annotated[
        str | None, Argument(help="Name; made from the protocol when absent.", metavar="NAME")
    ] = None,
    epsilon: Epsilon,
    protocol: Annotated[
        str,
        Option(
            help="How users perturb values: grr, oue, olh, sue, ss, hr, llh, another that the "
            "server has, or auto, the best of them for --users.",
            metavar="NAME",
            autocompletion=completion.protocols,
        ),
    ] = AUTO,
    question: Question = None,
    title: Title = None,
    thanks: Thanks = None,
    language: Language = None,
    item: Annotated[
        list[str] | None, Option(help="An item that users may hold; repeat for several.")
    ] = None,
    items: Annotated[
        Path | None,
        Option(help="Text file with one item a line, or CSV or Parquet file.", metavar="FILE"),
    ] = None,
    dataset: DatasetName = None,
    column: Column = None,
    encoding: Encoding = "utf-8",
    as_is: AsIs = False,
    least: Least = 5,
    domain_size: Annotated[int | None, Option(help='Number of items, called "0", "1", ….')] = None,
    users: ExpectedUsers = None,
    series: SeriesName = None,
    closes: Closes = None,
    parameter: Annotated[
        list[str] | None,
        Option(
            help="A parameter of the protocol: hash_range of olh and llh, subset_size of ss; by "
            "epsilon and the number of items when absent.",
            metavar="NAME=N",
        ),
    ] = None,
    access: Annotated[
        Literal["open", "key", "ticket"],
        Option(
            help="Who may report: anyone, with one report a submission; holders of a report key; "
            "or holders of a ticket."
        ),
    ] = "open",
    read_access: ReadAccess = "public",
    retention: Annotated[
        Literal["forever", "none"],
        Option(help="Whether counted reports are stored: until the round is deleted, or not."),
    ] = "forever",
    yes: Yes = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Open a round: name its items, and how private reports are.

    `ldprecover plan` compares the protocols.

    Example: ldprecover round open lunch --epsilon 1 --item soup --item salad --question "Which?"

    Example: ldprecover round open cities --epsilon 0.5 --dataset cities

    Example: ldprecover round open pages --epsilon 1 --domain-size 99 --users 90000

    Example: ldprecover round open us --epsilon 1 --items us.txt --read-access key --retention none

    Example: ldprecover round open buy --epsilon 1 --items buy.csv --column sku --encoding cp1252
    """
    _check_sources(item, items, dataset, column, domain_size)
    if dataset is not None:
        from ldprecover_client import load_dataset

        data = load_dataset(dataset, column, encoding=encoding, as_is=as_is, least=least)
        labels: list[str] | None = list(data.items)
        if data.name != dataset:
            note(f"Items from {data.source}.")
    else:
        labels = _labels(item, items, column, encoding, as_is)
    if labels and not item:  # from a file, which may be misread
        note_items(labels)
    own = method_options(parameter, "--parameter", "hash_range=4")
    for field in own.keys() & open_round.__annotations__:
        raise UsageError(f"--parameter takes what one protocol has, as hash_range, not {field}")
    if chosen := protocol == AUTO:
        for name_of_one in own:
            raise UsageError(
                f"{name_of_one} is a parameter of one protocol: name that with --protocol"
            )
        d = len(labels) if labels is not None else domain_size or 0
        protocol = best_protocol(d, epsilon, users or _USERS, stored=retention == "forever")
    elif users is not None:
        raise UsageError("--users needs --protocol auto")
    if users is not None:
        from ldprecover.planning import accuracy

        note(str(accuracy(len(labels or range(domain_size or 0)), epsilon, users, [protocol])))
    from ldprecover_client.ledger import MAX_TOTAL_EPSILON
    from ldprecover_client.reporter import MAX_EPSILON

    if MAX_EPSILON < epsilon <= 10:  # the server rejects more
        note(f"Surveys send no report above epsilon {MAX_EPSILON:g}, other clients if told to.")
    if labels and not (item or yes or json):
        confirm_opening()
    with connected(url, key) as client:
        opened = client.open_round(
            name=name,
            series=series,
            closes_at=closing_time(closes),
            question=question,
            title=title,
            thanks=thanks,
            language=language,
            protocol=protocol,
            epsilon=epsilon,
            items=labels,
            domain_size=domain_size,
            **own,
            access=access,
            read_access=read_access,
            retention=retention,
        )
    if json:
        print_json(opened)
        return
    name = plain(opened.name)
    why = f" (the best for {counted(users or _USERS, 'user')})" if chosen else ""
    answer = f"ldprecover send value VALUE {name}{_ACCESS_OPTIONS[opened.access]}"
    if epsilon > MAX_EPSILON:
        answer += f" --max-epsilon {epsilon:g}"
    if epsilon > MAX_TOTAL_EPSILON:
        answer += f" --max-total-epsilon {epsilon:g}"
    lines = [f"{name} is open: {len(opened.items):,} items, {protocol}{why}, epsilon {epsilon:g}."]
    if opened.question:
        lines.append(f"Question: {plain(opened.question)}")
    if opened.access != "key" and epsilon <= MAX_EPSILON:
        lines.append(f"Survey: {client.url}/page/survey.html?round={name}")
    lines += [
        f"To answer it: {answer}",
        f"To see its results: ldprecover result frequencies {name}",
    ]
    console().print("\n".join(lines), soft_wrap=True)


def best_protocol(d: int, epsilon: float, users: int, *, stored: bool = True) -> str:
    """Return the best protocol for d items, and for reports that are `stored` or not.

    Raises ParameterError, and UsageError for d < 2.
    """
    from ldprecover.planning.choosing import choose

    if d < 2:
        raise UsageError(f"give at least two items, not {d}")
    choice = choose(d, epsilon, users)
    return (choice.best_if_stored if stored else choice.best).oracle.protocol


def _check_sources(
    item: list[str] | None,
    items: Path | None,
    dataset: str | None,
    column: str | None,
    domain_size: int | None,
) -> None:
    """Raise UsageError unless there is one source of items."""
    sources = [
        option for option in (item or None, items, dataset, domain_size) if option is not None
    ]
    if len(sources) != 1:
        raise UsageError("give the items by one of --item, --items, --dataset and --domain-size")
    if column is not None and dataset is None and items is None:
        raise UsageError("--column belongs to --items or --dataset")


def _labels(
    item: list[str] | None, items: Path | None, column: str | None, encoding: str, as_is: bool
) -> list[str] | None:
    """Return the labels of --item or of the file; None for a domain size."""
    if items is not None:
        from ldprecover_client import load_items

        if not items.exists():
            raise UsageError(f"there is no file {items}: name single items by --item, once each")
        return list(load_items(items, column, encoding=encoding, as_is=as_is))
    from ldprecover.rounds.parameters import labels_fault

    if item and (fault := labels_fault(item)):
        raise UsageError(f"--item: {fault}")
    return item
