"""`result alarms`: tests for reports that honest users do not send."""

from typing import Annotated

from typer import Option

from ldprecover.sentences import counted
from ldprecover_cli.options import (
    CURRENT,
    DEFAULT_URL,
    Canaries,
    Json,
    Key,
    RoundArgument,
    Url,
    connected_to,
)
from ldprecover_cli.output import console, plain_table, print_json


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
    note = "" if result.reports_read else "; without tests that need all reports stored"
    out.print(f"{target.title}: {counted(result.n, 'report')}{note}")
    raised = sum(alarm.raised for alarm in result.alarms)
    tests = counted(len(result.alarms), "alarm")
    if raised:
        out.print(f"{raised} of {tests} raised: there are reports that honest users do not send.")
    else:
        out.print(f"None of {tests} raised. That proves nothing: an attack can look honest.")
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
