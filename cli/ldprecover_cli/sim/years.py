"""`sim users --weeks`: simulated people answer a series in rotation, round after round."""

import re
import secrets
from collections.abc import Sequence
from typing import Annotated, Any

from typer import Option

from ldprecover.items import label_indices
from ldprecover.sentences import counted
from ldprecover_cli.connection import connected
from ldprecover_cli.errors import UsageError, check_items
from ldprecover_cli.output import console, plain, print_json
from ldprecover_cli.signals import end_on_signals

Weeks = Annotated[
    int | None,
    Option(
        min=1,
        max=520,
        help="Play a series: open this many rounds one after the other, for people who answer once "
        "a period, change, leave and come. Another run plays more rounds. Takes an admin key.",
    ),
]
Period = Annotated[int, Option(min=1, help="With --weeks: the rounds of a person's period.")]
Attacked = Annotated[
    str | None,
    Option(
        help="With --weeks: the first and last round in which malicious users raise each --target.",
        metavar="20-30",
    ),
]
Beta = Annotated[float, Option(help="With --attacked: the share of malicious users.")]
Target = Annotated[
    list[str] | None, Option(help="With --attacked: an item to raise; repeat for several.")
]


def play(
    series: str,
    url: str,
    key: str | None,
    *,
    users: int,
    weeks: int,
    period: int,
    attacked: str | None,
    beta: float,
    target: Sequence[str],
    seed: int | None,
    json: bool,
) -> None:
    """Play rounds of a series: the open one, or the next, and those after it. Raises UsageError."""
    import numpy as np

    from ldprecover_attacker import MGA
    from ldprecover_client import Form, Panel, progress_bar, submit_reports
    from ldprecover_client.ledger import MAX_TOTAL_EPSILON
    from ldprecover_experiments.simulation.parameters import malicious_users

    first, last = _range(attacked, target)
    seed = secrets.randbits(62) if seed is None else seed
    rng = np.random.default_rng(seed)
    panels: list[Any] = []
    sent = {"genuine": 0, "malicious": 0}
    with end_on_signals(), connected(url, key) as client, progress_bar("rounds") as progress:
        state = client.series(series)
        number, is_open = state.number, state.current is not None
        if is_open:
            entry = state.entries[0]
            opened = client.form(entry.id) if state.forms else client.round(entry.id)
        for week in range(1, weeks + 1):
            if week > 1 or not is_open:
                number += 1
                opened = client.next(series, number)
            ids = [each.id for each in opened.rounds] if isinstance(opened, Form) else [opened.id]
            rounds = [client.parameters(id) for id in ids]
            if not panels:
                check_items(
                    target, [label for each in rounds for label in each.parameters.items], None
                )
                for i, each in enumerate(rounds):
                    weights = 1 / np.arange(1, len(each.parameters.items) + 1)
                    limit = max(1, int(MAX_TOTAL_EPSILON / each.parameters.epsilon))
                    people = Panel(
                        weights,
                        max(1, users // len(rounds)),
                        period=period,
                        limit=limit,
                        seed=seed + i,
                    )
                    panels.append(people.rounds(weeks))
            for each, panel in zip(rounds, panels, strict=True):
                oracle, values = each.parameters.oracle, next(panel).values
                reports = oracle.perturb(values, rng)
                items = each.parameters.items
                indices = [label_indices(items, [label]).get(label) for label in target]
                targets = [index for index in indices if index is not None]
                m = malicious_users(len(values), beta) if targets and first <= week <= last else 0
                if m:
                    reports = np.concatenate([reports, MGA(targets).reports(oracle, m, rng)])
                submit_reports(client, each.id, rng.permutation(reports), oracle=oracle)
                sent["genuine"] += len(values)
                sent["malicious"] += m
            progress(week, weeks)
    if json:
        print_json({"series": series, "number": number, **sent, "seed": str(seed)})
        return
    console().print(
        f"{counted(weeks, 'round')} of {plain(series)}: {counted(sent['genuine'], 'answer')} of "
        f"{users:,} people, {counted(sent['malicious'], 'malicious report')}; seed {seed}."
    )


def _range(attacked: str | None, target: Sequence[str]) -> tuple[int, int]:
    """Return the first and last attacked round; (0, 0) for none. Raises UsageError."""
    if bool(target) != bool(attacked):
        raise UsageError("--attacked and --target belong together")
    match = re.fullmatch(r"(\d{1,3})(?:-(\d{1,3}))?", attacked or "0")
    if not match or int(match[1]) > int(match[2] or match[1]):
        raise UsageError(f"--attacked takes the first and last round, as 20-30, not {attacked!r}")
    return int(match[1]), int(match[2] or match[1])
