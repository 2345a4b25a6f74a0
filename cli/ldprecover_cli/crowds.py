"""`simulate` and `attack`: many genuine users, and many malicious ones."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldprecover_cli import completion
from ldprecover_cli.errors import CommandError, UsageError, check_items
from ldprecover_cli.options import (
    DEFAULT_URL,
    AttackName,
    Column,
    DatasetName,
    Json,
    Key,
    Model,
    RoundOption,
    Url,
    connected,
    search_budget,
)
from ldprecover_cli.output import console, counted, joined, plain, print_json
from ldprecover_cli.resume import (
    Resume,
    RunSeed,
    Wait,
    drawn_seed,
    going_on,
    interrupted,
    new_journal,
    persistence,
)
from ldprecover_cli.signals import ended_by_signals
from ldprecover_cli.ticket import Tickets, enough_tickets, remembered, tickets_again, tickets_in

if TYPE_CHECKING:
    from ldprecover import RoundParameters
    from ldprecover_client import Journal, Round, RoundStatus

_REPEAT = "The same reports again: --seed {}"


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(simulate)
    app.command()(attack)


def simulate(
    *,
    users: Annotated[int | None, typer.Option(min=1, help="Number of genuine users, n.")] = None,
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
    """Have simulated genuine users report.

    Their values follow a data set; without one all items are as likely.

    Example: ldprecover simulate --round cities --dataset cities --users 100000

    Example: ldprecover simulate --round members --tickets tickets.txt

    Example: ldprecover simulate --resume --wait
    """
    from ldprecover_client import Population, load_dataset

    given: dict[str, Any] = {
        "users": users,
        "dataset": dataset,
        "column": column,
        "tickets": tickets,
        "seed": seed,
    }
    if resume:
        journal = interrupted("simulate", round, url, given)
        url, round = _place(journal, url)
        held = tickets_again(journal.facts["options"].get("tickets"))
    elif users is None and tickets is None:
        raise UsageError(
            "say how many genuine users report, with --users; or --resume an interrupted run"
        )
    elif column is not None and dataset is None:
        raise UsageError("--column belongs to --dataset")
    else:
        held = None if tickets is None else tickets_in(tickets)
        n = len(held or ()) if users is None else users
        enough_tickets(held, n)
        own = {
            "users": n,
            "dataset": _from_any_folder(dataset),
            "tickets": remembered(tickets, held),
        }
        own |= {"seed": drawn_seed() if seed is None else seed}
        journal = new_journal("simulate", given | own)
    options, retries = journal.facts["options"], persistence(wait)
    with (
        ended_by_signals(),
        _used_tickets_named(held),
        connected(url, key, scope="report", round=round, retries=retries) as client,
        going_on(journal, "simulate"),
    ):
        found = client.parameters(round)
        _check_access(found, held)
        journal.facts |= {"url": client.url, "round": found.id, "name": found.name}
        n, seed = options["users"], options["seed"]
        if options["dataset"] is not None:
            population = Population.of(load_dataset(options["dataset"], options["column"]), n, seed)
        else:
            population = Population(
                [1] * (len(found.parameters.items) - len(found.parameters.canaries)), n, seed
            )
        accepted = population.report_to(
            url,
            found.id,
            key=key,
            tickets=held,
            progress=None if json else "bar",
            journal=journal,
            retries=retries,
        )
    if json:
        counts = population.counts.tolist()
        print_json({"round": found.id, "accepted": accepted, "seed": seed, "true_counts": counts})
    else:
        console().print(f"{counted(accepted, 'genuine user')} reported to {plain(found.name)}.")
        console().print(_REPEAT.format(seed))


def attack(
    name: Annotated[
        AttackName,
        typer.Argument(
            help="mga, mga-a, apa, apa2 and ria raise targets; aa, manip, mla and rpa distort "
            "everything.",
            metavar="ATTACK",
            autocompletion=completion.attacks,
        ),
    ] = "mga",
    *,
    users: Annotated[int | None, typer.Option(min=1, help="Number of malicious users, m.")] = None,
    beta: Annotated[
        float | None,
        typer.Option(help="Their share m/(n+m) instead, of the n reports already in the round."),
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="An item to raise; give it once for each.")
    ] = None,
    targets: Annotated[
        int | None, typer.Option(min=1, help="Raise this many items instead, drawn with the seed.")
    ] = None,
    model: Annotated[
        Model | None,
        typer.Option(
            help="aa, manip, mga: a report as strong as it can be, or the paper's encoded item."
        ),
    ] = None,
    search: Annotated[
        str | None,
        typer.Option(
            help="On olh: seeds each user tries; for mga also exhaustive. 1000 when absent."
        ),
    ] = None,
    each: Annotated[
        int | None, typer.Option(help="mga-a, apa: targets that each user promotes.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="apa2: chance that a user promotes a target, 0 to 1.")
    ] = None,
    item: Annotated[str | None, typer.Option(help="mla on grr: the item all claim.")] = None,
    against: Annotated[
        str | None, typer.Option(help="mla: how estimates are used, raw or projected.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="aa: diffuse or peaked.")] = None,
    size: Annotated[
        int | None, typer.Option(help="manip, and aa when peaked: number of items.")
    ] = None,
    input_poisoning: Annotated[
        bool, typer.Option("--input-poisoning", help="Perturb the attack's items honestly.")
    ] = False,
    attackers: Annotated[
        int, typer.Option(help="Attackers that share the malicious users, each with its own plan.")
    ] = 1,
    tickets: Tickets = None,
    seed: RunSeed = None,
    wait: Wait = False,
    resume: Resume = False,
    round: RoundOption = "current",
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Have malicious users send crafted reports, through the same door as everyone.

    For testing your own rounds.

    Example: ldprecover attack mga --beta 0.05 --target "Denver, CO" --target "Reno, NV"

    Example: ldprecover attack manip --users 5000 --input-poisoning

    Example: ldprecover attack mga --round members --targets 3 --tickets stolen.txt
    """
    from ldprecover_attacker import Campaign, attack_options, make_attack

    attack_options(name)  # raises for an unknown name, before anything is asked of the server
    plan: dict[str, Any] = {
        "model": model,
        "search": search_budget(search),
        "kind": kind,
        "size": size,
        "each": each,
    }
    plan |= {"rate": rate, "item": item, "against": against, "input_poisoning": input_poisoning}
    given: dict[str, Any] = {
        "users": users,
        "beta": beta,
        "target": target,
        "targets": targets,
        "seed": seed,
        **plan,
    }
    if resume:
        if attackers != 1:
            given["attackers"] = attackers
        journal = interrupted("attack", round, url, given | {"tickets": tickets})
        url, round = _place(journal, url)
        held = tickets_again(journal.facts["options"].get("tickets"))
    elif (users is None) is (beta is None) and (tickets is None or users is not None):
        raise UsageError(
            "say how many malicious users there are, with --users or with --beta; or --resume an "
            "interrupted run"
        )
    else:
        plan |= {"attackers": attackers}
        held = None if tickets is None else tickets_in(tickets)
        if users is None and beta is None:
            users = len(held or ())
        own = {"seed": drawn_seed() if seed is None else seed, "tickets": remembered(tickets, held)}
        journal = new_journal("attack", {"name": name, "plan": plan} | own)
    options, retries = journal.facts["options"], persistence(wait)
    with (
        ended_by_signals(),
        _used_tickets_named(held),
        connected(url, key, scope="report", round=round, retries=retries) as client,
        going_on(journal, "attack"),
    ):
        status = client.round(round)
        _check_access(status, held)
        if not resume:
            options["targets"] = _targets(name, target, targets, status.parameters, options["seed"])
            if item is not None:
                check_items([item], status.parameters.items)
            options["users"] = users if users is not None else _share(beta or 0.0, status)
            enough_tickets(held, options["users"])
            journal.facts |= {
                "url": client.url,
                "round": status.id,
                "name": status.name,
                "n": status.n,
            }
        attack = make_attack(options["name"], targets=options["targets"], **options["plan"])
        campaign = Campaign(
            url,
            status.id,
            attack,
            options["users"],
            options["seed"],
            key=key,
            tickets=held,
            retries=retries,
            journal=journal,
        )
        sent = campaign.run(progress=None if json else "bar")
    _show_attack(journal, sent.accepted, json=json)


