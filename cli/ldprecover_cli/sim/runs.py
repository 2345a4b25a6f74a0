"""Runs of simulated users: seeds, secrets, and delivery that survives interruptions."""

import hmac
import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from ldprecover_cli.options import connected, quick_retries
from ldprecover_cli.output import counted, note, plain
from ldprecover_cli.signals import end_on_signals
from ldprecover_cli.sim.ticket_files import explain_used_keys

if TYPE_CHECKING:
    from ldprecover_client import Client, Retries

RunSeed = Annotated[
    int | None,
    Option(
        "--seed",
        min=0,
        help="Seed of all random numbers; random when absent, and printed. The same command with "
        "the same seed sends what an interrupted run did not.",
    ),
]
Users = Annotated[int | None, Option(min=1, help="Number of simulated users.")]
Wait = Annotated[bool, Option("--wait", help="Wait until a server that does not answer is back.")]

_UNLIMITED = 1 << 62  # attempts, and seconds
_SEED_BITS = 128


def draw_seed() -> int:
    """Return a random seed of a run."""
    return secrets.randbits(_SEED_BITS)


def print_repeat_options(
    *, round: str | None = None, users: int | None = None, seed: int | None = None
) -> None:
    """Print the options that repeat a run: those that its command lacks.

    They are printed before anything is sent, so that a kill does not lose them.
    """
    values = {"users": users, "seed": seed}
    options = [f"--{name} {value}" for name, value in values.items() if value is not None]
    if round is not None or options:
        place = "" if round is None else f" for the round {plain(round)}"
        with_options = f" with {' '.join(options)}" if options else ""
        note(f"After an interruption the same command{place}{with_options} sends the rest.")


def run_secret(seed: int, command: str, round_id: str, options: Mapping[str, Any]) -> bytes:
    """Return the secret from which the idempotency keys of a run's submissions are derived.

    `options` choose the reports. The number of users is not among them: with the same seed another
    number gives other bytes under the same keys, which the server refuses, so no report of an
    interrupted run counts twice.
    """
    canonical = json.dumps([command, round_id, options], sort_keys=True)
    return hmac.digest(str(seed).encode(), canonical.encode(), "sha256")


def sent_line(accepted: int, duplicates: int, user: str, title: str, purpose: str = "") -> str:
    """Return what a run sent, in a sentence."""
    if duplicates == accepted:
        return f"Nothing new was sent: {title} has these {counted(accepted, 'report')} already."
    before = f"; {duplicates:,} of the reports were there already" if duplicates else ""
    return f"{counted(accepted, user)} reported to {title}{purpose}{before}."


def _persistence(wait: bool) -> "Retries":
    """Return retries for seconds; with `wait`, retries until the server answers."""
    if not wait:
        return quick_retries()
    from ldprecover_client import Retries

    notified = False

    def on_wait(seconds: float) -> None:
        nonlocal notified
        if not notified:
            notified = True
            note("The server accepts no reports now. Waiting until it does; Ctrl-C ends this.")

    return Retries(
        attempts=_UNLIMITED, base=0.2, longest=5.0, total=float(_UNLIMITED), on_wait=on_wait
    )


@contextmanager
def sending(
    round: str, url: str, *, key: str | None, tickets: tuple[str, ...] | None, wait: bool
) -> Iterator["tuple[Client, dict[str, Any]]"]:
    """Yield a client for a run, and the options of `submit_reports` that deliver its reports.

    Without a key a submission has one report, as an open round takes them. Signals end the run
    cleanly.
    """
    from ldprecover_client.bulk import BATCH_SIZE

    retries = _persistence(wait)
    delivery = {"tickets": tickets, "batch_size": 1 if key is None else BATCH_SIZE}
    with (
        end_on_signals(),
        explain_used_keys(tickets),
        connected(url, key, scope="report", round=round, retries=retries) as client,
    ):
        yield client, delivery
