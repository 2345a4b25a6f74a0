"""`plan`: items, users, epsilon or error of a future round, and what attackers can gain."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from ldprecover.sentences import points
from ldprecover_cli import completion
from ldprecover_cli.errors import UsageError
from ldprecover_cli.options import Json
from ldprecover_cli.output import byte_size, console, plain, plain_table, print_json

if TYPE_CHECKING:
    from ldprecover.planning import Plan, PlannedRound

_SOLVED = {
    "domain_size": "the largest number of items",
    "users": "the smallest number of users",
    "epsilon": "the smallest epsilon",
    "error": "the standard error",
}

_ITEMS, _USERS = 102, 100_000  # with a lead alone, as on the page


def plan(
    *,
    domain_size: Annotated[
        list[int] | None,
        Option(help="Number of items, d; repeat for each question of a form.", metavar="D"),
    ] = None,
    users: Annotated[int | None, Option(help="Number of reports, n.", metavar="N")] = None,
    epsilon: Annotated[
        float | None, Option(help="Privacy budget of one report, 0.01 to 10.")
    ] = None,
    error: Annotated[
        float | None,
        Option(help="Standard error as a frequency: 0.005 is half a percentage point."),
    ] = None,
    protocol: Annotated[
        list[str] | None,
        Option(
            help="Plan for this protocol; repeat for several. All are compared when absent.",
            metavar="NAME",
            autocompletion=completion.protocols,
        ),
    ] = None,
    sum_of: Annotated[
        int, Option(help="Items whose estimates are added; the error is of their sum.")
    ] = 1,
    frequency: Annotated[
        float | None, Option(help="Frequency of these items together; 1/d each when absent.")
    ] = None,
    targets: Annotated[
        int | None,
        Option(help="Number of items that an attacker raises; min(10, d/2) when absent."),
    ] = None,
    beta: Annotated[
        float | None,
        Option(
            "--malicious-share",
            "--beta",
            help="Share of malicious users; 0.05 when absent.",
            metavar="SHARE",
        ),
    ] = None,
    gain: Annotated[
        float | None,
        Option(help="Instead of the share: largest gain of all targets together, as a frequency."),
    ] = None,
    lead: Annotated[
        float | None,
        Option(
            help="Lead of one item over another that must be safe from the share: 0.05 is 5 "
            "percentage points. With it --error may be absent too."
        ),
    ] = None,
    change: Annotated[
        float | None,
        Option(
            help="Rise of one item between two such rounds that must be seen: 0.03 is 3 "
            "percentage points. With it --error may be absent too."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compute the users, privacy and error of a round before you open it.

    Give all but one of --domain-size, --users, --epsilon and --error. It computes the fourth for
    every protocol, what an attacker can gain, the lead that is safe, and the least change that two
    such rounds show. It contacts no server. With --lead alone the round has 102 items and 100,000
    users. Several --domain-size are the questions of a form.

    Example: ldprecover plan --domain-size 102 --epsilon 0.5 --error 0.005

    Example: ldprecover plan --domain-size 102 --users 100000 --error 0.005 --sum-of 10 --beta 0.01

    Example: ldprecover plan --lead 0.05 --malicious-share 0.01

    Example: ldprecover plan --domain-size 6 --epsilon 1 --change 0.03

    Example: ldprecover plan --domain-size 102 --users 100000 --epsilon 1 --gain 0.01 --json

    Example: ldprecover plan --domain-size 40 --domain-size 12 --users 100000 --epsilon 1
    """
    sizes = domain_size or []
    d = sizes[0] if sizes else None
    if lead is not None and (d, users, epsilon, error) == (None,) * 4:
        d, users = _ITEMS, _USERS
    from ldprecover.planning import PlanRequest, plan_form
    from ldprecover.planning import plan as planned

    request = PlanRequest(
        domain_size=d,
        users=users,
        epsilon=epsilon,
        error=error,
        sum_of=sum_of,
        frequency=frequency,
        targets=targets,
        beta=beta,
        gain=gain,
        lead=lead,
        change=change,
    )
    if len(sizes) > 1:
        if error or frequency or gain or lead or change or protocol or sum_of > 1:
            raise UsageError(
                "several --domain-size plan a form, from --users and --epsilon, and perhaps "
                "--targets and --malicious-share"
            )
        form = plan_form(sizes, epsilon or 0.0, users or 0, beta=request.share, targets=targets)
        if json:
            print_json(asdict(form))
            return
        console().print(_rounds(form.rounds, share=False), *form.sentences, sep="\n")
        return
    result = planned(request, protocol or None)
    if json:
        print_json(result.to_dict())
    else:
        _show(result)


def _show(result: "Plan") -> None:
    out = console()
    best = result.best
    if best is not None:
        out.print(f"Computed: {_SOLVED[result.request.solved]}. The first protocol is the best.")
        feasible = [each for each in result.rounds if each.reason is None]
        out.print(_rounds(feasible, share=result.request.gain is not None))
    for sentence in result.sentences:
        out.print(plain(sentence))
    if best is not None:
        command = (
            f"ldprecover round open --protocol {best.protocol} --epsilon {best.epsilon!r} "
            f"--domain-size {best.domain_size}"
        )
        if best.retention != "forever":
            command += f" --retention {best.retention}"
        out.print(f"Open it with: {command}", soft_wrap=True)


def _rounds(feasible: "Iterable[PlannedRound]", *, share: bool) -> Any:
    """Return the table; `share` shows the malicious share in place of the gain it follows from."""
    rows = (
        (
            each.protocol,
            f"{each.domain_size:,}",
            f"{each.users:,}",
            f"{each.epsilon:.4g}",
            _points(each.standard_error),
            _points(each.margin_of_all),
            _points(each.beta if share else each.gain),
            _points(each.safe_lead),
            _points(each.attacker_success_rate),
            f"{each.report_size:,}",
            byte_size(each.stored_bytes or 0),
        )
        for each in feasible
    )
    return plain_table(
        "protocol",
        "items",
        "users",
        "epsilon",
        "error, %",
        "all, ±",
        "share" if share else "gain",
        "lead",
        "guess",
        "bytes",
        "stored",
        rows=rows,
        numbers=10,
        gap=1,  # fits into 80 columns
    )


def _points(share: float | None) -> str:
    """Return a frequency in percentage points; a dash for None."""
    return "-" if share is None else points(share)
