"""Runs of simulated users: seeds, secrets, and delivery that survives interruptions."""

import hmac
import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from ldprecover.sentences import counted
from ldprecover_cli.connection import connected, round_or_form, titled
from ldprecover_cli.options import CURRENT
from ldprecover_cli.output import JsonObject, console, note, plain, print_json
from ldprecover_cli.signals import end_on_signals
from ldprecover_cli.sim.ticket_files import check_access, explain_used_keys

if TYPE_CHECKING:
    from ldprecover_attacker import CampaignResult
    from ldprecover_client import BulkReceipt, Client, Form, Retries, RoundStatus

RunSeed = Annotated[
    int | None,
    Option(
        "--seed",
        min=0,
        help="Seed; random when absent, and printed: with it the same command sends what an "
        "interrupted run did not.",
    ),
]
Users = Annotated[int | None, Option(min=1, help="Number of simulated users.")]
Wait = Annotated[bool, Option("--wait", help="Wait until a server that does not answer is back.")]

_UNLIMITED = 1 << 62  # attempts, and seconds
_SEED_BITS = 128


@dataclass(frozen=True)
class Run:
    """A run of simulated users on a round or form: its client, tickets and seed.

    `delivery` has the options of `submit_reports` that deliver its reports.
    """

    client: "Client"
    round: "RoundStatus | Form"
    reference: str
    seed: int
    _: KW_ONLY
    is_seed_drawn: bool
    is_json: bool
    delivery: dict[str, Any]

    @property
    def progress(self) -> Literal["bar"] | None:
        """The progress that is shown while reports are sent."""
        return None if self.is_json else "bar"

    def secret(self, command: str, **options: Any) -> bytes:
        """Return the secret from which the idempotency keys of the submissions are derived.

        `options` choose the reports. The number of users is not among them: with the same seed
        another number gives other bytes under the same keys, which the server refuses, so no report
        of an interrupted run counts twice.
        """
        canonical = json.dumps([command, self.round.id, options], sort_keys=True)
        return hmac.digest(str(self.seed).encode(), canonical.encode(), "sha256")

    def print_repeat_options(self, users: int | None = None) -> None:
        """Print the options that repeat the run: those that its command lacks.

        They are printed before anything is sent, so that a kill does not lose them.
        """
        values = {"users": users, "seed": self.seed if self.is_seed_drawn else None}
        options = [f"--{name} {value}" for name, value in values.items() if value is not None]
        is_current = self.reference == CURRENT
        if is_current or options:
            place = f" for the round {plain(self.round.name)}" if is_current else ""
            with_options = f" with {' '.join(options)}" if options else ""
            note(f"After an interruption the same command{place}{with_options} sends the rest.")

    def print_sent(
        self,
        sent: "Sequence[BulkReceipt | CampaignResult]",
        user: str,
        purpose: str,
        fields: JsonObject,
    ) -> None:
        """Print how many reports were sent: as JSON with these fields, or as a sentence.

        `sent` has a receipt for each round.
        """
        from ldprecover_client import Form

        accepted = sum(receipt.accepted for receipt in sent)
        duplicates = sum(receipt.duplicates for receipt in sent)
        if self.is_json:
            kind = "form" if isinstance(self.round, Form) else "round"
            counts = {kind: self.round.id, "accepted": accepted, "duplicates": duplicates}
            print_json(counts | {"seed": str(self.seed)} | fields)
            return
        title = titled(self.round.name, self.reference)
        text = f"Nothing new was sent: {title} has these {counted(accepted, 'report')} already."
        if duplicates < accepted:
            before = f"; {duplicates:,} of the reports were there already" if duplicates else ""
            text = f"{counted(accepted, user)} reported to {title}{purpose}{before}."
        console().print(text)


def _persistence(wait: bool) -> "Retries":
    """Return retries for seconds; with `wait`, retries until the server answers."""
    from ldprecover_client.retries import INTERACTIVE, Retries

    if not wait:
        return INTERACTIVE
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
    round: str,
    url: str,
    *,
    key: str | None,
    tickets: tuple[str, ...] | None,
    wait: bool,
    seed: int | None,
    is_json: bool,
) -> Iterator[Run]:
    """Yield a run on a round or form. Signals end it cleanly.

    Without a key a submission has one report, as an open round takes them. Raises UsageError if the
    round needs tickets that are missing, or takes no tickets.
    """
    from ldprecover_client.bulk import BATCH_SIZE

    retries = _persistence(wait)
    delivery = {"tickets": tickets, "batch_size": 1 if key is None else BATCH_SIZE}
    with (
        end_on_signals(),
        explain_used_keys(tickets),
        connected(url, key, scope="report", retries=retries) as client,
    ):
        status = round_or_form(round, client.round, client.form)
        check_access(status, tickets)
        run_seed = secrets.randbits(_SEED_BITS) if seed is None else seed
        yield Run(
            client,
            status,
            round,
            run_seed,
            is_seed_drawn=seed is None,
            is_json=is_json,
            delivery=delivery,
        )
