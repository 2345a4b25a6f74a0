"""Keys and tickets: checked before anything is perturbed, and replaceable for the same report."""

import contextlib
import itertools
import os
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.conftest import Collector, MakeReporter, Send, new_reporter

from ldprecover_client import AccessError, ArgumentError, ClientError, Ledger, RefusedError
from ldprecover_client._httpx import httpx

RIGHT, WRONG, WORSE, OTHER = (letter * 22 + "." + letter * 22 for letter in "rwxo")


@pytest.fixture
def ticketed(collector: Collector):
    """A round of access "ticket" with two tickets."""
    collector.add(access="ticket")
    collector.tickets |= {RIGHT, OTHER}
    return collector


@pytest.mark.parametrize(
    ("access", "options", "needs", "words"),
    [
        ("ticket", {}, "ticket", "give one of its tickets"),
        ("ticket", {"key": Collector.KEY}, "ticket", "give one of its tickets"),
        ("key", {}, "key", "give a report key"),
        ("key", {"ticket": RIGHT}, "key", "and no tickets: give a report key"),
        ("key", {"ticket": RIGHT, "key": Collector.KEY}, "key", "and no tickets"),
        ("open", {"ticket": RIGHT}, None, "takes no tickets: report without one"),
        ("letter", {}, None, "knows no rounds of access 'letter'"),
    ],
)
def test_access_error_comes_before_perturbing(
    collector: Collector, reporter: MakeReporter, monkeypatch, access, options, needs, words: str
):
    collector.add(access=access)
    user = reporter(**options)
    monkeypatch.setattr(os, "urandom", None)
    with pytest.raises(AccessError, match=words) as caught:
        user.report(0)
    assert caught.value.needs == needs
    assert not collector.posts
    assert user.ledger.entries() == ()


@pytest.mark.parametrize(
    ("access", "options"),
    [
        ("open", {"key": Collector.KEY}),
        ("key", {"key": Collector.KEY}),
        ("ticket", {"ticket": RIGHT, "key": Collector.KEY}),
        ("ticket", {"ticket": f"{RIGHT}\r"}),
    ],
)
def test_reports_with_required_key_or_ticket(
    collector: Collector, reporter: MakeReporter, access, options
):
    collector.add(access=access)
    collector.tickets.add(RIGHT)
    assert reporter(**options).report(0).state == "accepted"


@pytest.mark.parametrize(
    "ticket",
    [
        "",
        RIGHT[:-1],
        RIGHT + "r",
        RIGHT.replace(".", ":"),
        RIGHT[:22] + "\n" + RIGHT[22:],
        "é" + RIGHT,
    ],
)
def test_rejects_malformed_ticket_before_perturbing(
    ticketed: Collector, reporter: MakeReporter, ticket: str
):
    with pytest.raises(ArgumentError, match="a ticket must be 22 characters, a dot, and 22 more"):
        reporter(ticket=ticket)
    assert not ticketed.requests


def test_wrong_ticket_can_be_replaced(ticketed: Collector, reporter: MakeReporter):
    ledger = Ledger.in_memory()
    for wrong in (WRONG, WORSE, WRONG):
        with pytest.raises(RefusedError, match="invalid ticket") as caught:
            reporter(ledger=ledger, ticket=wrong).report("Chicago, IL")
        assert "report again with another ticket" in caught.value.__notes__[0]
    receipt = reporter(ledger=ledger, ticket=RIGHT).report("Houston, TX")
    assert (receipt.state, receipt.resent, receipt.duplicate) == ("accepted", True, False)
    tickets, reports = zip(*ticketed.sent, strict=True)
    assert tickets == (WRONG, WORSE, WRONG, RIGHT)
    assert len(set(reports)) == 1
    assert ticketed.stored == {RIGHT: reports[0]}
    assert ledger.spent == 0.5


def test_used_ticket_can_be_replaced(ticketed: Collector, reporter: MakeReporter):
    ticketed.stored[OTHER] = b"another report"
    ledger = Ledger.in_memory()
    with pytest.raises(RefusedError, match="idempotency key reused") as caught:
        reporter(ledger=ledger, ticket=OTHER).report(0)
    assert "another report was sent under this ticket" in caught.value.__notes__[0]
    assert reporter(ledger=ledger, ticket=RIGHT).report(0).state == "accepted"


def request_cut(send: Send) -> NoReturn:
    """A fault: the request is cut off, which the client cannot tell from a lost response."""
    raise httpx.ReadError("connection reset")


@pytest.mark.parametrize(
    "fault",
    [
        Collector.answer_lost,
        request_cut,
        Collector.busy(503),
        Collector.instead(202, content=b"garbage"),
        Collector.instead(502, text="nginx"),
        lambda send: Collector.problem(501, "not-implemented"),
        lambda send: Collector.problem(413, "body-too-large"),
    ],
    ids=["answer lost", "request cut", "503", "garbage", "502", "501", "413"],
)
def test_open_try_keeps_ticket(ticketed: Collector, reporter: MakeReporter, fault):
    ticketed.faults.extend([fault] * 5)
    ledger = Ledger.in_memory()
    with pytest.raises(ClientError):
        reporter(ledger=ledger, ticket=OTHER).report(0)
    ticketed.faults.clear()
    assert reporter(ledger=ledger, ticket=RIGHT).report(0).state == "accepted"
    assert list(ticketed.stored) == [OTHER]
    assert {ticket for ticket, _ in ticketed.sent} == {OTHER}


