"""`simulate` and `attack`: many genuine users, and many malicious ones."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ldprecover_cli.attackers import draw_targets, malicious_users, search_budget
from ldprecover_cli.failures import UsageError, check_items
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
    from ldprecover_client import Round

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(simulate)
    app.command()(attack)


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

    with connected(url, key, round=round) as client:
        found = client.parameters(round)
        _check_access(found)
        if dataset is not None:
            population = Population.of(load_dataset(dataset, column), users, seed)
        elif column is not None:
            raise UsageError("--column belongs to --dataset")
        else:
            population = Population([1] * len(found.parameters.items), users, seed)
        shown: Literal["bar"] | None = None if json else "bar"
        accepted = population.report_to(url, found.id, key=key, progress=shown, retries=quick_retries())
    if json:
        counts = population.counts.tolist()
        print_json({"round": found.id, "accepted": accepted, "seed": seed, "true_counts": counts})
    else:
        console().print(f"{counted(accepted, 'genuine user')} reported to {plain(found.name)}.")


def attack(
    name: Annotated[
        AttackName,
        typer.Argument(
            help="mga, mga-a, apa, apa2 and ria raise targets; aa, manip, mla and rpa distort everything.",
            metavar="ATTACK",
        ),
    ] = "mga",
    *,
    users: Annotated[int | None, typer.Option(min=1, help="Number of malicious users, m.")] = None,
    beta: Annotated[
        float | None, typer.Option(help="Their share m/(n+m) instead, of the n reports already in the round.")
    ] = None,
    target: Annotated[list[str] | None, typer.Option(help="An item to raise; give it once for each.")] = None,
    targets: Annotated[
        int | None, typer.Option(min=1, help="Raise this many items instead, drawn with the seed.")
    ] = None,
    model: Annotated[
        Model | None,
        typer.Option(help="aa, manip, mga: a report as strong as it can be, or the paper's encoded item."),
    ] = None,
    search: Annotated[
        str | None, typer.Option(help="On olh: seeds each user tries; for mga also exhaustive. 1000 when absent.")
    ] = None,
    each: Annotated[int | None, typer.Option(help="mga-a, apa: targets that each user promotes.")] = None,
    rate: Annotated[float | None, typer.Option(help="apa2: chance that a user promotes a target, 0 to 1.")] = None,
    item: Annotated[str | None, typer.Option(help="mla on grr: the item all claim.")] = None,
    against: Annotated[str | None, typer.Option(help="mla: how estimates are used, raw or projected.")] = None,
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
    from ldprecover_attacker import Campaign, attack_options, make_attack

    if (users is None) is (beta is None):
        raise UsageError("say how many malicious users there are, with --users or with --beta")
    with connected(url, key, round=round) as client:
        status = client.round(round)
        _check_access(status)
        labels = status.parameters.items
        if target and targets is not None:
            raise UsageError("give either --target or --targets")
        if target:
            check_items(target, labels)
        if item is not None:
            check_items([item], labels)
        if targets is not None:
            target = [labels[i] for i in draw_targets(len(labels), targets, seed)]
        elif not target and attack_options(name).get("targets"):
            raise UsageError(f"{name} needs targets: name them with --target, or say how many with --targets")
        plan = make_attack(
            name,
            targets=target or None,
            model=model,
            search=search_budget(search),
            kind=kind,
            size=size,
            each=each,
            rate=rate,
            item=item,
            against=against,
            input_poisoning=input_poisoning,
            attackers=attackers,
        )
        m = users if users is not None else malicious_users(status.n, beta or 0.0)
        if not m:
            raise UsageError(
                f"a beta of {beta:g} is no malicious user for {counted(status.n, 'report')}, which {status.name} has: "
                "raise it, say how many with --users, or have genuine users report first"
            )
        campaign = Campaign(url, status.id, plan, m, seed, key=key, retries=quick_retries())
        sent = campaign.run(progress=None if json else "bar")
    if json:
        print_json(
            {
                "round": status.id,
                "accepted": sent.accepted,
                "attack": name,
                "targets": target or None,
                "beta": sent.accepted / (status.n + sent.accepted),
                "seed": seed,
            }
        )
        return
    raised = f" to raise {'; '.join(map(plain, target))}" if target else ""
    console().print(f"{counted(sent.accepted, 'malicious user')} reported to {plain(status.name)}{raised}.")


def _check_access(round_: "Round") -> None:
    """Raise UsageError for a round that takes tickets: these users have none."""
    if round_.access == "ticket":
        raise UsageError(
            f"{round_.name} takes reports with tickets alone, and simulated users have none: open a round with "
            "--access open or --access key"
        )
