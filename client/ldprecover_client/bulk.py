"""Many reports at once through the public door: packed submissions over several connections."""

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
from typing import Any

from numpy.typing import NDArray

from ldprecover.protocols import MAX_DOMAIN_SIZE, FrequencyOracle
from ldprecover.protocols.wire import pack
from ldprecover_client.answers import Submitted
from ldprecover_client.calls import checked_ticket
from ldprecover_client.errors import (
    ArgumentError,
    InvalidAnswerError,
    RefusedError,
    UnansweredError,
)
from ldprecover_client.http import Client, Transport
from ldprecover_client.journal import Journal
from ldprecover_client.progress import Progress
from ldprecover_client.retry import Retries

BATCH_SIZE = 10_000
"""Reports in one submission, unless told otherwise."""

MAX_BODY_BYTES = 16 << 20
"""No submission is made larger than what a server takes by default; wide OUE reports reach it
first.
"""

MAX_CELLS = 1 << 31
"""Items that a server hashes by default to count one submission."""

_MAX_CONNECTIONS = 64


def submit_reports(
    url: str,
    round_id: str,
    reports: NDArray[Any],
    *,
    key: str | None = None,
    tickets: Sequence[str] | None = None,
    batch_size: int = BATCH_SIZE,
    connections: int = 4,
    progress: Progress | None = None,
    journal: Journal | None = None,
    compress: bool = False,
    timeout: float = 30.0,
    retries: Retries | None = None,
    transport: Transport | None = None,
    oracle: FrequencyOracle | None = None,
) -> int:
    """Post reports, rows of the round's `report_dtype`, and return how many were accepted: all of
    them.

    They go as packed submissions of at most `batch_size` reports, and no more than a server takes
    by default, over this many keep-alive connections at a time, each under a random idempotency key
    that its retries keep, so that none is counted twice. `key` is a report key, without which an
    open round takes one report a submission; where the server limits its rate, all wait for it.
    With `tickets` each report is a submission of its own, under its own ticket; they are checked to
    be different, and to have the form of tickets, before any is sent. With the round's `oracle`
    submissions of many reports may be larger: not all protocols are as slow to count as the
    slowest. `compress` gzips the bodies. `progress` is called from the caller's thread before the
    first submission and after each. A `journal` writes down which submissions were accepted and
    holds their keys: called with it again, and with the same reports, this sends the others, so
    that each report counts once whatever was interrupted. The caller removes it.

    Raises what `Client.submit` raises for the first submission that fails, with a note that says
    how many reports had been accepted; a 413 says which batch size was too large. Once it raises,
    no further submission begins. Raises ArgumentError for sizes below 1 or connections above 64.
    """
    if batch_size < 1:
        raise ArgumentError("batch_size must be at least 1")
    if not 1 <= connections <= _MAX_CONNECTIONS:
        raise ArgumentError(f"connections must be from 1 to {_MAX_CONNECTIONS}")
    n = len(reports)
    if not n:
        return 0
    if tickets is not None:
        _check_tickets(tickets, n)
    size = 1 if tickets is not None else min(batch_size, _most(reports, oracle))
    if journal is not None:
        size = journal.begin(reports, size)
    starts = [
        start for start in range(0, n, size) if journal is None or not journal.was_accepted(start)
    ]
    accepted = n - sum(min(size, n - start) for start in starts)  # by a run before this one
    stop = threading.Event()

    def pause(seconds: float) -> None:
        if stop.wait(seconds):
            raise UnansweredError("stopped before a retry, since another submission failed")

    with (
        Client(
            url, key=key, timeout=timeout, retries=retries, transport=transport, sleep=pause
        ) as client,
        ThreadPoolExecutor(connections, thread_name_prefix="submit-reports") as pool,
    ):
        sender = _Sender(
            client,
            round_id,
            reports,
            size,
            accepted,
            tickets=tickets,
            journal=journal,
            compress=compress,
        )
        try:
            if progress is not None:
                progress(accepted, n)
            for sent in _as_sent(pool, sender.send, starts, waiting=2 * connections):
                accepted += sent
                if progress is not None:
                    progress(accepted, n)
        except BaseException as error:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            error.add_note(f"{sum(sender.stored)} of {n} reports were accepted")
            raise
    return accepted


class _Sender:
    """Sends batches of reports, each as one submission; its threads share what they have
    `stored`.
    """

    def __init__(
        self,
        client: Client,
        round_id: str,
        reports: NDArray[Any],
        size: int,
        accepted: int,
        *,
        tickets: Sequence[str] | None,
        journal: Journal | None,
        compress: bool,
    ) -> None:
        self.stored = [accepted]
        self._client = client
        self._round_id = round_id
        self._reports = reports
        self._size = size
        self._tickets = tickets
        self._journal = journal
        self._compress = compress

    def send(self, start: int) -> int:
        """Send the batch that begins at this report, and return how many reports it has."""
        batch = self._reports[start : start + self._size]
        try:
            answer = self._submit(start, batch)
        except RefusedError as error:
            if error.status != 413:
                raise
            hint = (
                f"{len(batch)} reports of {batch.nbytes} bytes in one submission; take a "
                "smaller batch_size"
            )
            raise RefusedError(413, error.title, f"{hint} ({error.detail})", error.type) from error
        if answer["accepted"] != len(batch):
            raise InvalidAnswerError(
                f"the server accepted {answer['accepted']} of a submission of {len(batch)}"
            )
        self.stored.append(len(batch))
        if self._journal is not None:
            self._journal.accept(start)
        return len(batch)

    def _submit(self, start: int, batch: NDArray[Any]) -> Submitted:
        ticket = None if self._tickets is None else self._tickets[start]
        key = secrets.token_hex(16) if self._journal is None else self._journal.key(start)
        while True:
            before = len(self.stored)
            try:
                return self._client.submit(
                    self._round_id, pack(batch), key, compress=self._compress, ticket=ticket
                )
            except UnansweredError as error:
                # All wait for one key's rate; while others of them get through, this one's turn
                # will come.
                if error.status != 429 or len(self.stored) == before:
                    raise


def _as_sent(
    pool: Executor, send: Callable[[int], int], starts: Iterable[int], *, waiting: int
) -> Iterator[int]:
    """Send batches in threads, and yield how many reports each has as they end; so many wait beside
    at most.
    """
    sending: set[Future[int]] = set()
    for start in starts:
        sending.add(pool.submit(send, start))
        if len(sending) > waiting:
            done, sending = wait(sending, return_when=FIRST_COMPLETED)
            yield from (sent.result() for sent in done)
    yield from (sent.result() for sent in as_completed(sending))


def _check_tickets(tickets: Sequence[str], n: int) -> None:
    if len(set(tickets[:n])) < n:
        raise ArgumentError(
            f"{n} reports need as many tickets, and there are {len(set(tickets))} different ones"
        )
    for ticket in tickets[:n]:
        checked_ticket(ticket)


def _most(reports: NDArray[Any], oracle: FrequencyOracle | None) -> int:
    """Return how many of these reports one submission may hold on any server with default
    limits.
    """
    fit = max(1, MAX_BODY_BYTES // len(pack(reports[:1])))
    hashed = MAX_DOMAIN_SIZE if oracle is None else oracle.hash_tests
    return min(fit, MAX_CELLS // hashed) if hashed else fit