def _show_attack(journal: "Journal", accepted: int, *, json: bool) -> None:
    facts, options = journal.facts, journal.facts["options"]
    seed, raised = options["seed"], options["targets"]
    if json:
        print_json(
            {
                "round": facts["round"],
                "accepted": accepted,
                "attack": options["name"],
                "targets": raised,
                "beta": accepted / (facts["n"] + accepted),
                "seed": seed,
            }
        )
        return
    what = f" to raise {joined(raised)}" if raised else ""
    console().print(
        f"{counted(accepted, 'malicious user')} reported to {plain(facts['name'])}{what}."
    )
    console().print(_REPEAT.format(seed))


def _targets(
    name: str,
    target: list[str] | None,
    targets: int | None,
    parameters: "RoundParameters",
    seed: int,
) -> list[str] | None:
    """Return the labels that an attack raises, None for one without targets: none is drawn that is
    a canary.

    Raises UsageError.
    """
    from ldprecover_attacker import attack_options
    from ldprecover_experiments.parameters import draw_targets

    if target and targets is not None:
        raise UsageError("give either --target or --targets")
    if target:
        check_items(target, parameters.items)
        return target
    if targets is not None:
        held = [label for i, label in enumerate(parameters.items) if i not in parameters.canaries]
        return [held[i] for i in draw_targets(len(held), targets, seed)]
    if attack_options(name).get("targets"):
        raise UsageError(
            f"{name} needs targets: name them with --target, or say how many with --targets"
        )
    return None


