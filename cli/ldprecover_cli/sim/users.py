"""`sim users`: many simulated genuine users."""

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
from ldprecover_cli.output import console, print_json
from ldprecover_cli.sim.runs import (
    RunSeed,
    Users,
    Wait,
    draw_seed,
    print_repeat_options,
    run_secret,
    sending,
    sent_line,
)
from ldprecover_cli.sim.ticket_files import Tickets, check_access, check_enough, read_tickets


def users(
    round: RoundArgument = CURRENT,
    *,
    users: Users = None,
    dataset: DatasetName = None,
    column: Column = None,
    tickets: Tickets = None,
    seed: RunSeed = None,
    wait: Wait = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Send the reports of simulated, honest users.

    Their values follow a data set. Without one, every item is equally likely.

    Example: ldprecover sim users cities --dataset cities --users 100000

    Example: ldprecover sim users members --tickets tickets.txt
    """
    from ldprecover_client import Population, load_dataset

    if users is None and tickets is None:
        raise UsageError("give the number of genuine users with --users")
    if column is not None and dataset is None:
        raise UsageError("--column belongs to --dataset")
    ticket_list = read_tickets(tickets)
    n = len(ticket_list or ()) if users is None else users
    check_enough(ticket_list, n)
    data = None if dataset is None else load_dataset(dataset, column)
    with sending(round, url, key=key, tickets=ticket_list, wait=wait) as (client, delivery):
        target = client.parameters(round)
        check_access(target, ticket_list)
        run_seed = draw_seed() if seed is None else seed
        if data is not None:
            counts = data.counts.tolist()
            population = Population.of(data, n, run_seed)
        else:
            counts = [1] * len(target.parameters.items)
            population = Population(counts, n, run_seed)
        print_repeat_options(
            round=target.name if round == CURRENT else None,
            seed=run_seed if seed is None else None,
        )
        sent = population.report_to(
            client,
            target,
            progress=None if json else "bar",
            secret=run_secret(run_seed, "sim users", target.id, {"counts": counts}),
            **delivery,
        )
    if json:
        print_json(
            {
                "round": target.id,
                "accepted": sent.accepted,
                "duplicates": sent.duplicates,
                "seed": str(run_seed),
                "true_counts": population.counts.tolist(),
            }
        )
    else:
        title = titled(target.name, round)
        console().print(sent_line(sent.accepted, sent.duplicates, "genuine user", title))
