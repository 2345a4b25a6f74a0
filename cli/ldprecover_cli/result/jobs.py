"""Jobs of a server: the options of the commands that start one, and wait for its result."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ldprecover_cli.errors import UsageError
from ldprecover_cli.output import JsonObject, console, plain, print_json

if TYPE_CHECKING:
    from ldprecover_client import Client, Job

Background = Annotated[
    bool,
    Option("--background", help="Start a job on the server, and print how to fetch its result."),
]
JobId = Annotated[
    str | None,
    Option("--job", help="Wait for a job that was started with --background.", metavar="JOB"),
]

_COMMANDS = {"recovery": "recover", "certificate": "certify"}
"""The command of the group `result` that waits for a job, by its analysis."""


def check_job_options(background: bool, job: str | None) -> None:
    """Raise UsageError for contradictory options."""
    if background and job is not None:
        raise UsageError("give either --background or --job")


def wait_for_job(client: "Client", round: str, id: str, analysis: str) -> JsonObject:
    """Return the result of a job, which must be this analysis. Raises UsageError if it is not."""
    job = client.job(round, id)
    if job.analysis != analysis:
        raise UsageError(f"the job is a {job.analysis}; `{_command(job, round)}` shows it")
    return job.wait()


def start_job(
    client: "Client", round: str, start: Callable[[str], "Job"], *, json: bool
) -> JsonObject | None:
    """Start a job of a round, and print the command that waits for it.

    Returns the result if the server answers with it instead, and prints nothing then.
    """
    round = client.parameters(round).id  # a name may be given to another round later
    job = start(round)
    if job.is_over:
        return job.wait()
    if json:
        print_json({"job": job.id, "round": round})
    else:
        text = f"Started. `{_command(job, round)}` waits for it and shows it."
        console().print(text, soft_wrap=True)
    return None


def _command(job: "Job", round: str) -> str:
    return plain(f"ldprecover result {_COMMANDS[job.analysis]} {round} --job {job.id}")
