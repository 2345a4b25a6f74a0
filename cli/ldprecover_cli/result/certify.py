"""`result certify`: what a round proves, whatever malicious users sent."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ldprecover.items import isolated, label_indices, largest
from ldprecover_cli.connection import connected_to
from ldprecover_cli.errors import UsageError, check_items
from ldprecover_cli.item_tables import print_rest
from ldprecover_cli.options import CURRENT, DEFAULT_URL, Json, Key, RoundArgument, Url, Window
from ldprecover_cli.output import JsonObject, console, plain, plain_table, print_head, print_json

if TYPE_CHECKING:
    from ldprecover_interface.certificates import Certified

MaliciousShare = Annotated[
    float | None,
    Option(
        "--malicious-share",
        help="Assume that at most this share of the reports is malicious, from 0 to below 1.",
        metavar="SHARE",
    ),
]
Confidence = Annotated[
    float, Option("--confidence", help="Of all that is stated together, from 0.5 to below 1.")
]
ItemSets = Annotated[
    list[str] | None,
    Option(
        "--items",
        help="Items to ask about together, as A,B; labels that have commas as 'A;B'. Repeat for "
        "several questions.",
        metavar="ITEMS",
    ),
]
Leads = Annotated[
    list[str] | None,
    Option(
        "--ahead",
        help="Ask whether the first of two items is ahead of the second, as A,B or 'A;B'.",
        metavar="ITEMS",
    ),
]
Tops = Annotated[
    list[int] | None, Option("--top", min=1, help="Ask for the first K items.", metavar="K")
]

Means = Annotated[
    list[float] | None,
    Option(
        "--mean-above",
        help="In a round for numbers: ask whether their mean is above this number.",
        metavar="NUMBER",
    ),
]

_ROWS = 20  # items of the table


def certify(
    round: RoundArgument = CURRENT,
    *,
    malicious_share: MaliciousShare = None,
    malicious_tickets: Annotated[
        int | None,
        Option(
            min=0,
            help="For rounds of tickets: assume that malicious users hold at most this many.",
            metavar="NUMBER",
        ),
    ] = None,
    confidence: Confidence = 0.95,
    items: ItemSets = None,
    ahead: Leads = None,
    top: Tops = None,
    mean_above: Means = None,
    reports: Annotated[
        bool,
        Option(
            "--reports",
            help="Read all reports of a closed round, not only their counts: proves more of "
            "totals, leads and shares.",
        ),
    ] = False,
    window: Window = 1,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Show what a round proves, whatever malicious users sent.

    The intervals hold for every attack by at most the assumed share of the reports. A statement is
    certified if it is true for all frequencies in them.

    Example: ldprecover result certify cities --malicious-share 0.01 --top 3

    Example: ldprecover result certify cities --malicious-share 0.01 --items "Reno, NV" --reports

    Example: ldprecover result certify cities --malicious-share 0.01 --ahead "Reno, NV;Tucson, AZ"
    """
    if (malicious_share is None) is (malicious_tickets is None):
        raise UsageError(
            "give either --malicious-share or --malicious-tickets, as in --malicious-share 0.05"
        )
    with connected_to(round, url, key) as (client, target):
        round, questions = target.reference, list[JsonObject]()
        if items or ahead or top or mean_above:
            labels = client.parameters(round).parameters.items
            questions = questions_of(items, ahead, top, mean_above, labels, round)
        result = client.certify(
            round,
            malicious_share,
            malicious_tickets=malicious_tickets,
            confidence=confidence,
            questions=questions,
            reports=reports,
            window=window,
        )
    if json:
        print_json(result)
    else:
        _show(result, target.title)


def questions_of(
    items: Sequence[str] | None,
    ahead: Sequence[str] | None,
    top: Sequence[int] | None,
    mean_above: Sequence[float] | None,
    labels: Sequence[str],
    round: str | None,
) -> list[JsonObject]:
    """Return the questions of the options. Raises UsageError for an unknown label.

    `round` is the name of the round on the server; None for an export.
    """
    pairs = [_labels_in(text, labels, round) for text in ahead or ()]
    for pair in pairs:
        if len(pair) != 2:
            raise UsageError(f"--ahead takes two items, as A,B or 'A;B', not {len(pair)}")
    return [
        *({"items": _labels_in(text, labels, round)} for text in items or ()),
        *({"ahead": pair} for pair in pairs),
        *({"top": k} for k in top or ()),
        *({"mean_above": each} for each in mean_above or ()),
    ]


def _labels_in(text: str, labels: Sequence[str], round: str | None) -> list[str]:
    """Return the labels in an option: one label, or several with semicolons or commas between."""
    if text in label_indices(labels, [text]):
        return [text]
    chosen = [part.strip() for part in text.split(";" if ";" in text else ",")]
    check_items(chosen, labels, round)
    return chosen


def _show(result: "Certified", title: str) -> None:
    out = console()
    print_head(out, title, result)
    out.print(plain(result.assumption))
    lower, upper = result.lower, result.upper
    rows = (
        (isolated(result.items[i]), f"{100 * lower[i]:.2f} to {100 * upper[i]:.2f}")
        for i in largest((lower + upper) / 2, _ROWS).tolist()
    )
    out.print(plain_table("item", "percent", rows=rows, numbers=1))
    print_rest(out, len(lower) - _ROWS, "--json shows all")
    sentences = result.sentences
    for sentence in (*sentences.answers, sentences.bound, sentences.proven):
        if sentence is not None:
            out.print(plain(sentence))
