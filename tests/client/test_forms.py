"""Forms against a real server: of each person one report counts, and no other answer leaves."""

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.client.conftest import Collector
from tests.client.test_reporter import FixedRandomness
from tests.forked import start_python

from ldprecover.rounds.tickets import assigned_round
from ldprecover_attacker import MGA, FormCampaign
from ldprecover_client import (
    AccessError,
    AlreadyReportedError,
    Client,
    ClientError,
    Form,
    FormPopulation,
    InconsistentRoundError,
    Ledger,
    Population,
    RefusedError,
    Reporter,
)
from ldprecover_client._httpx import httpx

QUESTIONS = ("Which system?", "Which editor?", "Which shell?")
ANSWERS: dict[str, Any] = dict.fromkeys(QUESTIONS, "1")
both = pytest.mark.parametrize("assign", ["ticket", "client"])


def open_form(admin: Client, assign: str, tickets: int = 1) -> tuple[Form, Any]:
    rounds = [
        {"question": each, "protocol": "oue", "epsilon": 1.0, "domain_size": 2}
        for each in QUESTIONS
    ]
    form = admin.open_form(assign=assign, rounds=rounds)
    return form, admin.mint_form_tickets(form.id, tickets) if assign == "ticket" else None


def ns_of(admin: Client, form: Form) -> list[int]:
    return [round.n for round in admin.form(form.id).rounds]


class Recorder(httpx.HTTPTransport):
    """Keeps what it sends. Of each request a letter says whether its client crashes before it is
    sent (c) or its answer is lost (l).
    """

    def __init__(self, faults: str) -> None:
        super().__init__(verify=False)  # reading the authorities' certificates takes 20 ms
        self.faults = iter(faults)
        self.sent: list[Any] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append((request.url.path, request.headers.raw, request.content))
        fault = next(self.faults, "")
        if fault == "c":
            raise KeyboardInterrupt
        response = super().handle_request(request)
        if fault == "l":
            raise httpx.ReadError("connection reset")
        return response


def report(
    admin: Client, form: Form, ledger: Ledger, ticket: Any, faults="", answers=ANSWERS
) -> tuple[list[Any], Any]:
    """Return what was sent, and the question answered or the error."""
    transport = Recorder(faults)
    with Client(admin.url, transport=transport, retries=Collector.AT_ONCE) as client:
        user = Reporter(client, form=form.id, ledger=ledger, ticket=ticket)
        try:
            return transport.sent, user.report(answers).question
        except (KeyboardInterrupt, ClientError) as error:
            return transport.sent, type(error)


@both
@pytest.mark.parametrize("faults", ["-c", "-l-c", "--c", "--lc", "--lllll", ""])
def test_draw_and_report_outlive_any_fault(
    admin: Client, assign: str, faults: str, tmp_path: Path, monkeypatch
):
    """Of form, parameters and report. The next draw or ticket would be for another question.

    Of 40 tickets none is for one of the questions 3 in 10^7 times.
    """
    draws = iter(range(3))
    monkeypatch.setattr("secrets.choice", lambda rounds: rounds[next(draws)])
    form, tickets = open_form(admin, assign, 40)
    by_position = {assigned_round(ticket, 3): ticket for ticket in tickets or []}
    report(admin, form, Ledger(tmp_path / "ledger"), by_position.get(0), faults)
    ledger = Ledger(tmp_path / "ledger")
    Reporter(admin.url, ledger=ledger).resume()
    report(admin, form, ledger, by_position.get(0))
    if by_position:
        assert report(admin, form, ledger, by_position[1])[1] is AccessError
    (entry,) = ledger.entries()
    assert (entry.round_id, entry.state) == (form.rounds[0].id, "accepted")
    assert ns_of(admin, form) == [1, 0, 0]


def test_other_answers_never_leave(admin: Client, tmp_path: Path, monkeypatch):
    """Every byte sent and kept is the same whatever they are, also what is no item."""
    form, (ticket,) = open_form(admin, "ticket")
    monkeypatch.setattr("secrets.token_hex", lambda n: "0" * 2 * n)
    witnessed = []
    position = assigned_round(ticket, 3)
    for other in ("0", "1", "a secret"):
        monkeypatch.setattr(os, "urandom", FixedRandomness())
        answers = {**dict.fromkeys(QUESTIONS, other), QUESTIONS[position]: "1"}
        result = report(admin, form, Ledger(tmp_path / other), ticket, "", answers)
        witnessed.append((result, (tmp_path / other).read_bytes()))
    assert witnessed[0] == witnessed[1] == witnessed[2]
    round = f"/rounds/{form.rounds[position].id}"
    assert [path for path, *_ in result[0]] == [
        f"/forms/{form.id}",
        f"{round}/parameters",
        f"{round}/reports",
    ]


