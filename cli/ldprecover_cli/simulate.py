"""`simulate`: many simulated genuine users."""

from pathlib import Path
from typing import Any

import typer

from ldprecover_cli.errors import UsageError
from ldprecover_cli.options import (
    DEFAULT_URL,
    Column,
    DatasetName,
    Json,
    Key,
    RoundOption,
    Url,
    connected,
)
from ldprecover_cli.output import console, counted, plain, print_json
from ldprecover_cli.resume import (
    Resume,
    RunSeed,
    Users,
    Wait,
    drawn_seed,
    interrupted,
    new_journal,
    persistence,
    removing_journal,
    run_location,
)
from ldprecover_cli.signals import end_on_signals
from ldprecover_cli.ticket_files import (
    Tickets,
    check_access,
    check_enough,
    explain_used_tickets,
    fingerprint,
    read_again,
    read_tickets,
)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(simulate)


def simulate(
    *,
    users: Users = None,
    dataset: DatasetName = None,
    column: Column = None,
    tickets: Tickets = None,
    seed: RunSeed = None,
    wait: Wait = False,
    resume: Resume = False,
    round: RoundOption = "current",
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Send the reports of simulated genuine users.

    Their values follow a data set. Without one, every item is equally likely.

    Example: ldprecover simulate --round cities --dataset cities --users 100000

    Example: ldprecover simulate --round members --tickets tickets.txt

    Example: ldprecover simulate --resume --wait
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
        journal = interrupted("simulate", round, url, options)
        url, round = run_location(journal, url)
        ticket_list = read_again(journal.facts["options"].get("tickets"))
    elif users is None and tickets is None:
        raise UsageError(
            "give the number of genuine users with --users, or --resume an interrupted run"
        )
    elif column is not None and dataset is None:
        raise UsageError("--column belongs to --dataset")
    else:
        ticket_list = None if tickets is None else read_tickets(tickets)
        n = len(ticket_list or ()) if users is None else users
        check_enough(ticket_list, n)
        options |= {
            "users": n,
            "dataset": _absolute(dataset),
            "tickets": fingerprint(tickets, ticket_list),
            "seed": drawn_seed() if seed is None else seed,
        }
        journal = new_journal("simulate", options)
    options, retries = journal.facts["options"], persistence(wait)
    with (
        end_on_signals(),
        explain_used_tickets(ticket_list),
        connected(url, key, scope="report", round=round, retries=retries) as client,
        removing_journal(journal, "simulate"),
    ):
        target = client.parameters(round)
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
            url,
            target.id,
            key=key,
            tickets=ticket_list,
            progress=None if json else "bar",
            journal=journal,
            retries=retries,
        )
    if json:
        counts = population.counts.tolist()
        print_json({"round": target.id, "accepted": accepted, "seed": seed, "true_counts": counts})
    else:
        console().print(f"{counted(accepted, 'genuine user')} reported to {plain(target.name)}.")
        console().print(f"To repeat the same reports: --seed {seed}")


def _absolute(dataset: str | None) -> str | None:
    """Return a data set by a name that is valid in any working directory."""
    from ldprecover_client import DATASETS

    return dataset if dataset is None or dataset in DATASETS else str(Path(dataset).absolute())
