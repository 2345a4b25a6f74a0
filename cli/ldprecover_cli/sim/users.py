"""`sim users`: many simulated genuine users."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ldprecover.items import label_key, quoted
from ldprecover_cli.errors import UsageError
from ldprecover_cli.options import (
    CURRENT,
    DEFAULT_URL,
    AsIs,
    Column,
    DatasetName,
    Encoding,
    Json,
    Key,
    RoundOrFormArgument,
    Url,
)
from ldprecover_cli.output import note
from ldprecover_cli.sim.runs import RunSeed, Users, Wait, sending
from ldprecover_cli.sim.ticket_files import Tickets, check_enough, read_tickets
from ldprecover_cli.sim.years import Attacked, Beta, Period, Target, Weeks, play

if TYPE_CHECKING:
    from ldprecover_client import Dataset


def users(
    round: RoundOrFormArgument = CURRENT,
    *,
    users: Users = None,
    dataset: DatasetName = None,
    column: Column = None,
    encoding: Encoding = "utf-8",
    as_is: AsIs = False,
    tickets: Tickets = None,
    seed: RunSeed = None,
    wait: Wait = False,
    weeks: Weeks = None,
    period: Period = 13,
    attacked: Attacked = None,
    target: Target = None,
    beta: Beta = 0.05,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Send the reports of simulated, honest users.

    Their values follow a data set. Without one, every item is equally likely. Each user of a form
    answers one question, and has its item k with a weight of 1/k, as people of a series have.

    Example: ldprecover sim users cities --dataset cities --users 100000

    Example: ldprecover sim users members --tickets tickets.txt

    Example: ldprecover sim users usage --tickets links.csv

    Example: ldprecover sim users plotter --weeks 52 --users 10000 --attacked 20-30 --target PDF
    """
    from ldprecover_client import Form, FormPopulation, Population, load_dataset

    if users is None and tickets is None:
        raise UsageError("give the number of genuine users with --users")
    if weeks is not None:
        if users is None or dataset or tickets:
            raise UsageError("--weeks takes --users, and neither --dataset nor --tickets")
        play(
            round,
            url,
            key,
            users=users,
            weeks=weeks,
            period=period,
            attacked=attacked,
            beta=beta,
            target=target or (),
            seed=seed,
            json=json,
        )
        return
    if column is not None and dataset is None:
        raise UsageError("--column belongs to --dataset")
    ticket_list = read_tickets(tickets)
    n = len(ticket_list or ()) if users is None else users
    check_enough(ticket_list, n)
    data = None
    if dataset is not None:
        data = load_dataset(dataset, column, encoding=encoding, as_is=as_is)
    with sending(
        round, url, key=key, tickets=ticket_list, wait=wait, seed=seed, is_json=json
    ) as run:
        people: Any
        if not isinstance(run.round, Form):
            counts = _counts(run.round.parameters.items, data)
            people = Population(counts, n, seed=run.seed)
            secret = run.secret("sim users", counts=counts)
        elif data is None:
            weights = [[1 / k for k in range(1, each.domain_size + 1)] for each in run.round.rounds]
            people = FormPopulation(
                [Population(each, n, seed=run.seed + i) for i, each in enumerate(weights)]
            )
            secret = run.secret("sim users")
        else:
            raise UsageError("--dataset is for one question, and users answer a form: leave it out")
        run.print_repeat_options()
        sent = people.report_to(
            run.client, run.round, progress=run.progress, secret=secret, **run.delivery
        )
    if isinstance(people, Population):
        fields = {"true_counts": people.counts.tolist()}
        run.print_sent([sent], "genuine user", "", fields)
    else:
        run.print_sent(sent, "genuine user", "", {})


def _counts(items: Sequence[str], data: "Dataset | None") -> list[int]:
    """Return the users of the data who hold each item, or 1 for each without data."""
    if data is None:
        return [1] * len(items)
    users_by_key = dict(zip(map(label_key, data.items), data.counts.tolist(), strict=True))
    counts = [users_by_key.pop(label_key(item), 0) for item in items]
    if not any(counts):
        raise UsageError("the round's items are not those of the data set")
    if users_by_key:
        note(
            f"{sum(users_by_key.values()):,} users of the data hold no item of the round, "
            f"such as {quoted(next(iter(users_by_key)))}."
        )
    return counts