def test_client_draws_uniformly(admin: Client):
    """Chi-squared with two degrees of freedom: exp(-x/2) = 10^-6 of right clients fail.

    Shares that are off by 43 % of themselves are missed once in 100.
    """
    form, _ = open_form(admin, "client")
    samples = Counter[str]()

    def crash(request: httpx.Request) -> NoReturn:
        samples[request.url.path] += 1
        raise KeyboardInterrupt

    with Client(admin.url, transport=httpx.MockTransport(crash)) as client:
        for _ in range(300):
            with suppress(KeyboardInterrupt):
                Reporter(client, form=form, ledger=Ledger.in_memory()).report(ANSWERS)
    assert (len(samples), samples.total()) == (3, 300)
    assert sum((n - 100) ** 2 / 100 for n in samples.values()) < 27.6


PARALLEL = """
import sys
from concurrent.futures import ThreadPoolExecutor
from ldprecover_client import AlreadyReportedError, Ledger, Reporter

url, form, path, *questions = sys.argv[1:]

def report(value):
    try:
        reporter = Reporter(url, form=form, ledger=Ledger(path))
        print(reporter.report(dict.fromkeys(questions, value)).question)
    except AlreadyReportedError:
        pass

with ThreadPoolExecutor(4) as threads:
    list(threads.map(report, [0, 1, 0, 1]))
"""


def test_parallel_reporters_of_one_ledger_answer_one_question(admin: Client, tmp_path: Path):
    """Three processes with four threads each: their own draws would agree 1 in 3^11 times."""
    form, _ = open_form(admin, "client")
    arguments = ("-c", PARALLEL, admin.url, form.id, str(tmp_path / "ledger"), *QUESTIONS)
    children = [
        start_python(*arguments, folder=Path.cwd(), environment=os.environ) for _ in range(3)
    ]
    outputs, errors = zip(*[child.communicate() for child in children], strict=True)
    assert not any(errors)
    (entry,) = Ledger(tmp_path / "ledger").entries()
    assert {*"".join(outputs).splitlines()} == {entry.question}
    assert sum(ns_of(admin, form)) == 1


@both
def test_ledger_has_one_report_a_form(admin: Client, assign: str):
    """Also if its first report named the round, and after a ticket that did not count."""
    form, tickets = open_form(admin, assign, 40)
    by_position = {assigned_round(ticket, 3): ticket for ticket in tickets or []}
    ledger = Ledger.in_memory()
    wrong = "A" * 22 + "." + "A" * 22 if tickets else None  # of the first question
    with suppress(RefusedError):
        Reporter(admin, form.rounds[0].id, ledger=ledger, ticket=wrong).report(0)
    if tickets:
        assert report(admin, form, ledger, by_position[1])[1] is AccessError
        with pytest.raises(AlreadyReportedError, match="another question"):
            Reporter(admin, form.rounds[1].id, ledger=ledger, ticket=by_position[1]).report(0)
        assert report(admin, form, ledger, by_position[0])[1] == QUESTIONS[0]
    assert report(admin, form, ledger, by_position.get(0))[1] is AlreadyReportedError
    assert [entry.form_id for entry in ledger.entries()] == [form.id]
    assert ns_of(admin, form) == [1, 0, 0]
    admin.close_form(form.id)
    fresh = Ledger.in_memory()
    assert report(admin, form, fresh, by_position.get(0))[1] is AccessError
    assert fresh.spent == 0


def test_right_ticket_sends_what_another_of_the_form_did_not(admin: Client):
    form, tickets = open_form(admin, "ticket", 40)
    by_position = {assigned_round(ticket, 3): ticket for ticket in tickets}
    ledger = Ledger.in_memory()
    with pytest.raises(RefusedError) as caught:
        Reporter(admin, form.rounds[0].id, ledger=ledger, ticket=by_position[1]).report(1)
    assert caught.value.slug == "forbidden"
    assert report(admin, form, ledger, by_position[0])[1] == QUESTIONS[0]


def test_form_that_repeats_a_round_or_question_is_inconsistent(admin: Client):
    form, _ = open_form(admin, "client")
    for fields in ({"id": form.rounds[0].id}, {"question": QUESTIONS[0]}, {"question": None}):
        rounds = [form.rounds[0], form.rounds[1].model_copy(update=fields)]
        lying = form.model_copy(update={"rounds": rounds})
        with pytest.raises(InconsistentRoundError, match="distinct"):
            Reporter(admin, form=lying, ledger=Ledger.in_memory()).report(ANSWERS)


@both
def test_simulated_users_report_once_each(admin: Client, assign: str):
    form, tickets = open_form(admin, assign, 80)
    assigned = [assigned_round(ticket, 3) for ticket in tickets or []]
    users = FormPopulation([Population([2, 1], 60, seed=seed) for seed in range(3)])
    receipts = users.report_to(admin, form, tickets=tickets, progress=None)
    assert [each.accepted for each in receipts] == ns_of(admin, form)
    attacks = dict.fromkeys(QUESTIONS[1:], MGA([1]))
    results = FormCampaign(admin, form.id, attacks, 19, 1, tickets=tickets and tickets[60:]).run()
    expected = [assigned[60:79].count(i) for i in (1, 2)] if tickets else [10, 9]
    assert [each.accepted for each in results] == expected
    assert sum(ns_of(admin, form)) == 60 + sum(expected)
