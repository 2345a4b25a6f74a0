"""One user's report of one value: perturbed once, written down, sent until it is answered."""

import asyncio
import math
import operator
from dataclasses import dataclass
from typing import Any, Literal

from ldprecover import ParameterError, RoundParameters
from ldprecover.harmony import is_for_numbers, round_numbers
from ldprecover.wire import pack
from ldprecover_client.answers import Round, Submitted
from ldprecover_client.calls import checked_ticket
from ldprecover_client.errors import (
    AlreadyReportedError,
    ArgumentError,
    EpsilonTooHighError,
    InconsistentRoundError,
    InvalidAnswerError,
    RefusedError,
    ServerError,
    UnansweredError,
    UnknownItemError,
)
from ldprecover_client.http import AsyncServer, AsyncTransport, Server, Transport, server_url
from ldprecover_client.ledger import Entry, Ledger
from ldprecover_client.retry import Retries

__all__ = ["MAX_EPSILON", "AsyncReporter", "Receipt", "Reporter"]

MAX_EPSILON = 2.0
"""Default limit of epsilon for one round: all the paper's settings (0.1 to 1.6) lie below it.

e^2 = 7.4: whoever held the value for even odds can at most become 88 % sure from the report.
"""

Value = str | int | float
_Failure = RefusedError | ServerError | UnansweredError
_FAILURES = (RefusedError, ServerError, UnansweredError)


@dataclass(frozen=True)
class Receipt:
    """What became of a report.

    `state` is "accepted" (durably stored and counted), "pending" (no answer yet; `resume` sends it
    again) or "refused" (the server will never take it); `reason` says why, if not accepted.
    `resent` says that the report was made by an earlier call or process and its bytes sent again,
    `duplicate` that the server had them already.
    """

    round_id: str
    epsilon: float
    state: Literal["accepted", "pending", "refused"]
    resent: bool = False
    duplicate: bool = False
    reason: str | None = None


class _Desk:
    """What `Reporter` and `AsyncReporter` share: every decision, and no I/O but the ledger's."""

    def __init__(
        self, url: str, ledger: Ledger | None, max_epsilon: float, key: str | None, ticket: str | None
    ) -> None:
        if not max_epsilon > 0:
            raise ArgumentError("max_epsilon must be above 0")
        self.url = server_url(url)
        self.ledger = Ledger() if ledger is None else ledger
        self.max_epsilon = max_epsilon
        self.ticket = None if ticket is None else checked_ticket(ticket)
        self._key = key

    def key_for(self, url: str) -> str | None:
        """Return the key to send to a server: to none but the user's own."""
        return self._key if url == self.url else None

    def enter(self, round_: Round, value: Value) -> tuple[Entry, bool]:
        """Return the round's entry in the ledger, perturbing the value if there is none, and whether it is new."""
        parameters = round_.parameters
        if parameters.epsilon > self.max_epsilon:
            raise EpsilonTooHighError(
                f"the round asks for epsilon {parameters.epsilon:g}, above your limit of {self.max_epsilon:g}"
            )
        item = _item(parameters, value)
        entry, new = self.ledger.claim(
            server_url=self.url,
            round_id=round_.id,
            digest=round_.digest,
            epsilon=parameters.epsilon,
            # Without a generator: from the operating system's randomness, as a real user must.
            perturb=lambda: pack(parameters.oracle.perturb([item])),
            ticket=self.ticket,
        )
        if not new and entry.state == "pending" and entry.server_url != self.url:
            # The bytes and their key are for that server alone, whatever this one says its round's id is.
            raise InconsistentRoundError(f"the report to this round was made for {entry.server_url}")
        if entry.state == "accepted":
            raise AlreadyReportedError("this round has your report; a second would cost epsilon once more")
        if entry.state == "refused":
            raise AlreadyReportedError(f"the server refused your report to this round for good: {entry.reason}")
        return entry, new

    def accepted(self, entry: Entry, answer: Submitted, resent: bool) -> Receipt:
        """Check the answer to a submission and settle its entry."""
        if answer["accepted"] != 1 or answer["round"] != entry.round_id:
            raise InvalidAnswerError("the server answers for other reports than the one it was sent")
        self.ledger.settle(entry.round_id, "accepted")
        return Receipt(entry.round_id, entry.epsilon, "accepted", resent, answer["duplicate"])

    def failed(self, entry: Entry, error: _Failure, resent: bool) -> Receipt:
        """Settle an entry that the server will never take; leave every other one pending."""
        state: Literal["pending", "refused"] = "pending"
        if isinstance(error, RefusedError) and _is_final(error):
            self.ledger.settle(entry.round_id, "refused", str(error))
            state = "refused"
        return Receipt(entry.round_id, entry.epsilon, state, resent, reason=str(error))


def _is_final(error: RefusedError) -> bool:
    """Return whether the round, by its server's own word, will never take these bytes.

    A 404 for the path is not that word, but a wrong URL's; and a key may come for a 401 or 403.
    """
    return error.status in (409, 410, 422) or (error.status == 404 and error.slug not in ("", "not-found"))


def _item(parameters: RoundParameters, value: Value) -> int:
    """Return the index of a value: a str is always a label, an int always an index.

    So "3" is the item labelled 3, wherever it stands, and 3 the item at index 3, however labelled. In a round for
    numbers (`ldprecover.harmony`) all three are the number itself.
    """
    items = parameters.items
    if is_for_numbers(parameters):
        return _number_item(value)
    if isinstance(value, str):
        try:
            return items.index(value)
        except ValueError:
            raise UnknownItemError(f"the value is none of the round's {len(items)} items") from None
    try:
        index = -1 if isinstance(value, float) else operator.index(value)
    except TypeError:
        raise UnknownItemError("a value is an item's label (str) or its index (int)") from None
    if isinstance(value, bool) or not 0 <= index < len(items):
        raise UnknownItemError(f"an item's index is an integer from 0 to {len(items) - 1}")
    return index


