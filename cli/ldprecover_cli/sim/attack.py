"""`sim attack`: many simulated malicious users."""

from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from typer import Argument, Option

from ldprecover.items import label_indices
from ldprecover.sentences import counted, percent
from ldprecover_cli import completion
from ldprecover_cli.errors import UsageError, check_items, close_to
from ldprecover_cli.option_values import values_by_name
from ldprecover_cli.options import CURRENT, DEFAULT_URL, Json, Key, RoundOrFormArgument, Url
from ldprecover_cli.output import JsonObject, console, joined, plain
from ldprecover_cli.sim.runs import RunSeed, Users, Wait, sending
from ldprecover_cli.sim.ticket_files import Tickets, check_enough, read_tickets

if TYPE_CHECKING:
    from ldprecover_attacker import Attack
    from ldprecover_client import Client, Form, RoundStatus

Beta = Annotated[
    float | None,
    Option(
        help="Instead of --users: their share m/(n+m), with n the reports already in the round; "
        "0.05 when both are absent."
    ),
]
Targets = Annotated[
    int | None,
    Option(
        min=1,
        help="Instead of --target: raise this many items, chosen with the seed; 10 when both are "
        "absent.",
    ),
]
Parameters = Annotated[
    list[str] | None,
    Option(
        "--set",
        help="A parameter of the attack, as size=3; repeat for several. A wrong name lists them.",
        metavar="NAME=VALUE",
    ),
]

# As in the paper's evaluation (VI-A).
_ATTACK = "mga"
_BETA = 0.05
_TARGETS = 10


