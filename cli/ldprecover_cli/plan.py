"""`plan`: items, users, epsilon or error of a future round, and what attackers can gain."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from ldprecover_cli import completion
from ldprecover_cli.errors import UsageError
from ldprecover_cli.options import Json
from ldprecover_cli.output import byte_size, console, plain, plain_table, print_json

if TYPE_CHECKING:
    from ldprecover.planning import FormPlan, Plan, PlannedRound

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
    json: Json = False,
) -> None:
    """Compute the users, privacy and error of a round before you open it.

    Give all but one of --domain-size, --users, --epsilon and --error. It computes the fourth for
    every protocol, the largest gain of an attacker, and the lead whose certificate the attacker
    cannot prevent. It contacts no server. With --lead alone the round has 102 items and 100,000
    users. Several --domain-size are the questions of a form, in the order of the table.

    Example: ldprecover plan --domain-size 102 --epsilon 0.5 --error 0.005

    Example: ldprecover plan --domain-size 102 --users 100000 --error 0.005 --sum-of 10 --beta 0.01

    Example: ldprecover plan --lead 0.05 --malicious-share 0.01

    Example: ldprecover plan --domain-size 102 --users 100000 --epsilon 1 --gain 0.01 --json

    Example: ldprecover plan --domain-size 40 --domain-size 12 --users 100000 --epsilon 1
    """
    sizes = domain_size or []
    d = sizes[0] if sizes else None
    if lead is not None and (d, users, epsilon, error) == (None,) * 4:
        d, users = _ITEMS, _USERS
    from ldprecover.planning import PlanRequest, plan_form
    from ldprecover.planning import plan as planned

    request = PlanRequest(d, users, epsilon, error, sum_of, frequency, targets, beta, gain, lead)
    if len(sizes) > 1:
        if error or frequency or gain or lead or protocol or sum_of > 1:
            raise UsageError(
                "several --domain-size plan a form, from --users and --epsilon, and perhaps "
                "--targets and --malicious-share"
            )
        form = plan_form(sizes, epsilon or 0.0, users or 0, beta=request.share, targets=targets)
        if json:
            print_json(asdict(form))
            return
        sentences = *map(str, form.accuracies), form_gain(form)
        console().print(_rounds(form.rounds, share=False), *sentences, sep="\n")
        return
    result = planned(request, protocol or None)
    if json:
        print_json(result.to_dict())
    else:
        _show(result)


def _show(result: "Plan") -> None:
    out = console()
    feasible = [each for each in result.rounds if each.reason is None]
    if feasible:
        out.print(f"Computed: {_SOLVED[result.request.solved]}. The first protocol is the best.")
        out.print(_rounds(feasible, share=result.request.gain is not None))
    for each in result.rounds:
        if each.reason is not None:
            out.print(f"Not with {plain(each.protocol)}: {plain(each.reason)}.")
    if not feasible:
        return
    best = feasible[0]
    out.print(str(result.accuracy), _gain(best), _safe_lead(best), _guess(best), sep="\n")
    out.print(_command(best), soft_wrap=True)


def _gain(planned: "PlannedRound") -> str:
    """Return a sentence on what malicious users add to the estimates of their targets."""
    targets = "one target" if planned.targets == 1 else f"{planned.targets} targets together"
    return (
        f"With {planned.protocol} {100 * (planned.beta or 0):.3g} % malicious users raise the "
        f"estimates of {targets} by up to {_points(planned.gain)} points."
    )


def form_gain(plan: "FormPlan") -> str:
    """Return a sentence on what malicious users gain in the worst question of a form."""
    chosen = max(plan.gains_chosen)
    i = plan.gains_chosen.index(chosen)
    return (
        f"Attackers gain most in question {i + 1}. {_gain(plan.rounds[i])[:-1]} if tickets assign "
        f"the questions. If they choose their own, it is up to {_points(chosen)} points."
    )


def _safe_lead(planned: "PlannedRound") -> str:
    """Return a sentence on the lead that is safe from the share of malicious users."""
    lead = planned.safe_lead
    least = "no lead" if lead is None else f"a lead of {100 * lead:.3g} points"
    return (
        f"With {planned.protocol} {least} is safe from {100 * (planned.beta or 0):.3g} % forged "
        "reports."
    )


def _guess(planned: "PlannedRound") -> str:
    """Return a sentence on what a report tells of its user's item."""
    return (
        f"With {planned.protocol} whoever sees one report guesses its user's item right in "
        f"{_points(planned.attacker_success_rate)} % of cases; blind, in "
        f"{_points(1 / (planned.domain_size or 1))} %."
    )


def _command(planned: "PlannedRound") -> str:
    """Return a sentence with the command that opens the planned round."""
    name = planned.protocol
    command = (
        f"ldprecover round open --protocol {name} --epsilon {planned.epsilon!r} "
        f"--domain-size {planned.domain_size}"
    )
    if planned.retention == "forever":
        return f"Open it with: {command}"
    return (
        f"The tally of {name} is the histogram of its reports, so no report need be stored. "
        f"Open it with: {command} --retention {planned.retention}"
    )


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
    """Return a frequency in percentage points with three digits; a dash for None."""
    if share is None:
        return "-"
    return f"{100 * share:,.0f}" if abs(share) >= 1 else f"{100 * share:.3g}"