def _number_item(value: Value) -> int:
    """Return the item that a number from -1 to 1 becomes, by the operating system's randomness."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
        return int(round_numbers([number])[0])
    except (ValueError, TypeError, ParameterError):  # which would show the value
        raise UnknownItemError("in this round a value is a number from -1 to 1") from None


class Reporter:
    """Reports one user's value to a round, once, over HTTP.

    The round's parameters are fetched and checked; the value is perturbed once, with the operating
    system's randomness; the report is on disk in the ledger, with its random idempotency key, before
    it is sent; and whatever happens, also after a crash, the same bytes go out under the same key.

    `round` is an id, a name, or "current". `ledger` is the user's (default: `Ledger()`, a file in the
    user's state directory), which also limits the total over rounds; `max_epsilon` limits each round.
    `key` is a report key and `ticket` a ticket, where the round wants one; the ticket is in the ledger
    with the report, which goes out under it alone. `timeout`, `retries` and `transport` are those of
    `Server`. Connections last for one call, so there is nothing to close. Raises ArgumentError and LedgerError.
    """

    def __init__(
        self,
        server_url: str,
        round: str = "current",
        *,
        ledger: Ledger | None = None,
        max_epsilon: float = MAX_EPSILON,
        key: str | None = None,
        ticket: str | None = None,
        timeout: float = 30.0,
        retries: Retries | None = None,
        transport: Transport | None = None,
    ) -> None:
        self._desk = _Desk(server_url, ledger, max_epsilon, key, ticket)
        self._round = round
        self._options: dict[str, Any] = {"timeout": timeout, "retries": retries, "transport": transport}

    @property
    def ledger(self) -> Ledger:
        """The user's ledger."""
        return self._desk.ledger

    def report(self, value: Value) -> Receipt:
        """Report a value: an item's label (a str, always) or its index (an int, always).

        In a round for numbers it is the number, from -1 to 1, and is rounded at random to an item first.

        If the round's report was made before and not answered, that one is sent again, and the value
        given now is checked to be an item and otherwise ignored. Raises, having perturbed nothing:
        UnknownItemError, EpsilonTooHighError, EpsilonSpentError, InconsistentRoundError,
        AlreadyReportedError, LedgerError. Raises RefusedError, UnansweredError or InvalidAnswerError
        as `Server` does; when the report had been written down, it stays so, `resume` or a further
        `report` sends it again unless the server refused it for good, and its epsilon stays spent.
        """
        with self._server(self._desk.url) as server:
            entry, new = self._desk.enter(server.parameters(self._round), value)
            receipt, error = self._deliver(server, entry, not new)
        if error is not None:
            raise error
        return receipt

    def resume(self) -> tuple[Receipt, ...]:
        """Send every pending report of the ledger again, each to the server it was made for.

        Return a receipt for each; failures are in their `state` and `reason`. Raises LedgerError.
        """
        receipts = []
        for entry in self.ledger.pending():
            with self._server(entry.server_url) as server:
                receipts.append(self._deliver(server, entry, True)[0])
        return tuple(receipts)

    def _deliver(self, server: Server, entry: Entry, resent: bool) -> tuple[Receipt, _Failure | None]:
        try:
            answer = server.submit(entry.round_id, entry.packed, entry.key, ticket=entry.ticket)
            return self._desk.accepted(entry, answer, resent), None
        except _FAILURES as error:
            return self._desk.failed(entry, error, resent), error

    def _server(self, url: str) -> Server:
        return Server(url, key=self._desk.key_for(url), **self._options)


class AsyncReporter:
    """`Reporter` for asyncio: the same ledger, checks and promises. The ledger is written in a thread."""

    def __init__(
        self,
        server_url: str,
        round: str = "current",
        *,
        ledger: Ledger | None = None,
        max_epsilon: float = MAX_EPSILON,
        key: str | None = None,
        ticket: str | None = None,
        timeout: float = 30.0,
        retries: Retries | None = None,
        transport: AsyncTransport | None = None,
    ) -> None:
        self._desk = _Desk(server_url, ledger, max_epsilon, key, ticket)
        self._round = round
        self._options: dict[str, Any] = {"timeout": timeout, "retries": retries, "transport": transport}

    @property
    def ledger(self) -> Ledger:
        """The user's ledger."""
        return self._desk.ledger

    async def report(self, value: Value) -> Receipt:
        """Report a value; see `Reporter.report`."""
        async with self._server(self._desk.url) as server:
            round_ = await server.parameters(self._round)
            entry, new = await asyncio.to_thread(self._desk.enter, round_, value)
            receipt, error = await self._deliver(server, entry, not new)
        if error is not None:
            raise error
        return receipt

    async def resume(self) -> tuple[Receipt, ...]:
        """Send every pending report of the ledger again; see `Reporter.resume`."""
        receipts = []
        for entry in await asyncio.to_thread(self.ledger.pending):
            async with self._server(entry.server_url) as server:
                receipts.append((await self._deliver(server, entry, True))[0])
        return tuple(receipts)

    async def _deliver(self, server: AsyncServer, entry: Entry, resent: bool) -> tuple[Receipt, _Failure | None]:
        try:
            answer = await server.submit(entry.round_id, entry.packed, entry.key, ticket=entry.ticket)
            return await asyncio.to_thread(self._desk.accepted, entry, answer, resent), None
        except _FAILURES as error:
            return await asyncio.to_thread(self._desk.failed, entry, error, resent), error

    def _server(self, url: str) -> AsyncServer:
        return AsyncServer(url, key=self._desk.key_for(url), **self._options)
