"""`report`, `simulate` and `attack`: one user's report, many genuine ones, many malicious ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldprecover_cli.attackers import draw_targets, malicious_users, search_budget
from ldprecover_cli.failures import CommandError, UsageError, check_items
from ldprecover_cli.options import (
    DEFAULT_URL,
    AttackName,
    Column,
    DatasetName,
    Json,
    Key,
    Model,
    RoundOption,
    Seed,
    Url,
    connected,
    quick_retries,
)
from ldprecover_cli.output import console, counted, plain, print_json

if TYPE_CHECKING:
    from ldprecover_client import Receipt

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(report)
    app.command()(simulate)
    app.command()(attack)


def report(
    value: Annotated[
        str | None, typer.Argument(help="The item you hold, as the round calls it.", metavar="VALUE")
    ] = None,
    *,
    round: RoundOption = "current",
    resume: Annotated[
        bool, typer.Option("--resume", help="Send again what was never answered; needs no VALUE.")
    ] = False,
    max_epsilon: Annotated[float | None, typer.Option(help="Refuse a round that asks for more; 2 when absent.")] = None,
    max_total_epsilon: Annotated[
        float | None, typer.Option(help="Refuse when all rounds together would take more; 4 when absent.")
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(help="Where your reports are written down; in your state directory when absent.", metavar="FILE"),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(envvar="LDPRECOVER_KEY", help="A report key, where the round wants one.", metavar="KEY"),
    ] = None,
    ticket: Annotated[str | None, typer.Option(help="A ticket, where the round wants one.", metavar="TICKET")] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Report one value as one real user.

    It is perturbed here, once, and only the perturbed report leaves this machine.

    Example: ldprecover report "Denver, CO" --round cities
    """
    from ldprecover_client import Ledger, Reporter, UnansweredError, UnknownItemError

    if (value is None) is not resume:
        raise UsageError("give the value to report, or --resume to send again what was never answered; not both")
    limits: dict[str, Any] = {} if max_epsilon is None else {"max_epsilon": max_epsilon}
    totals: dict[str, Any] = {} if max_total_epsilon is None else {"max_total_epsilon": max_total_epsilon}
    access: dict[str, Any] = {"key": key, "ticket": ticket}
    reporter = Reporter(url, round, ledger=Ledger(ledger, **totals), retries=quick_retries(), **access, **limits)
    if value is None:
        receipts = reporter.resume()
        _show_resumed(receipts, json=json)
        if any(receipt.state != "accepted" for receipt in receipts):
            raise CommandError("not every report was accepted")
        return
    with connected(url, round=round) as server:
        try:
            receipt = reporter.report(value)
        except UnknownItemError:
            check_items([value], server.parameters(round).parameters.items)
            raise
        except UnansweredError as error:
            if not reporter.ledger.pending():
                raise
            raise CommandError(
                f"{error}; the report is written down, and `ldprecover report --resume` sends it again"
            ) from error
    if json:
        print_json(_fields(receipt))
        return
    again = " It was made before and sent again: the value given now was not used." if receipt.resent else ""
    console().print(
        f"Accepted by round {plain(receipt.round_id)}: one perturbed report at epsilon {receipt.epsilon:g}.{again} "
        f"Your ledger has spent {reporter.ledger.spent:g} in all."
    )


