"""`round export`: a round as one file."""

from ldprecover.sentences import counted
from ldprecover_cli.connection import connected_to
from ldprecover_cli.file.export_files import write_export
from ldprecover_cli.options import CURRENT, DEFAULT_URL, Key, NewJsonFile, RoundArgument, Url
from ldprecover_cli.output import note, print_json


def export(
    round: RoundArgument = CURRENT,
    *,
    output: NewJsonFile = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Write a round's parameters, tally and checksum as one JSON file.

    `ldprecover file recompute` reads it without a server; `ldprecover file reports` writes the
    reports too.

    Example: ldprecover round export cities --output cities.json
    """
    with connected_to(round, url, key) as (client, target):
        content = client.export(target.reference)
    if output is None:
        print_json(content)
        return
    write_export(output, content)
    note(
        f"{counted(content['n'], 'report')} of {target.title} are in {output}; "
        "`ldprecover file recompute` reads it"
    )
