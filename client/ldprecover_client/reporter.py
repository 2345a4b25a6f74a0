"""One user's report of one value: perturbed once, written down, sent until it is answered."""

import asyncio
import math
import operator
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from ldprecover import ParameterError, RoundParameters
from ldprecover.protocols.wire import pack
from ldprecover.rounds.means import is_for_numbers, round_numbers
from ldprecover.rounds.tickets import ticket_draw
from ldprecover_client.answers import Round, Submitted
from ldprecover_client.calls import checked_ticket
from ldprecover_client.errors import (
    AccessError,
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
from ldprecover_client.http import AsyncClient, AsyncTransport, Client, Transport, server_url
from ldprecover_client.ledger import Entry, Ledger
from ldprecover_client.retry import Retries
from ldprecover_client.transport_security import warn_if_readable

MAX_EPSILON = 2.0
"""Default limit of epsilon for one round: all the paper's settings (0.1 to 1.6) lie below it.

e^2 = 7.4: whoever held the value for even odds can at most become 88 % sure from the report.
"""

Value = str | int | float
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_Failure = RefusedError | ServerError | UnansweredError
_FAILURES = (RefusedError, ServerError, UnansweredError)


@dataclass(frozen=True)
class Receipt:
    """What became of a report.

    `state` is "accepted" (durably stored and counted), "pending" (no answer yet; `resume` sends it
    again) or "refused" (the server will never take it); `reason` says why, if not accepted.
    `resent` says that the report was made by an earlier call or process and its bytes sent again,
    `duplicate` that the server had them already. `round_name` is what people call the round;
    `round_id` is the same where the report went to a name.
    """

    round_id: str
    epsilon: float
    state: Literal["accepted", "pending", "refused"]
    resent: bool = False
    duplicate: bool = False
    reason: str | None = None
    round_name: str | None = None


class _Desk:
    """What `Reporter` and `AsyncReporter` share: every decision, and no I/O but the ledger's."""

    def __init__(
        self,
        server: str | Client | AsyncClient,
        ledger: Ledger | None,
        max_epsilon: float,
        ticket: str | None,
        name: str | None,
        options: Mapping[str, Any],
    ) -> None:
        if not max_epsilon > 0:
            raise ArgumentError("max_epsilon must be above 0")
        if name is not None and (not _NAME.fullmatch(name) or name == "current"):
            raise ArgumentError("by_name needs the round's name, neither an id nor 'current'")
        if name is not None and ticket is not None:
            raise ArgumentError(
                "by_name takes no ticket: each is good on the one deployment that minted it"
            )
        self._name = name
        given = {name: value for name, value in options.items() if value is not None}
        if isinstance(server, str):
            self.url = server_url(server)
            self._has_key, is_network = "key" in given, "transport" not in given
        else:
            if given:
                raise ArgumentError(
                    f"{' and '.join(given)} must be given to the client that is shared"
                )
            self.url = server.url
            self._has_key, is_network = server.has_key, server.is_network
        self.ledger = Ledger() if ledger is None else ledger
        self.max_epsilon = max_epsilon
        self.ticket = None if ticket is None else checked_ticket(ticket)
        self._options = given
        for name, secret in (("key", given.get("key")), ("ticket", ticket)):
            if secret is not None and is_network:
                warn_if_readable(self.url, name, stacklevel=3)

    def options_for(self, url: str) -> dict[str, Any]:
        """Return the settings of a client of a server: the key goes to none but the user's own."""
        own = (
            self._options
            if url == self.url
            else {k: v for k, v in self._options.items() if k != "key"}
        )
        return dict(own)

    def enter(self, round_: Round, value: Value) -> tuple[Entry, bool]:
        """Return the round's entry in the ledger, perturbing the value if there is none, and
        whether it is new.
        """
        parameters = round_.parameters
        if parameters.epsilon > self.max_epsilon:
            raise EpsilonTooHighError(
                f"the round asks for epsilon {parameters.epsilon:g}, above your limit of "
                f"{self.max_epsilon:g}"
            )
        item = _item(parameters, value)
        if item in parameters.canaries:
            raise UnknownItemError(
                "the value is a canary of the round, an item that nobody holds; nothing is sent"
            )
        oracle, seed = parameters.oracle, None
        if oracle.listed_seeds is not None and self.ticket is not None:
            seed = oracle.seed_of(ticket_draw(self.ticket))
            oracle = oracle.with_seeds([seed])

        def perturb() -> bytes:
            self._check_access(round_, self.ticket)
            return pack(oracle.perturb([item]))

        entry, new = self.ledger.claim(
            server_url=self.url,
            round_id=self._reference(round_),
            digest=round_.digest,
            epsilon=parameters.epsilon,
            # Without a generator: from the operating system's randomness, as a real user must.
            perturb=perturb,
            ticket=self.ticket,
            round_name=round_.name,
            seed=seed,
        )
        if not new and entry.state == "pending" and entry.server_url != self.url:
            # The bytes and their key are for that server alone, whatever this one says its round's
            # id is.
            raise InconsistentRoundError(
                f"the report to this round was made for {entry.server_url}"
            )
        if entry.state == "accepted":
            raise AlreadyReportedError(
                "this round has your report; a second would cost epsilon once more"
            )
        if entry.state == "refused":
            raise AlreadyReportedError(
                f"the server refused your report to this round for good: {entry.reason}"
            )
        if not new:
            self._check_access(round_, self.ticket or entry.ticket)
        return entry, new

    def _reference(self, round_: Round) -> str:
        """Return what the round is called on the wire and in the ledger."""
        if self._name is None:
            return round_.id
        if round_.name != self._name:
            raise InconsistentRoundError(
                f"asked for the round {self._name}, the server states another"
            )
        return self._name

    def _check_access(self, round_: Round, ticket: str | None) -> None:
        """Raise AccessError unless the round takes reports with what there is, as far as can be
        told from here.
        """
        if round_.access == "ticket":
            if ticket is None:
                raise AccessError(
                    "this round takes reports with tickets alone: give one of its tickets", "ticket"
                )
        elif round_.access == "key":
            if not self._has_key or self.ticket is not None:
                also = "" if self.ticket is None else ", and no tickets"
                raise AccessError(
                    f"this round takes reports with a report key alone{also}: give a report key",
                    "key",
                )
        elif round_.access == "open":
            if self.ticket is not None:
                raise AccessError("this round takes no tickets: report without one", None)
        else:
            raise AccessError(
                f"this version knows no rounds of access {round_.access[:64]!r}", None
            )

    def begin(self, entry: Entry, ticket: str | None) -> Entry:
        """Return an entry as it must go out; a try under a ticket is written down before it
        does.
        """
        return entry if ticket is None else self.ledger.begin_try(entry.round_id, ticket)

    def accepted(self, entry: Entry, answer: Submitted, resent: bool) -> Receipt:
        """Check the answer to a submission and settle its entry."""
        by_name = entry.round_id == entry.round_name  # on each deployment the round has another id
        if answer["accepted"] != 1 or not (by_name or answer["round"] == entry.round_id):
            raise InvalidAnswerError(
                "the server answers for other reports than the one it was sent"
            )
        self.ledger.settle(entry.round_id, "accepted")
        return Receipt(
            entry.round_id,
            entry.epsilon,
            "accepted",
            resent,
            answer["duplicate"],
            round_name=entry.round_name,
        )

    def failed(self, entry: Entry, error: _Failure, resent: bool) -> Receipt:
        """Settle an entry that the server will never take; leave every other one pending.

        A refusal gets a note that says whether the report can still be counted, and how.
        """
        state: Literal["pending", "refused"] = "pending"
        if entry.ticket is not None and _is_sure_not_taken(error):
            self.ledger.end_try(entry.round_id)
        if isinstance(error, RefusedError):
            note = _PENDING
            if entry.ticket is not None and error.slug in _OF_TICKETS:
                in_doubt = error.in_doubt or entry.open_tries > 1  # the first is this one
                note = _KEEPS_TICKET if in_doubt else _ANOTHER_TICKET
                if not in_doubt and self.ledger.seed(entry.round_id) is not None:
                    note = _SAME_SEED
                if error.slug == "idempotency-key-reused":
                    note = f"{_USED_TICKET}; {note}"
            elif _is_final(error):
                self.ledger.settle(entry.round_id, "refused", str(error))
                state, note = "refused", _REFUSED
            error.add_note(note)
        return Receipt(
            entry.round_id,
            entry.epsilon,
            state,
            resent,
            reason=str(error),
            round_name=entry.round_name,
        )


_OF_TICKETS = ("invalid-ticket", "idempotency-key-reused")
"""Refusals of a ticket: it is not of this round, or another report was sent under it."""

_REFUSED = "the report will never be counted, and its epsilon stays spent"
_PENDING = "the report is written down, and the same one goes out when you report again"
_ANOTHER_TICKET = (
    "the report is written down, and the same one goes out when you report again "
    "with another ticket"
)
_SAME_SEED = f"{_ANOTHER_TICKET} that picks the same seed"
_USED_TICKET = "another report was sent under this ticket"
_KEEPS_TICKET = (
    "an earlier try under this ticket had no answer and may have been counted, so the "
    "report goes out under no other"
)


def _is_sure_not_taken(error: _Failure) -> bool:
    """Return whether no try of a call under a ticket was taken: none arrived, or all were refused
    for the ticket.
    """
    if isinstance(error, RefusedError):
        return error.slug in _OF_TICKETS and not error.in_doubt
    return isinstance(error, UnansweredError) and not error.in_doubt


def _is_final(error: RefusedError) -> bool:
    """Return whether the round, by its server's own word, will never take these bytes.

    A 404 for the path is not that word, but a wrong URL's; and a key may come for a 401 or 403.
    """
    return error.status in (409, 410, 422) or (
        error.status == 404 and error.slug not in ("", "not-found")
    )


def _item(parameters: RoundParameters, value: Value) -> int:
    """Return the index of a value: a str is always a label, an int always an index.

    So "3" is the item labelled 3, wherever it stands, and 3 the item at index 3, however labelled.
    In a round for numbers (`ldprecover.rounds.means`) all three are the number itself.
    """
    items = parameters.items
    if is_for_numbers(parameters):
        return _number_item(value)
    if isinstance(value, str):
        try:
            return items.index(value)
        except ValueError:
            raise UnknownItemError(
                f"the value is not one of the round's {len(items)} items"
            ) from None
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
    system's randomness; the report is on disk in the ledger, with its random idempotency key,
    before it is sent; and whatever happens, also after a crash, the same bytes go out under the
    same key.

    `round` is an id, a name, or "current". `ledger` is the user's (default: `Ledger()`, a file in
    the user's state directory), which also limits the total over rounds; `max_epsilon` limits each
    round. `key` is a report key and `ticket` a ticket, where the round wants one. The report goes
    out under another ticket than before only if every try before was refused for its ticket or
    never reached the server; else it goes out under the ticket it has. Where seeds are given, the
    first ticket's seed is the round's, and one that picks another raises SecondSeedError.
    `timeout`, `retries` and `transport` are those of `Client`.

    With `by_name` the report is sent to the round's name, and written down under it: behind a proxy
    to several deployments the round has another id on each. Say so from the first report on, and
    use the name for no other round. Tickets, each of which one deployment minted, are refused then.

    `server` is the server's URL; connections then last for one call, so there is nothing to close.
    Or it is a `Client` that several reporters share: its key, connections and settings are used,
    and it stays open. Raises ArgumentError and LedgerError.
    """

    def __init__(
        self,
        server: str | Client,
        round: str = "current",
        *,
        ledger: Ledger | None = None,
        max_epsilon: float = MAX_EPSILON,
        key: str | None = None,
        ticket: str | None = None,
        by_name: bool = False,
        timeout: float | None = None,
        retries: Retries | None = None,
        transport: Transport | None = None,
    ) -> None:
        options = {"key": key, "timeout": timeout, "retries": retries, "transport": transport}
        self._desk = _Desk(server, ledger, max_epsilon, ticket, round if by_name else None, options)
        self._shared = None if isinstance(server, str) else server
        self._round = round

    @property
    def ledger(self) -> Ledger:
        """The user's ledger."""
        return self._desk.ledger

    def report(self, value: Value) -> Receipt:
        """Report a value: an item's label (a str, always) or its index (an int, always).

        In a round for numbers it is the number, from -1 to 1, and is rounded at random to an item
        first.

        If the round's report was made before and not answered, that one is sent again, and the
        value given now is checked to be an item and otherwise ignored. Raises, having perturbed
        nothing: UnknownItemError, EpsilonTooHighError, EpsilonSpentError, SecondSeedError,
        AccessError, InconsistentRoundError, AlreadyReportedError, LedgerError. Raises RefusedError,
        UnansweredError or InvalidAnswerError as `Client` does; when the report had been written
        down, it stays so, `resume` or a further `report` sends it again unless the server refused
        it for good, and its epsilon stays spent.
        """
        with self._client(self._desk.url) as client:
            entry, new = self._desk.enter(client.parameters(self._round), value)
            receipt, error = self._deliver(
                client, entry, self._desk.ticket or entry.ticket, not new
            )
        if error is not None:
            raise error
        return receipt

    def resume(self) -> tuple[Receipt, ...]:
        """Send every pending report of the ledger again, each to the server it was made for, under
        its key or ticket.

        Return a receipt for each; failures are in their `state` and `reason`. Raises LedgerError.
        """
        receipts = []
        for entry in self.ledger.pending():
            with self._client(entry.server_url) as client:
                receipts.append(self._deliver(client, entry, entry.ticket, True)[0])
        return tuple(receipts)

    def _deliver(
        self, client: Client, entry: Entry, ticket: str | None, resent: bool
    ) -> tuple[Receipt, _Failure | None]:
        entry = self._desk.begin(entry, ticket)
        try:
            answer = client.submit(entry.round_id, entry.packed, entry.key, ticket=entry.ticket)
            return self._desk.accepted(entry, answer, resent), None
        except _FAILURES as error:
            return self._desk.failed(entry, error, resent), error

    @contextmanager
    def _client(self, url: str) -> Iterator[Client]:
        if self._shared is not None and self._shared.url == url:
            yield self._shared
            return
        own = (
            Client(url, **self._desk.options_for(url))
            if self._shared is None
            else self._shared.elsewhere(url)
        )
        with own:
            yield own


class AsyncReporter:
    """`Reporter` for asyncio: the same ledger, checks and promises. The ledger is written in a
    thread.
    """

    def __init__(
        self,
        server: str | AsyncClient,
        round: str = "current",
        *,
        ledger: Ledger | None = None,
        max_epsilon: float = MAX_EPSILON,
        key: str | None = None,
        ticket: str | None = None,
        by_name: bool = False,
        timeout: float | None = None,
        retries: Retries | None = None,
        transport: AsyncTransport | None = None,
    ) -> None:
        options = {"key": key, "timeout": timeout, "retries": retries, "transport": transport}
        self._desk = _Desk(server, ledger, max_epsilon, ticket, round if by_name else None, options)
        self._shared = None if isinstance(server, str) else server
        self._round = round

    @property
    def ledger(self) -> Ledger:
        """The user's ledger."""
        return self._desk.ledger

    async def report(self, value: Value) -> Receipt:
        """Report a value; see `Reporter.report`."""
        async with self._client(self._desk.url) as client:
            round_ = await client.parameters(self._round)
            entry, new = await asyncio.to_thread(self._desk.enter, round_, value)
            receipt, error = await self._deliver(
                client, entry, self._desk.ticket or entry.ticket, not new
            )
        if error is not None:
            raise error
        return receipt

    async def resume(self) -> tuple[Receipt, ...]:
        """Send every pending report of the ledger again; see `Reporter.resume`."""
        receipts = []
        for entry in await asyncio.to_thread(self.ledger.pending):
            async with self._client(entry.server_url) as client:
                receipts.append((await self._deliver(client, entry, entry.ticket, True))[0])
        return tuple(receipts)

    async def _deliver(
        self, client: AsyncClient, entry: Entry, ticket: str | None, resent: bool
    ) -> tuple[Receipt, _Failure | None]:
        entry = await asyncio.to_thread(self._desk.begin, entry, ticket)
        try:
            answer = await client.submit(
                entry.round_id, entry.packed, entry.key, ticket=entry.ticket
            )
            return await asyncio.to_thread(self._desk.accepted, entry, answer, resent), None
        except _FAILURES as error:
            return await asyncio.to_thread(self._desk.failed, entry, error, resent), error

    @asynccontextmanager
    async def _client(self, url: str) -> AsyncIterator[AsyncClient]:
        if self._shared is not None and self._shared.url == url:
            yield self._shared
            return
        own = (
            AsyncClient(url, **self._desk.options_for(url))
            if self._shared is None
            else self._shared.elsewhere(url)
        )
        async with own:
            yield own