def attack(
    name: Annotated[
        str,
        Argument(
            help="mga, mga-a, apa, apa2, cancel, mimicry and ria raise targets; joint frames them; "
            "aa, manip, mla and rpa distort everything.",
            metavar="ATTACK",
            autocompletion=completion.attacks,
        ),
    ] = _ATTACK,
    round: RoundOrFormArgument = CURRENT,
    *,
    users: Users = None,
    beta: Beta = None,
    target: Annotated[
        list[str] | None, Option(help="An item to raise; repeat for several.")
    ] = None,
    targets: Targets = None,
    parameters: Parameters = None,
    input_poisoning: Annotated[
        bool, Option("--input-poisoning", help="Perturb the attack's items honestly.")
    ] = False,
    attackers: Annotated[
        int, Option(help="Attackers who share the malicious users; each plans separately.")
    ] = 1,
    tickets: Tickets = None,
    seed: RunSeed = None,
    wait: Wait = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Attack a round of yours: send reports of simulated malicious users.

    Without tickets the users of a form share the questions that have a target, so one target puts
    all of them into one question.

    Example: ldprecover sim attack mga cities --beta 0.05 --target "Denver, CO" --target "Reno, NV"

    Example: ldprecover sim attack manip cities --users 5000 --input-poisoning

    Example: ldprecover sim attack aa cities --set kind=peaked --set size=3

    Example: ldprecover sim attack mga members --targets 3 --tickets stolen.txt

    Example: ldprecover sim attack mga usage --target macOS
    """
    from ldprecover_attacker import Campaign, FormCampaign
    from ldprecover_client import Form

    options = _parameters(name, parameters)
    if users is not None and beta is not None:
        raise UsageError("give either --users or --beta")
    ticket_list = read_tickets(tickets)
    if users is None and beta is None and ticket_list is not None:
        users = len(ticket_list)
    options |= {"input_poisoning": input_poisoning, "attackers": attackers}
    with sending(
        round, url, key=key, tickets=ticket_list, wait=wait, seed=seed, is_json=json
    ) as run:
        if isinstance(run.round, Form):
            form, chosen = run.round, _attacked(run.client, run.round, target)
        else:
            form, chosen = None, [(run.round, target)]
        rounds = [status for status, _ in chosen]
        m = _share(_BETA if beta is None else beta, run.round) if users is None else users
        check_enough(ticket_list, m)
        goals = [_targets(name, own, targets, status, run.seed) for status, own in chosen]
        # About as many answer one question: all share those attacked, or tickets assign any.
        each = m // len(form.rounds if form and ticket_list else rounds) or 1
        attacks = [
            _attack(run.client, status, name, options | {"targets": labels}, each)
            for status, labels in zip(rounds, goals, strict=True)
        ]
        plan = {"attack": name, **options, "targets": goals[0] if form is None else goals}
        delivery = run.delivery | {"secret": run.secret("sim attack", **plan)}
        # A share of the reports is another number after a part of the run was sent.
        run.print_repeat_options(users=m if users is None else None)
        if form is None:
            campaign = Campaign(run.client, rounds[0], attacks[0], m, run.seed, **delivery)
            sent = [campaign.run(run.progress)]
        else:
            by_question = {str(r.question): a for r, a in zip(rounds, attacks, strict=True)}
            of_form = FormCampaign(run.client, form, by_question, m, run.seed, **delivery)
            sent = [*of_form.run(run.progress)]
    shares = [
        receipt.accepted / (status.n + receipt.accepted - receipt.duplicates)
        for status, receipt in zip(rounds, sent, strict=True)
    ]
    purposes = [f" to raise {joined(labels)}" if labels else "" for labels in goals]
    fields: JsonObject = {"attack": name}
    if form is None:
        fields |= {"targets": goals[0], "beta": shares[0]}
        run.print_sent(sent, "malicious user", purposes[0], fields)
        return
    fields["rounds"] = [
        {"round": status.id, "accepted": receipt.accepted, "targets": labels, "beta": share}
        for status, receipt, labels, share in zip(rounds, sent, goals, shares, strict=True)
    ]
    run.print_sent(sent, "malicious user", "", fields)
    if json:
        return
    for status, purpose, share in zip(rounds, purposes, shares, strict=True):
        goal = f",{purpose}" if purpose else ""
        console().print(f"{plain(status.name)}: {percent(share)} of its reports{goal}.")


def _attacked(
    client: "Client", form: "Form", target: list[str] | None
) -> "list[tuple[RoundStatus, list[str] | None]]":
    """Return the questions of a form that have a target, with theirs; all without targets.

    Raises UsageError for a target that no question has.
    """
    rounds = [client.round(each.id) for each in form.rounds]
    if not target:
        return [(each, None) for each in rounds]
    check_items(target, [label for each in rounds for label in each.items], rounds[0].name)
    own = [[t for t in target if t in label_indices(each.items, [t])] for each in rounds]
    return [(each, labels) for each, labels in zip(rounds, own, strict=True) if labels]


def _attack(
    client: "Client", status: "RoundStatus", name: str, options: dict[str, Any], m: int
) -> "Attack":
    """Return the attack that m users send to a round, with what they know of it."""
    from ldprecover_attacker import attack_options, make_attack
    from ldprecover_attacker.campaign import round_knowledge

    if isinstance(item := options.get("item"), str):
        check_items([item], status.parameters.items, status.name)
    knows = "share" in attack_options(name) and not options["input_poisoning"] and status.n
    return make_attack(name, **(round_knowledge(client, status, m) if knows else {}) | options)


def _parameters(name: str, texts: list[str] | None) -> dict[str, Any]:
    """Return an attack's parameters of NAME=VALUE, with the types of its fields.

    Raises ParameterError for an unknown attack, and UsageError.
    """
    from pydantic import TypeAdapter, ValidationError

    from ldprecover_attacker import ATTACKS, attack_options
    from ldprecover_experiments.validation import reason

    allowed = sorted(attack_options(name).keys() - {"frequencies", "targets"})
    types = get_type_hints(ATTACKS[name])
    values: dict[str, Any] = {}
    for parameter, value in values_by_name("--set", "size=3", texts).items():
        if parameter not in allowed:
            hint = f"{close_to(parameter, allowed)} it has {', '.join(allowed) or 'none'}"
            raise UsageError(f"{name} has no parameter {parameter!r}; {hint.strip()}")
        try:
            values[parameter] = TypeAdapter(types[parameter]).validate_python(value)
        except ValidationError as error:
            raise UsageError(f"--set {parameter} {reason(error.errors()[0])}") from error
    return values


def _targets(
    name: str,
    target: list[str] | None,
    targets: int | None,
    status: "RoundStatus",
    seed: int,
) -> list[str] | None:
    """Return the labels that an attack raises; None for an attack that needs no targets.

    Raises UsageError.
    """
    from ldprecover_attacker import attack_options
    from ldprecover_experiments.simulation.parameters import draw_targets

    items = status.parameters.items
    if target and targets is not None:
        raise UsageError("give either --target or --targets")
    if target:
        check_items(target, items, status.name)
        return target
    if targets is None and not attack_options(name).get("targets"):
        return None
    number = min(_TARGETS, len(items) // 2) if targets is None else targets
    return [items[i] for i in draw_targets(len(items), max(1, number), seed)]


def _share(beta: float, status: "RoundStatus | Form") -> int:
    """Return the number of malicious users for a share of all. Raises UsageError if it is 0."""
    from ldprecover_experiments.simulation.parameters import malicious_users

    m = malicious_users(status.n, beta)
    if not m:
        raise UsageError(
            f"--beta {beta:g} of the {counted(status.n, 'report')} of {status.name} is less than "
            "one malicious user: raise it, give --users, or have genuine users report first"
        )
    return m
