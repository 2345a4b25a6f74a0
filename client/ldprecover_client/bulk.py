"""Bulk submission: many reports in packed submissions over several connections."""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ThreadPoolExecutor,
    as_completed,
    wait,
)
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from ldprecover.protocols import FrequencyOracle
from ldprecover.protocols.wire import pack
from ldprecover_client.answers import Round
from ldprecover_client.calls import validate_ticket
from ldprecover_client.errors import (
    ArgumentError,
    InvalidAnswerError,
    RefusedError,
    UnansweredError,
)
from ldprecover_client.http import Client, with_sleep
from ldprecover_client.progress import Progress, progress_bar
from ldprecover_interface.submissions import Accepted

BATCH_SIZE = 10_000
"""Default number of reports in one submission."""

MAX_BODY_BYTES = 16 << 20
"""Largest body that a server takes by default. Only wide reports, such as OUE's, reach it."""

MAX_HASH_TESTS = 1 << 31
"""Item hashes that a server computes by default to count one submission."""

_MAX_CONNECTIONS = 64
_MIN_SECRET_BYTES = 16


@dataclass(frozen=True)
class BulkReceipt:
    """The number of accepted reports, and of those that the server already had.

    A `duplicate` came in a submission that was stored earlier under the same key.
    """

    accepted: int
    duplicates: int


def submit_reports(
    server: str | Client,
    round_id: str,
    reports: NDArray[Any],
    *,
    key: str | None = None,
    tickets: Sequence[str] | None = None,
    batch_size: int = BATCH_SIZE,
    connections: int = 4,
    progress: Progress | None = None,
    secret: bytes | None = None,
    oracle: FrequencyOracle | None = None,
) -> BulkReceipt:
    """Post reports, rows of the round's `wire.dtype`; return how many were accepted: all.

    Each submission has at most `batch_size` reports, and fits a server's default limits. It has a
    random idempotency key that its retries keep, so no report counts twice within a call.

    A `secret` makes that hold between calls: each key is the HMAC of the position and the batch
    size under it, so the same secret, reports, and batch size give the same keys. After an
    interruption a second call sends what is missing, and each report counts once. Other bytes under
    the same key are refused with 422: the call ends with RefusedError, and nothing counts twice.
    Take a new secret of at least 16 random bytes for each set of reports in a round, store it
    before the first call, and keep it from others, who could send reports under its keys.

    `server` is a URL, or a `Client`, which stays open. `connections` is the number of concurrent
    keep-alive connections. `key` is a report key for a URL, as a client has its own; without one an
    open round takes one report a submission. If the server limits the key's rate, all connections
    wait. With `tickets` each report is one submission under its ticket; equal or malformed tickets
    are an error before anything is sent. The round's `oracle`, which is fetched if it is not given,
    checks the reports. `progress` is called from the caller's
    thread before the first submission and after each.

    Raises the error of `Client.submit` for the first submission that fails, with a note of how many
    reports were accepted; a 413 names the batch size. No further submission begins then. Raises
    ArgumentError for sizes below 1, connections above 64 or a short secret.

        submit_reports(url, opened.id, oracle.perturb(values, rng), key=key)
    """
    if batch_size < 1:
        raise ArgumentError("batch_size must be at least 1")
    if not 1 <= connections <= _MAX_CONNECTIONS:
        raise ArgumentError(f"connections must be from 1 to {_MAX_CONNECTIONS}")
    if secret is not None and len(secret) < _MIN_SECRET_BYTES:
        raise ArgumentError(f"secret must have at least {_MIN_SECRET_BYTES} bytes")
    if not len(reports):
        return BulkReceipt(0, 0)
    if oracle is None:
        with client_of(server, key) as client:
            oracle = client.parameters(round_id).parameters.oracle
    reports = oracle.wire.checked(reports)
    n = len(reports)
    if tickets is not None:
        check_tickets(tickets, n)
    size = 1 if tickets is not None else min(batch_size, _largest_size(oracle))
    accepted = duplicates = 0
    stop = threading.Event()

    def pause(seconds: float) -> None:
        if stop.wait(seconds):
            raise UnansweredError("stopped before a retry, since another submission failed")

    with (
        client_of(server, key) as client,
        ThreadPoolExecutor(connections, thread_name_prefix="submit-reports") as pool,
    ):
        sender = _Sender(
            client=with_sleep(client, pause),
            round_id=round_id,
            reports=reports,
            size=size,
            stored=[],
            tickets=tickets,
            secret=secret,
        )
        try:
            if progress is not None:
                progress(accepted, n)
            for sent in _send_all(pool, sender.send, range(0, n, size), waiting=2 * connections):
                accepted += sent.accepted
                duplicates += sent.duplicates
                if progress is not None:
                    progress(accepted, n)
        except BaseException as error:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            least = "at least " if isinstance(error, UnansweredError) else ""
            error.add_note(f"{least}{sum(sender.stored)} of {n} reports were accepted")
            raise
    return BulkReceipt(accepted, duplicates)