def _share(beta: float, status: "RoundStatus") -> int:
    """Return the malicious users that are this share of all. Raises UsageError for none."""
    from ldprecover_experiments.parameters import malicious_users

    m = malicious_users(status.n, beta)
    if not m:
        raise UsageError(
            f"a beta of {beta:g} means no malicious user among {counted(status.n, 'report')}, "
            f"which {status.name} has: "
            "raise it, say how many with --users, or have genuine users report first"
        )
    return m


def _place(journal: "Journal", url: str) -> tuple[str, str]:
    """Return where an interrupted run goes on: its own round, on its own server unless another URL
    is given.
    """
    return journal.facts["url"] if url == DEFAULT_URL else url, journal.facts["round"]


def _from_any_folder(dataset: str | None) -> str | None:
    """Return a data set so that it is found again from another folder."""
    from ldprecover_client import DATASETS

    return dataset if dataset is None or dataset in DATASETS else str(Path(dataset).absolute())


def _check_access(round_: "Round", tickets: tuple[str, ...] | None) -> None:
    """Raise UsageError for a round of tickets without any, and for tickets that a round does not
    take.
    """
    if round_.access == "ticket" and tickets is None:
        raise UsageError(
            f"{round_.name} takes reports with tickets alone: `ldprecover ticket mint "
            f"{round_.name} --count N > FILE` "
            "makes some, and --tickets FILE sends one report under each"
        )
    if round_.access != "ticket" and tickets is not None:
        raise UsageError(f"{round_.name} takes no tickets: leave out --tickets")


@contextmanager
def _used_tickets_named(tickets: tuple[str, ...] | None) -> Iterator[None]:
    """Have the error of a key that came before say that it is a ticket."""
    from ldprecover_client import RefusedError

    try:
        yield
    except RefusedError as error:
        if tickets is None or error.slug != "idempotency-key-reused":
            raise
        raise CommandError(
            "a ticket of the file has admitted another report: give tickets that nobody has used"
        ) from error
