"""Reports one user's value: perturbs it once, records it in the ledger, and sends it."""

from __future__ import annotations

import math
import operator
import secrets
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal

from ldprecover._checks import real
from ldprecover.errors import ParameterError
from ldprecover.items import label_indices
from ldprecover.protocols.wire import pack
from ldprecover.rounds.parameters import RoundParameters
from ldprecover.rounds.tickets import assigned_round
from ldprecover_client.answers import Form, Round
from ldprecover_client.calls import validate_ticket
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
from ldprecover_client.http import Client, server_url, warn_if_unencrypted
from ldprecover_client.ledger import Entry, Ledger
from ldprecover_interface.submissions import Accepted

MAX_EPSILON = 2.0
"""Default limit of epsilon for one round, above all of the paper's settings (0.1 to 1.6).

e^2 = 7.4: an observer with even odds becomes at most 88 % sure of the value.
"""

Value = str | int | float
_Failure = RefusedError | ServerError | UnansweredError
_FAILURES = (RefusedError, ServerError, UnansweredError)


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """The result of reporting.

    `state` is "accepted" (durably stored and counted), "pending" (no answer yet; `resume` sends it
    again) or "refused" (the server will never take it); `reason` says why, if not accepted.
    `resent` is true if an earlier call or process made the report, `duplicate` if the server had it
    already. `round_id` equals `round_name` for a report by name. `question` is what the round asks.
    """

    round_id: str
    epsilon: float
    state: Literal["accepted", "pending", "refused"]
    resent: bool = False
    duplicate: bool = False
    reason: str | None = None
    round_name: str | None = None
    question: str | None = None


_TICKET_PROBLEMS = ("invalid-ticket", "idempotency-key-reused", "forbidden")
"""The ticket is not of this round, or is of another of its form, or sent another report."""

_REFUSED = "the report will never be counted, and its epsilon stays spent"
_PENDING = "the report is written down, and the same one goes out when you report again"
_ANOTHER_TICKET = (
    "the report is written down, and the same one goes out when you report again "
    "with another ticket (in a form with one for the same question)"
)
_USED_TICKET = "another report was sent under this ticket"
_KEEPS_TICKET = (
    "an earlier try under this ticket had no answer and may have been counted, so the "
    "report goes out under no other"
)


def _was_not_taken(error: _Failure) -> bool:
    """Return whether certainly no try counted: none arrived, or all had their ticket refused."""
    if isinstance(error, RefusedError):
        return error.slug in _TICKET_PROBLEMS and not error.in_doubt
    return isinstance(error, UnansweredError) and not error.in_doubt


def _is_final(error: RefusedError) -> bool:
    """Return whether the server states that the round will never take these bytes.

    A 404 without a known slug means a wrong URL. After a 401 or 403 the user may get a key.
    """
    return error.status in (409, 410, 422) or (
        error.status == 404 and error.slug not in ("", "not-found")
    )


def _item(parameters: RoundParameters, value: Value) -> int:
    """Return the index of a value: a str is always a label, an int always an index.

    "3" is the item with label 3, and 3 the item at index 3. In a round for numbers
    (`ldprecover.estimation.means`) a str, int or float is the number itself.
    """
    items = parameters.items
    if parameters.is_for_numbers:
        return _number_item(value)
    if isinstance(value, str):
        indices = label_indices(items, [value])
        if value not in indices:
            raise UnknownItemError(
                f"the value is not one of the round's {len(items)} items"
            ) from None  # its context may have the value
        return indices[value]
    try:
        index = -1 if isinstance(value, float) else operator.index(value)
    except TypeError:
        raise UnknownItemError("a value is an item's label (str) or its index (int)") from None
    if isinstance(value, bool) or not 0 <= index < len(items):
        raise UnknownItemError(f"an item's index is an integer from 0 to {len(items) - 1}")
    return index


def _number_item(value: Value) -> int:
    """Return the item that a number from -1 to 1 becomes, by the operating system's randomness."""
    from ldprecover.estimation.means import round_numbers

    try:
        number = math.nan if isinstance(value, bool) else float(value)
        return int(round_numbers([number])[0])
    except (ValueError, TypeError, ParameterError):  # their messages contain the value
        raise UnknownItemError("in this round a value is a number from -1 to 1") from None


def submit_entry(client: Client, entry: Entry) -> Accepted:
    """Send the report of an entry; return the answer. Raises as `Client.submit` does."""
    answer = client.submit(entry.round_id, entry.packed, entry.key, ticket=entry.ticket)
    if answer.accepted != 1 or answer.round != entry.round_id:
        raise InvalidAnswerError("the server answers for other reports than the one it was sent")
    return answer


def _receipt(
    entry: Entry, state: Literal["accepted", "pending", "refused"], resent: bool, **rest: Any
) -> Receipt:
    return Receipt(
        round_id=entry.round_id,
        epsilon=entry.epsilon,
        state=state,
        resent=resent,
        round_name=entry.round_name,
        question=entry.question,
        **rest,
    )