@contextmanager
def client_of(server: str | Client, key: str | None) -> Iterator[Client]:
    """Yield the client itself, or one of the server with this URL, which is closed afterwards.

    Raises ArgumentError for a key beside a client.
    """
    if isinstance(server, str):
        with Client(server, key=key) as client:
            yield client
    elif key is None:
        yield server
    else:
        raise ArgumentError("key must be given to the client that is shared")


def simulate_users(
    server: str | Client,
    round: str | Round,
    make_reports: Callable[[Round], NDArray[Any]],
    *,
    key: str | None,
    progress: Progress | Literal["bar"] | None,
    doing: tuple[str, str],
    **options: Any,
) -> tuple[Round, BulkReceipt]:
    """Send the reports that `make_reports` returns for a round; return the round and the receipt.

    `doing` has the two texts of a bar: while the reports are sent, and while they are made.
    `options` are those of `submit_reports`.
    """
    with client_of(server, key) as client:
        fetched = client.parameters(round) if isinstance(round, str) else round
        bar = progress_bar(doing[0], first=doing[1])
        with bar if progress == "bar" else nullcontext(progress) as report_progress:
            reports = make_reports(fetched)
            oracle = fetched.parameters.oracle
            receipt = submit_reports(
                client, fetched.id, reports, progress=report_progress, oracle=oracle, **options
            )
    return fetched, receipt


@dataclass(kw_only=True)
class _Sender:
    """Sends batches of reports from several threads, each batch as one submission.

    `stored` has the accepted reports of each submission.
    """

    client: Client
    round_id: str
    reports: NDArray[Any]
    size: int
    stored: list[int]
    tickets: Sequence[str] | None
    secret: bytes | None

    def send(self, start: int) -> BulkReceipt:
        """Send the batch that starts at this index."""
        batch = self.reports[start : start + self.size]
        try:
            answer = self._submit(start, batch)
        except RefusedError as error:
            if error.status != 413:
                raise
            detail = f"{len(batch)} reports of {batch.nbytes} bytes in one submission"
            if self.client.has_key:  # otherwise a submission holds one report at most
                detail += "; take a smaller batch_size"
            raise RefusedError(
                413, error.title, f"{detail} ({error.detail})", error.type
            ) from error
        if answer.accepted != len(batch):
            raise InvalidAnswerError(
                f"the server accepted {answer.accepted} of a submission of {len(batch)}"
            )
        self.stored.append(len(batch))
        return BulkReceipt(len(batch), len(batch) if answer.duplicate else 0)

    def _submit(self, start: int, batch: NDArray[Any]) -> Accepted:
        ticket = None if self.tickets is None else self.tickets[start]
        key = self._key(start)
        while True:
            before = len(self.stored)
            try:
                return self.client.submit(self.round_id, pack(batch), key, ticket=ticket)
            except UnansweredError as error:
                # All threads share the key's rate limit. While others succeed, this one will too.
                if error.status != 429 or len(self.stored) == before:
                    raise

    def _key(self, start: int) -> str:
        if self.secret is None:
            return secrets.token_hex(16)
        return hmac.digest(self.secret, f"{start} {self.size}".encode(), "sha256").hex()[:32]


def _send_all(
    pool: Executor, send: Callable[[int], BulkReceipt], starts: Iterable[int], *, waiting: int
) -> Iterator[BulkReceipt]:
    """Send batches in threads and yield their receipts as they end; queue at most `waiting`."""
    sending: set[Future[BulkReceipt]] = set()
    for start in starts:
        sending.add(pool.submit(send, start))
        if len(sending) > waiting:
            done, sending = wait(sending, return_when=FIRST_COMPLETED)
            yield from (sent.result() for sent in done)
    yield from (sent.result() for sent in as_completed(sending))


def check_tickets(tickets: Sequence[str], n: int) -> None:
    """Raise ArgumentError unless the first n are well-formed and different."""
    if len({validate_ticket(ticket) for ticket in tickets[:n]}) < n:
        raise ArgumentError(
            f"{n} reports need as many tickets, and there are {len(set(tickets))} different ones"
        )


def _largest_size(oracle: FrequencyOracle) -> int:
    """Return the most reports that one submission may have under a server's default limits."""
    fit = max(1, MAX_BODY_BYTES // oracle.wire.size)
    return min(fit, MAX_HASH_TESTS // oracle.hash_tests) if oracle.hash_tests else fit