def test_doubt_within_call_keeps_ticket(ticketed: Collector, reporter: MakeReporter):
    ticketed.faults.append(request_cut)
    ledger = Ledger.in_memory()
    for ticket in (WRONG, RIGHT):
        with pytest.raises(RefusedError, match="invalid ticket") as caught:
            reporter(ledger=ledger, ticket=ticket).report(0)
        assert "goes out under no other" in caught.value.__notes__[0]
    assert {ticket for ticket, _ in ticketed.sent} == {WRONG}
    assert ticketed.stored == {}


def test_other_process_open_try_keeps_ticket(ticketed: Collector, reporter: MakeReporter):
    """While one try is refused, another is open: the ticket stays until that one is answered."""
    ledger = Ledger.in_memory()

    def other_begins(send: Send):
        ledger.begin_try("r1", WRONG)
        return send()

    ticketed.faults.append(other_begins)
    for ticket in (WRONG, RIGHT):
        with pytest.raises(RefusedError, match="invalid ticket"):
            reporter(ledger=ledger, ticket=ticket).report(0)
    ledger.end_try("r1")
    assert reporter(ledger=ledger, ticket=RIGHT).report(0).state == "accepted"
    assert [ticket for ticket, _ in ticketed.sent] == [WRONG, WRONG, RIGHT]


@pytest.mark.parametrize("doubt", [True, False])
def test_wrong_key_can_be_replaced(collector: Collector, reporter: MakeReporter, doubt):
    """The report keeps its idempotency key, so another try is safe even after a lost response."""
    collector.add(access="key")
    ledger = Ledger.in_memory()
    if doubt:
        collector.faults.append(request_cut)
    with pytest.raises(RefusedError, match="unauthorized"):
        reporter(ledger=ledger, key="a wrong key").report(0)
    with pytest.raises(AccessError):
        reporter(ledger=ledger).report(0)
    assert reporter(ledger=ledger, key=collector.KEY).report(0).state == "accepted"
    assert len(set(collector.sent)) == len(collector.stored) == 1


class Crash(BaseException):
    """The end of the process at this point."""


FAULTS = {
    "sent on": lambda send: send(),
    "answer lost": Collector.answer_lost,
    "request cut": request_cut,
    "never sent": Collector.request_lost,
    "busy": Collector.busy(503),
    "limited": Collector.busy(429),
    "crash before sending": lambda send: crash(),
    "crash before the answer": lambda send: (send(), crash())[0],
}
SURE = {"sent on", "never sent", "limited"}


def crash() -> NoReturn:
    raise Crash


STEPS = st.tuples(
    st.sampled_from([RIGHT, OTHER, WRONG, WORSE, None]),
    st.lists(st.sampled_from(list(FAULTS)), max_size=3),
    st.sampled_from(["report", "resume"]),
)


@given(steps=st.lists(STEPS, max_size=6))
def test_report_counts_once_for_any_faults(steps):
    """Any order of tickets, lost requests and responses, and crashes.

    The bytes are always the same. Another ticket is used only if every earlier try was certainly
    not taken. If nothing is in doubt, the right ticket gets the report counted.
    """
    collector = Collector()
    collector.add(access="ticket")
    collector.tickets |= {RIGHT, OTHER}
    ledger = Ledger.in_memory()
    befallen = []

    def watched(name: str):
        def fault(send: Send):
            befallen.append(name)
            return FAULTS[name](send)

        return fault

    def attempt(ticket: str, act="report"):
        user = new_reporter(collector, ledger=ledger, ticket=ticket)
        try:
            return user.report(0) if act == "report" else user.resume()
        except (ClientError, Crash):
            return None

    for ticket, faults, act in steps:
        collector.faults = type(collector.faults)(map(watched, faults))
        attempt(ticket, act)
    collector.faults.clear()
    attempt(RIGHT)
    sent = [(ticket, packed) for ticket, packed in collector.sent]
    assert len({packed for _, packed in sent}) == 1
    assert len(collector.stored) <= 1
    if set(befallen) <= SURE:
        assert len(collector.stored) == 1
    tickets = [ticket for ticket, _ in itertools.groupby(ticket for ticket, _ in sent)]
    taken = next(iter(collector.stored), None)
    assert taken is None or tickets[-1] == taken, "after the one that took it there is no other"


@pytest.mark.parametrize(("step", "sent"), [("begin_try", [RIGHT]), ("end_try", [WRONG, WRONG])])
def test_crash_at_either_end_of_try(
    ticketed: Collector, reporter: MakeReporter, monkeypatch, step: str, sent
):
    """Before its begin another ticket may be used; before its end the try stays open."""
    ledger = Ledger.in_memory()
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, step, lambda *args: crash())
        with pytest.raises(Crash):
            reporter(ledger=ledger, ticket=WRONG).report(0)
    with contextlib.suppress(RefusedError):
        reporter(ledger=ledger, ticket=RIGHT).report(0)
    assert [ticket for ticket, _ in ticketed.sent] == sent
