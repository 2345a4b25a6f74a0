"""`sim attack`: many simulated malicious users."""

from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from typer import Argument, Option

from ldprecover.sentences import counted
from ldprecover_cli import completion
from ldprecover_cli.errors import UsageError, check_items, close_to
from ldprecover_cli.option_values import values_by_name
from ldprecover_cli.options import CURRENT, DEFAULT_URL, Json, Key, RoundArgument, Url
from ldprecover_cli.output import joined
from ldprecover_cli.sim.runs import RunSeed, Users, Wait, run_secret, sending
from ldprecover_cli.sim.ticket_files import Tickets, check_enough, read_tickets

if TYPE_CHECKING:
    from ldprecover_client import RoundStatus

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
    round: RoundArgument = CURRENT,
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

    They go in as any user's reports do.

    Example: ldprecover sim attack mga cities --beta 0.05 --target "Denver, CO" --target "Reno, NV"

    Example: ldprecover sim attack manip cities --users 5000 --input-poisoning

    Example: ldprecover sim attack aa cities --set kind=peaked --set size=3

    Example: ldprecover sim attack mga members --targets 3 --tickets stolen.txt
    """
    from ldprecover_attacker import Campaign, attack_options, make_attack
    from ldprecover_attacker.campaign import round_knowledge

    options = _parameters(name, parameters)
    if users is not None and beta is not None:
        raise UsageError("give either --users or --beta")
    ticket_list = read_tickets(tickets)
    if users is None and beta is None and ticket_list is not None:
        users = len(ticket_list)
    with sending(round, url, key=key, tickets=ticket_list, wait=wait, seed=seed) as run:
        status = run.round
        m = _share(_BETA if beta is None else beta, status) if users is None else users
        check_enough(ticket_list, m)
        if isinstance(item := options.get("item"), str):
            check_items([item], status.parameters.items, status.name)
        labels = _targets(name, target, targets, status, run.seed)
        options |= {"targets": labels, "input_poisoning": input_poisoning, "attackers": attackers}
        secret = run_secret(run.seed, "sim attack", status.id, {"attack": name, **options})
        knows = "share" in attack_options(name) and not input_poisoning and status.n
        knowledge = round_knowledge(run.client, status, m) if knows else {}
        attack = make_attack(name, **knowledge | options)
        # A share of the reports is another number after a part of the run was sent.
        run.print_repeat_options(users=m if users is None else None)
        campaign = Campaign(run.client, status, attack, m, run.seed, secret=secret, **run.delivery)
        sent = campaign.run(progress=None if json else "bar")
    beta = sent.accepted / (status.n + sent.accepted - sent.duplicates)
    fields = {"attack": name, "targets": labels, "beta": beta} if json else None
    purpose = f" to raise {joined(labels)}" if labels else ""
    run.print_sent(sent, "malicious user", purpose, fields)


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


def _share(beta: float, status: "RoundStatus") -> int:
    """Return the number of malicious users for a share of all. Raises UsageError if it is 0."""
    from ldprecover_experiments.simulation.parameters import malicious_users

    m = malicious_users(status.n, beta)
    if not m:
        raise UsageError(
            f"--beta {beta:g} of the {counted(status.n, 'report')} of {status.name} is less than "
            "one malicious user: raise it, give --users, or have genuine users report first"
        )
    return m