class Reporter:
    """Reports one user's value to a round, or to one round of a form, once, over HTTP.

    It fetches and checks the round's parameters, perturbs the value once with the operating
    system's randomness, and writes the report with a random idempotency key to the ledger. Only
    then it sends the report. Every later try, even after a crash, sends the same bytes under the
    same key.

        Reporter("http://localhost:8000", "lunch").report("soup")

    `server` is a URL, with connections that last for one call. Or it is a `Client` that reporters
    share: its key and settings are used, and it stays open. `round` is an id, a name, "current", or
    a `Round` that was fetched before. `ledger` limits the total epsilon over rounds (default:
    `Ledger()`, a file in the user's state directory), `max_epsilon` the epsilon of each round.
    `key` is a report key, for a URL. Raises ArgumentError and LedgerError.

    `ticket` is a ticket, if the round needs one. The report is sent under another ticket only if
    every earlier try had its ticket refused or never reached the server.

    `form`, an id, a name or a `Form`, takes the place of `round`. The user answers one question of
    it, with the whole epsilon of its round. The ticket assigns the question, or the operating
    system's randomness draws it, and the ledger has the draw before the round is fetched. A ledger
    has one report a form, and the other answers never leave the process.

        Reporter(url, form="usage").report({"Which system?": "Linux", "Which editor?": "vim"})
    """

    def __init__(
        self,
        server: str | Client,
        round: str | Round = "current",
        *,
        ledger: Ledger | None = None,
        max_epsilon: float = MAX_EPSILON,
        key: str | None = None,
        ticket: str | None = None,
        form: str | Form | None = None,
    ) -> None:
        if not (real(max_epsilon) or 0) > 0:
            raise ArgumentError("max_epsilon must be a number above 0")
        if isinstance(server, str):
            self._shared: Client | None = None
            self._url = server_url(server)
            self._has_key, is_network = key is not None, True
        elif key is not None:
            raise ArgumentError("key must be given to the client that is shared")
        else:
            self._shared, self._url = server, server.url
            self._has_key, is_network = server.has_key, server.is_network
        self._key = key
        if form is not None and round != "current":
            raise ArgumentError("give either round or form")
        self._round, self._form = round, form
        self.ledger = Ledger() if ledger is None else ledger
        self._max_epsilon = max_epsilon
        self._ticket = None if ticket is None else validate_ticket(ticket)
        for name, secret in (("key", key), ("ticket", ticket)):
            if secret is not None and is_network:
                warn_if_unencrypted(self._url, name, stacklevel=2)

    def report(self, value: Value | Mapping[str, Value]) -> Receipt:
        """Report a value: an item's label (always a str) or its index (always an int).

        In a round for numbers the value is a number from -1 to 1, which is rounded at random to an
        item. For a form it is a mapping of each question to its value, of which only that of the
        drawn question is checked. If the ledger has a report without an answer, that one is sent
        again; the new value must be an item and is otherwise ignored.

        Raises, before anything is perturbed: UnknownItemError, EpsilonTooHighError,
        EpsilonSpentError, AccessError, InconsistentRoundError, AlreadyReportedError, LedgerError.
        Raises RefusedError, UnansweredError or
        InvalidAnswerError as `Client` does. The report then stays in the ledger, its epsilon stays
        spent, and `resume` or `report` sends it again unless the server refused it for good.
        """
        with self._client(self._url) as client:
            round_, value = self._draw(client, value)
            if isinstance(round_, str):
                round_ = client.parameters(round_)
            entry, new = self._claim(round_, value)
            receipt, error = self._deliver(client, entry, self._ticket or entry.ticket, not new)
        if error is not None:
            raise error
        return receipt

    def _draw(
        self, client: Client, value: Value | Mapping[str, Value]
    ) -> tuple[str | Round, Value]:
        """Return the round to report to and its value; of a form, those that were drawn."""
        if self._form is None and not isinstance(value, Mapping):
            return self._round, value
        form = client.form(self._form) if isinstance(self._form, str) else self._form
        if form is None or not isinstance(value, Mapping):
            raise ArgumentError("a form takes a mapping of questions to values, a round a value")
        ids = {round.question: round.id for round in form.rounds}
        if None in ids or not len(form.rounds) == len(ids) == len({*ids.values()}):
            raise InconsistentRoundError("a form's rounds must have distinct ids and questions")
        if ids.keys() != value.keys():
            missing = ", ".join(repr(question) for question in ids if question not in value)
            # The other keys may be values.
            raise ArgumentError(
                "give a value for each question of the form, and for no other; without a value: "
                f"{missing or 'none'}"
            )
        entry = next((each for each in self.ledger.entries() if each.form_id == form.id), None)
        if entry is None and form.rounds[0].state == "closed":
            raise AccessError("the form is closed", None)
        if form.assign == "ticket" and self._ticket is not None:
            round_id = form.rounds[assigned_round(self._ticket, len(form.rounds))].id
        elif entry is not None:
            round_id = entry.round_id
        elif form.assign == "ticket":
            raise AccessError("this form takes tickets alone: give one of its tickets", "ticket")
        else:
            round_id = self.ledger.draw(form.id, secrets.choice(form.rounds).id)
        if entry is not None and entry.round_id != round_id:
            raise AccessError(
                "this ticket is for another question than the report in the ledger: nobody answers "
                "two questions of a form",
                "ticket",
            )
        if round_id in ids.values():
            round_ = client.parameters(round_id)
            if round_.form == form.id and round_.id == round_id == ids.get(round_.question):
                return round_, value[str(round_.question)]
        raise InconsistentRoundError("the form and the round that was drawn contradict each other")

    def resume(self) -> tuple[Receipt, ...]:
        """Send each pending report of the ledger again to its server; return their receipts.

        Failures are in `state` and `reason` of the receipts. Raises LedgerError.
        """
        receipts = []
        for entry in self.ledger.pending():
            with self._client(entry.server_url) as client:
                receipts.append(self._deliver(client, entry, entry.ticket, True)[0])
        return tuple(receipts)

    def _deliver(
        self, client: Client, entry: Entry, ticket: str | None, resent: bool
    ) -> tuple[Receipt, _Failure | None]:
        if ticket is not None:
            entry = self.ledger.begin_try(entry.round_id, ticket)
        try:
            answer = submit_entry(client, entry)
            self.ledger.change(entry.key, state="accepted")
            return _receipt(entry, "accepted", resent, duplicate=answer.duplicate), None
        except _FAILURES as error:
            return self._failed(entry, error, resent), error

    def _client(self, url: str) -> Client | nullcontext[Client]:
        """Return the context of a client of a server; a shared client stays open after it."""
        is_same = url == self._url
        if self._shared is not None:
            return nullcontext(self._shared) if is_same else self._shared.for_server(url)
        # Other servers do not get the key.
        return Client(url, key=self._key if is_same else None)

    def _claim(self, round_: Round, value: Value) -> tuple[Entry, bool]:
        """Return the round's entry in the ledger, and whether this call perturbed the value."""
        parameters = round_.parameters
        if parameters.epsilon > self._max_epsilon:
            raise EpsilonTooHighError(
                f"the round asks for epsilon {parameters.epsilon:g}, above your limit of "
                f"{self._max_epsilon:g}"
            )
        item = _item(parameters, value)

        def perturb() -> bytes:
            self._check_access(round_, self._ticket)
            # Without a generator `perturb` uses the operating system's randomness.
            return pack(parameters.oracle.perturb([item]))

        entry, new = self.ledger.claim(
            server_url=self._url,
            round_id=round_.id,
            digest=round_.digest,
            epsilon=parameters.epsilon,
            perturb=perturb,
            ticket=self._ticket,
            round_name=round_.name,
            question=round_.question or round_.title,
            form_id=round_.form,
        )
        if not new and entry.state == "pending" and entry.server_url != self._url:
            # The bytes and their key are for that server only. This one may claim any round id.
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
            self._check_access(round_, self._ticket or entry.ticket)
        return entry, new

    def _check_access(self, round_: Round, ticket: str | None) -> None:
        """Raise AccessError if the round certainly rejects reports with this key or ticket."""
        if round_.access == "ticket":
            if ticket is None:
                raise AccessError(
                    "this round takes reports with tickets alone: give one of its tickets", "ticket"
                )
        elif round_.access == "key":
            if not self._has_key or self._ticket is not None:
                also = "" if self._ticket is None else ", and no tickets"
                raise AccessError(
                    f"this round takes reports with a report key alone{also}: give a report key",
                    "key",
                )
        elif round_.access == "open":
            if self._ticket is not None:
                raise AccessError("this round takes no tickets: report without one", None)
        else:
            raise AccessError(
                f"this version knows no rounds of access {round_.access[:64]!r}", None
            )

    def _failed(self, entry: Entry, error: _Failure, resent: bool) -> Receipt:
        """Settle an entry that the server will never take; leave all others pending.

        A RefusedError gets a note that says whether and how the report can still be counted.
        """
        state: Literal["pending", "refused"] = "pending"
        if entry.ticket is not None and _was_not_taken(error):
            self.ledger.end_try(entry.round_id)
        if isinstance(error, RefusedError):
            note = _PENDING
            if entry.ticket is not None and error.slug in _TICKET_PROBLEMS:
                in_doubt = error.in_doubt or entry.open_tries > 1  # one is this try
                note = _KEEPS_TICKET if in_doubt else _ANOTHER_TICKET
                if error.slug == "idempotency-key-reused":
                    note = f"{_USED_TICKET}; {note}"
            elif _is_final(error):
                self.ledger.change(entry.key, state="refused", reason=str(error))
                state, note = "refused", _REFUSED
            error.add_note(note)
        return _receipt(entry, state, resent, reason=str(error))
