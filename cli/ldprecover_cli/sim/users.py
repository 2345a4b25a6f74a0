"""`sim users`: many simulated genuine users."""

from pathlib import Path
from typing import Any

from ldprecover_cli.errors import UsageError
from ldprecover_cli.options import (
    CURRENT,
    DEFAULT_URL,
    Column,
    DatasetName,
    Json,
    Key,
    RoundArgument,
    Url,
    titled,
)
from ldprecover_cli.output import console, counted, print_json
from ldprecover_cli.sim.runs import (
    Resume,
    RunSeed,
    Users,
    Wait,
    chosen_seed,
    interrupted,
    new_journal,
    sending,
)
from ldprecover_cli.sim.ticket_files import (
    Tickets,
    check_access,
    check_enough,
    fingerprint,
    read_tickets,
)


def users(
    round: RoundArgument = CURRENT,
    *,
    users: Users = None,
    dataset: DatasetName = None,
    column: Column = None,
    tickets: Tickets = None,
    seed: RunSeed = None,
    wait: Wait = False,
    resume: Resume = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Send the reports of simulated, honest users.

    Their values follow a data set. Without one, every item is equally likely.

    Example: ldprecover sim users cities --dataset cities --users 100000

    Example: ldprecover sim users members --tickets tickets.txt

    Example: ldprecover sim users --resume --wait
    """
    from ldprecover_client import Population, load_dataset

    options: dict[str, Any] = {
        "users": users,
        "dataset": dataset,
        "column": column,
        "tickets": tickets,
        "seed": seed,
    }
    if resume:
        journal, ticket_list, url = interrupted("users", round, url, options)
    elif users is None and tickets is None:
        raise UsageError(
            "give the number of genuine users with --users, or --resume an interrupted run"
        )
    elif column is not None and dataset is None:
        raise UsageError("--column belongs to --dataset")
    else:
        ticket_list = read_tickets(tickets)
        n = len(ticket_list or ()) if users is None else users
        check_enough(ticket_list, n)
        options |= {
            "users": n,
            "dataset": _absolute(dataset),
            "tickets": fingerprint(tickets, ticket_list),
            "seed": chosen_seed(seed),
        }
        journal = new_journal("users", round, options)
    options = journal.facts["options"]
    with sending(journal, url, key=key, tickets=ticket_list, wait=wait) as (client, delivery):
        target = client.parameters(journal.facts["round"])
        check_access(target, ticket_list)
        journal.facts |= {"url": client.url, "round": target.id, "name": target.name}
        n, seed = options["users"], options["seed"]
        if options["dataset"] is not None:
            population = Population.of(load_dataset(options["dataset"], options["column"]), n, seed)
        else:
            parameters = target.parameters
            items = len(parameters.items) - len(parameters.canaries)
            population = Population([1] * items, n, seed)
        accepted = population.report_to(
            url, target.id, progress=None if json else "bar", **delivery
        )
    if json:
        counts = population.counts.tolist()
        print_json({"round": target.id, "accepted": accepted, "seed": seed, "true_counts": counts})
    else:
        title = titled(target.name, round)
        console().print(f"{counted(accepted, 'genuine user')} reported to {title}.")
        console().print(f"To repeat the same reports: --seed {seed}")


def _absolute(dataset: str | None) -> str | None:
    """Return a data set by a name that is valid in any working directory."""
    from ldprecover_client import DATASETS

    return dataset if dataset is None or dataset in DATASETS else str(Path(dataset).absolute())
