"""The command `audit`."""

import re
import sys
from contextlib import ExitStack, closing
from functools import partial
from typing import Annotated, Any

import typer
from typer import Argument, Option

from ldprecover_cli.audit import child
from ldprecover_cli.audit.client import Client
from ldprecover_cli.errors import UsageError
from ldprecover_cli.options import Json
from ldprecover_cli.output import console, note, plain, print_json
from ldprecover_cli.signals import end_on_signals

_MOST_OF_HISTORY = 10_000
_QUIET = 0.5  # seconds, in which a command that has answered all writes nothing


def audit(
    command: Annotated[
        list[str],
        Argument(
            help="Command that reads a value a line and writes a report a line, after --; or "
            "module:function.",
            metavar="COMMAND",
        ),
    ],
    *,
    epsilon: Annotated[float, Option(help="Privacy budget that the client claims.")],
    value: Annotated[
        list[str] | None, Option(help="Value to report; repeat, at least twice.", metavar="TEXT")
    ] = None,
    history: Annotated[
        list[str] | None,
        Option(help="Values that one person reports, as a*26,b*26; repeat.", metavar="VALUES"),
    ] = None,
    reports: Annotated[
        int, Option(help="Reports of each value by one person, whom --epsilon is for.", min=1)
    ] = 1,
    calls: Annotated[int, Option(help="Calls in all; with histories, persons.")] = 20_000,
    error: Annotated[float, Option(help="Probability that a violation is wrong.")] = 1e-6,
    fresh: Annotated[
        bool, Option("--fresh", help="Start the client again for each person.")
    ] = False,
    reset: Annotated[
        str | None,
        Option(help="Line that makes the command forget, in place of a start.", metavar="LINE"),
    ] = None,
    protocol: Annotated[
        str | None, Option(help="Decode reports of this protocol.", metavar="NAME")
    ] = None,
    domain_size: Annotated[
        int | None, Option(help="Number of items of --protocol.", metavar="D")
    ] = None,
    json: Json = False,
) -> None:
    """Prove that a client reveals more than its epsilon, by its reports alone.

    It starts the command without a shell, with your rights, and looks for an event that is too much
    likelier for one value than for another. It can prove a violation, and never its absence. The
    exit code is 1 for a violation, 0 without one, and 3 if nothing was audited.

    Example: ldprecover audit --epsilon 1 --value a --value b -- python3 client.py

    Example: ldprecover audit --epsilon 4 --history 'a*26,b*26' --history 'a*52' --fresh my:report
    """
    from ldprecover.auditing import Audit
    from ldprecover.auditing import audit as audited
    from ldprecover.auditing.audits import expected_evidence
    from ldprecover.errors import LDPRecoverError, ParameterError
    from ldprecover.protocols import frequency_oracle
    from ldprecover_client import progress_bar

    values: list[Any] = [each if reports == 1 else [each] * reports for each in value or []]
    values += map(_history, history or [])
    if any("\n" in each or "\r" in each for each in [*(value or []), *(history or [])]):
        raise UsageError("a value must not contain a line end")
    oracle = frequency_oracle(protocol, epsilon, domain_size or len(values)) if protocol else None
    is_function = len(command) == 1 and re.fullmatch(r"[\w.]+:\w+", command[0])
    if is_function and reset is not None:
        raise UsageError("--reset is for a command: --fresh imports a function again")
    forget = reset
    if is_function:
        command, forget = [sys.executable, "-m", child.__name__, *command], child.FORGET
    with ExitStack() as stack:
        stack.enter_context(end_on_signals())
        try:
            client = stack.enter_context(closing(Client(command, forget)))
            if len(set(map(str, values))) > 1:
                reach = expected_evidence(epsilon, len(values), calls, error)
                note(f"A sound client by GRR would show about {reach:.2f} of {epsilon:g}.")
            report = partial(child.report_of, client.report) if is_function else client.report
            result = audited(
                report,
                values,
                epsilon,
                calls=calls,
                error=error,
                restart=client.restart,
                fresh=fresh or reset is not None,
                oracle=oracle,
                progress=stack.enter_context(progress_bar("calls")),
            )
            client.check_silent(_QUIET)
            if warning := client.warning():
                note(f"The client wrote on standard error, at last: {warning}")
        except ParameterError:
            raise
        except Exception as lost:  # noqa: BLE001  an error must not exit as a violation does
            reason = str(lost) if isinstance(lost, LDPRecoverError) else f"{lost!r}."
            result = Audit(audited=False, claimed=epsilon, error=error, calls=calls, note=reason)
    if json:
        print_json(result.to_dict())
    else:
        for sentence in result.sentences:
            console().print(plain(sentence), soft_wrap=True)
    if not result.audited:
        raise typer.Exit(3)
    raise typer.Exit(int(result.violation))


def _history(text: str) -> list[str]:
    """Return the values of a*26,b*26. Raises UsageError."""
    values = list[str]()
    for part in text.split(","):
        value, star, times = part.rpartition("*")
        if not star:
            value, times = part, "1"
        if not times.isdecimal() or len(values) + int(times) > _MOST_OF_HISTORY:
            raise UsageError(f"--history takes values as a*26,b*26, not {text!r}")
        values += [value] * int(times)
    return values
