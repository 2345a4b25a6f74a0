"""Bulk submission: many reports in packed submissions over several connections."""

from __future__ import annotations

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
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ldprecover.protocols import MAX_DOMAIN_SIZE, FrequencyOracle
from ldprecover.protocols.wire import pack
from ldprecover_client.answers import Submitted
from ldprecover_client.calls import validate_ticket
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
"""Default number of reports in one submission."""

MAX_BODY_BYTES = 16 << 20
"""Largest body that a server takes by default. Only wide reports, such as OUE's, reach it."""

MAX_HASH_TESTS = 1 << 31
"""Item hashes that a server computes by default to count one submission."""

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
    """Post reports, rows of the round's `wire.dtype`; return how many were accepted: all.

    Each submission has at most `batch_size` reports, and fits a server's default limits. It has a
    random idempotency key that its retries keep, so no report counts twice. `connections` is the
    number of concurrent keep-alive connections. `key` is a report key; without one an open round
    takes one report a submission. If the server limits the key's rate, all connections wait. With
    `tickets` each report is one submission under its ticket; equal or malformed tickets are an
    error before anything is sent. The round's `oracle` allows larger submissions if its protocol is
    fast to count. `compress` gzips the bodies. `progress` is called from the caller's thread before
    the first submission and after each. A `journal` records the accepted submissions: a second call
    with it and the same reports sends only the others. The caller removes it.

    Raises the error of `Client.submit` for the first submission that fails, with a note of how many
    reports were accepted; a 413 names the batch size. No further submission begins then. Raises
    ArgumentError for sizes below 1 or connections above 64.

        submit_reports(url, opened.id, oracle.perturb(values, rng), key=key)
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
    size = 1 if tickets is not None else min(batch_size, _largest_size(reports, oracle))
    if journal is not None:
        size = journal.begin(reports, size)
    starts = [
        start for start in range(0, n, size) if journal is None or not journal.was_accepted(start)
    ]
    accepted = n - sum(min(size, n - start) for start in starts)  # by an interrupted run
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
        sender = _Sender(client, round_id, reports, size, [accepted], tickets, journal, compress)
        try:
            if progress is not None:
                progress(accepted, n)
            for sent in _send_all(pool, sender.send, starts, waiting=2 * connections):
                accepted += sent
                if progress is not None:
                    progress(accepted, n)
        except BaseException as error:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            error.add_note(f"{sum(sender.stored)} of {n} reports were accepted")
            raise
    return accepted


@dataclass
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
    journal: Journal | None
    compress: bool

    def send(self, start: int) -> int:
        """Send the batch that starts at this index, and return its number of reports."""
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
        if answer["accepted"] != len(batch):
            raise InvalidAnswerError(
                f"the server accepted {answer['accepted']} of a submission of {len(batch)}"
            )
        self.stored.append(len(batch))
        if self.journal is not None:
            self.journal.accept(start)
        return len(batch)

    def _submit(self, start: int, batch: NDArray[Any]) -> Submitted:
        ticket = None if self.tickets is None else self.tickets[start]
        key = secrets.token_hex(16) if self.journal is None else self.journal.key(start)
        while True:
            before = len(self.stored)
            try:
                return self.client.submit(
                    self.round_id, pack(batch), key, compress=self.compress, ticket=ticket
                )
            except UnansweredError as error:
                # All threads share the key's rate limit. While others succeed, this one will too.
                if error.status != 429 or len(self.stored) == before:
                    raise


def _send_all(
    pool: Executor, send: Callable[[int], int], starts: Iterable[int], *, waiting: int
) -> Iterator[int]:
    """Send batches in threads and yield their sizes as they end; queue at most `waiting`."""
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
        validate_ticket(ticket)


def _largest_size(reports: NDArray[Any], oracle: FrequencyOracle | None) -> int:
    """Return the most reports that one submission may have under a server's default limits."""
    fit = max(1, MAX_BODY_BYTES // len(pack(reports[:1])))
    hash_tests = MAX_DOMAIN_SIZE if oracle is None else oracle.hash_tests
    return min(fit, MAX_HASH_TESTS // hash_tests) if hash_tests else fit
