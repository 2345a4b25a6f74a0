"""`result alarms`: tests for reports that honest users do not send."""

from typing import Annotated

from typer import Option

from ldprecover_cli.connection import connected_to
from ldprecover_cli.options import CURRENT, DEFAULT_URL, Canaries, Json, Key, RoundArgument, Url
from ldprecover_cli.output import console, plain, plain_table, print_json


def alarms(
    round: RoundArgument = CURRENT,
    *,
    rate: Annotated[
        float, Option(help="False-alarm rate of each test, from 1e-9 to below 0.5.")
    ] = 1e-3,
    canary: Canaries = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Test a round for an attack: for reports that honest users do not send.

    Silence proves nothing: users who perturb a false value honestly raise no alarm.

    Example: ldprecover result alarms cities --rate 0.0001
    """
    with connected_to(round, url, key) as (client, target):
        result = client.alarms(target.reference, rate=rate, canaries=canary or ())
    if json:
        print_json(result)
        return
    out = console()
    out.print(target.title)
    for sentence in result.sentences:
        out.print(plain(sentence))
    rows = (
        (
            alarm.name,
            "RAISED" if alarm.raised else "silent",
            alarm.meaning,
            f"{alarm.statistic:.4g}",
            f"{alarm.threshold:.4g}",
        )
        for alarm in result.alarms
    )
    columns = ("alarm", "", "meaning", "statistic", "threshold")
    out.print(plain_table(*columns, rows=rows, numbers=2))