def simulate(
    *,
    users: Annotated[int, typer.Option(min=1, help="Number of genuine users, n.")],
    dataset: DatasetName = None,
    column: Column = None,
    seed: Seed = 0,
    round: RoundOption = "current",
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Have simulated genuine users report.

    Their values follow a data set; without one all items are as likely.

    Example: ldprecover simulate --round cities --dataset cities --users 100000
    """
    from ldprecover_client import Population, load_dataset

    with connected(url, key, round=round) as server:
        found = server.parameters(round)
        if dataset is not None:
            population = Population.of(load_dataset(dataset, column), users, seed)
        elif column is not None:
            raise UsageError("--column belongs to --dataset")
        else:
            population = Population([1] * len(found.parameters.items), users, seed)
        accepted = population.report_to(url, found.id, key=key, retries=quick_retries())
    if json:
        counts = population.counts.tolist()
        print_json({"round": found.id, "accepted": accepted, "seed": seed, "true_counts": counts})
    else:
        console().print(f"{counted(accepted, 'genuine user')} reported to {plain(found.name)}.")


def attack(
    name: Annotated[
        AttackName, typer.Argument(help="mga raises targets; manip and aa distort everything.", metavar="ATTACK")
    ] = "mga",
    *,
    users: Annotated[int | None, typer.Option(min=1, help="Number of malicious users, m.")] = None,
    beta: Annotated[
        float | None, typer.Option(help="Their share m/(n+m) instead, of the n reports already in the round.")
    ] = None,
    target: Annotated[list[str] | None, typer.Option(help="mga: an item to raise; give it once for each.")] = None,
    targets: Annotated[
        int | None, typer.Option(min=1, help="mga: this many items instead, drawn with the seed.")
    ] = None,
    model: Annotated[
        Model | None, typer.Option(help="How a report is made: as strong as it can be, or the paper's encoded item.")
    ] = None,
    search: Annotated[
        str | None, typer.Option(help="mga on olh: seeds each user tries, or exhaustive; 1000 when absent.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="aa: diffuse or peaked.")] = None,
    size: Annotated[int | None, typer.Option(help="manip, and aa when peaked: number of items.")] = None,
    input_poisoning: Annotated[
        bool, typer.Option("--input-poisoning", help="Perturb the attack's items honestly.")
    ] = False,
    attackers: Annotated[
        int, typer.Option(help="Attackers that share the malicious users, each with its own plan.")
    ] = 1,
    seed: Seed = 0,
    round: RoundOption = "current",
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Have malicious users send crafted reports, through the same door as everyone.

    For testing your own rounds.

    Example: ldprecover attack mga --beta 0.05 --target "Denver, CO" --target "Reno, NV"

    Example: ldprecover attack manip --users 5000 --input-poisoning
    """
    from ldprecover_attacker import Campaign, make_attack

    if (users is None) is (beta is None):
        raise UsageError("say how many malicious users there are, with --users or with --beta")
    with connected(url, key, round=round) as server:
        status = server.round(round)
        labels = status.parameters.items
        if target and targets is not None:
            raise UsageError("give either --target or --targets")
        if target:
            check_items(target, labels)
        elif targets is not None:
            target = [labels[i] for i in draw_targets(len(labels), targets, seed)]
        plan = make_attack(
            name,
            targets=target or None,
            model=model,
            search=search_budget(search),
            kind=kind,
            size=size,
            input_poisoning=input_poisoning,
            attackers=attackers,
        )
        m = users if users is not None else malicious_users(status.n, beta or 0.0)
        sent = Campaign(url, status.id, plan, m, seed, key=key, retries=quick_retries()).run(progress="bar")
    if json:
        print_json(
            {
                "round": status.id,
                "accepted": sent.accepted,
                "attack": name,
                "targets": target or None,
                "beta": sent.accepted / (status.n + sent.accepted) if sent.accepted else 0.0,
                "seed": seed,
            }
        )
        return
    raised = f" to raise: {'; '.join(map(plain, target))}" if target else ""
    console().print(f"{counted(sent.accepted, 'malicious user')} reported to {plain(status.name)}{raised}")


def _fields(receipt: "Receipt") -> dict[str, Any]:
    return {
        "round": receipt.round_id,
        "epsilon": receipt.epsilon,
        "state": receipt.state,
        "resent": receipt.resent,
        "duplicate": receipt.duplicate,
        "reason": receipt.reason,
    }


def _show_resumed(receipts: Sequence["Receipt"], *, json: bool) -> None:
    if json:
        print_json({"resent": [_fields(receipt) for receipt in receipts]})
        return
    if not receipts:
        console().print("Every report in the ledger has its answer.")
    for receipt in receipts:
        reason = f": {receipt.reason}" if receipt.reason else ""
        console().print(plain(f"{receipt.state} by round {receipt.round_id}{reason}"))
