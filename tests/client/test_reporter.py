"""A reporter perturbs once, writes before it sends, and sends the same bytes again."""

import math
import os
import re
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from tests.client.conftest import Collector, LeavePending, MakeReporter
from tests.client.messages import ACCEPTED

from ldprecover import RoundParameters
from ldprecover.protocols.wire import pack
from ldprecover_client import (
    AlreadyReportedError,
    ArgumentError,
    Client,
    EpsilonTooHighError,
    InconsistentRoundError,
    InvalidAnswerError,
    Ledger,
    LedgerError,
    RefusedError,
    Reporter,
    UnansweredError,
    UnknownItemError,
)
from ldprecover_client._httpx import httpx

PROTOCOLS = ["grr", "oue", "olh"]


class FixedRandomness:
    """os.urandom that repeats the same bytes and counts them."""

    def __init__(self, seed=0) -> None:
        self.generator = np.random.default_rng(seed)
        self.drawn = 0

    def __call__(self, n: int):
        self.drawn += n
        return self.generator.bytes(n)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_report_is_one_report(collector: Collector, reporter: MakeReporter, protocol: str):
    collector.add(protocol)
    user = reporter()
    receipt = user.report("Chicago, IL")
    assert (receipt.round_id, receipt.epsilon, receipt.state) == ("r1", 0.5, "accepted")
    assert (receipt.resent, receipt.duplicate, receipt.reason) == (False, False, None)
    ((key, packed),) = collector.stored.items()
    assert re.fullmatch("[0-9a-f]{32}", key)
    assert len(packed) == RoundParameters(protocol, 0.5, collector.ITEMS).oracle.wire.size
    assert [entry.state for entry in user.ledger.entries()] == ["accepted"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("value", ["Houston, TX", 3])
def test_uses_operating_system_randomness(
    collector: Collector, reporter: MakeReporter, protocol: str, value, monkeypatch
):
    """With the same bytes of os.urandom the oracle alone makes the same report."""
    oracle = RoundParameters(protocol, 0.5, collector.ITEMS).oracle
    monkeypatch.setattr(os, "urandom", FixedRandomness())
    expected = pack(oracle.perturb([3]))
    randomness = FixedRandomness()
    monkeypatch.setattr(os, "urandom", randomness)
    monkeypatch.setattr(np.random, "default_rng", None)
    collector.add(protocol)
    reporter().report(value)
    assert list(collector.stored.values()) == [expected]
    assert randomness.drawn > 0


def test_perturbs_once_for_many_tries(collector: Collector, reporter: MakeReporter, monkeypatch):
    collector.add()
    collector.faults.extend([collector.answer_lost, collector.request_lost, collector.busy(503)])
    randomness = FixedRandomness()
    monkeypatch.setattr(os, "urandom", randomness)
    receipt = reporter().report("Chicago, IL")
    once = FixedRandomness()
    monkeypatch.setattr(os, "urandom", once)
    RoundParameters("olh", 0.5, collector.ITEMS).oracle.perturb([2])
    assert randomness.drawn == once.drawn
    assert len(collector.posts) == 4
    assert len(set(collector.sent)) == 1
    assert receipt.duplicate


@pytest.mark.parametrize("protocol", ["oue", "olh"])
def test_only_report_depends_on_value(
    collector: Collector, reporter: MakeReporter, tmp_path: Path, monkeypatch, protocol: str
):
    """If two values give the same report, requests and ledgers are equal too, to the bit.

    GRR cannot show this: under the same words its reports of two values always differ.
    """
    monkeypatch.setattr("secrets.token_hex", lambda n: "0" * 2 * n)
    collector.add(protocol)
    oracle = RoundParameters(protocol, 0.5, collector.ITEMS).oracle

    def report_of(item, seed):
        monkeypatch.setattr(os, "urandom", FixedRandomness(seed))
        return pack(oracle.perturb([item]))

    seed = next(seed for seed in range(10_000) if report_of(1, seed) == report_of(3, seed))
    witnessed = []
    for name, value in enumerate([1, 3]):
        path = tmp_path / str(name)
        monkeypatch.setattr(os, "urandom", FixedRandomness(seed))
        reporter(ledger=Ledger(path)).report(collector.ITEMS[value])
        requests = [
            (r.method, str(r.url), sorted(r.headers.items()), r.content) for r in collector.requests
        ]
        witnessed.append((requests, path.read_bytes()))
        collector.requests.clear()
        collector.stored.clear()
    assert witnessed[0] == witnessed[1]


LABELS, NUMBERS = ("3", "2", "1", "caf\u00e9"), ("-1", "1")


@pytest.mark.parametrize(
    ("items", "value", "item"),
    [
        (LABELS, "2", 1),
        (LABELS, 2, 2),
        (LABELS, np.int64(2), 2),
        (LABELS, np.str_("2"), 1),
        (LABELS, "cafe\u0301", 3),
        (NUMBERS, -1.0, 0),
        (NUMBERS, 1, 1),
        (NUMBERS, "-1", 0),
        (NUMBERS, "1.0", 1),
        (NUMBERS, 0.0, 1),
        (NUMBERS, "0.25", 1),
    ],
)
def test_value_is_label_index_or_number(
    collector: Collector, reporter: MakeReporter, monkeypatch, items: tuple[str, ...], value, item
):
    """A word of zeros keeps the item, and rounds a number up."""
    collector.add("grr", items=items)
    monkeypatch.setattr(os, "urandom", bytes)
    reporter().report(value)
    assert list(collector.stored.values()) == [item.to_bytes(4, "little")]


@pytest.mark.parametrize(
    ("items", "value", "words"),
    [
        *((Collector.ITEMS, value, "item") for value in ("Springfield", 4, True, 2.0, None)),
        *(
            (NUMBERS, value, "in this round a value is a number from -1 to 1")
            for value in (1.01, -2, "x", "nan", math.inf, True, None, "")
        ),
    ],
)
def test_rejects_other_values_before_perturbing(
    collector: Collector, reporter: MakeReporter, monkeypatch, items, value, words: str
):
    collector.add("grr", items=items)
    user = reporter()
    monkeypatch.setattr(os, "urandom", None)
    with pytest.raises(UnknownItemError, match=words):
        user.report(value)
    assert not collector.posts
    assert user.ledger.entries() == ()


def test_error_does_not_repeat_value(collector: Collector, reporter: MakeReporter):
    """Errors are logged, and others read logs."""
    collector.add()
    with pytest.raises(UnknownItemError) as caught:
        reporter().report("Springfield, and nobody should know")
    assert "Springfield" not in "".join(
        map(str, (caught.value, caught.value.__cause__, caught.value.args))
    )
    assert caught.value.__suppress_context__


def test_same_id_is_same_round(collector: Collector, reporter: MakeReporter):
    collector.add(id="r0")
    collector.add()
    ledger = Ledger.in_memory()
    assert reporter("current", ledger=ledger).report(0).round_id == "r1"
    with pytest.raises(AlreadyReportedError, match="has your report"):
        reporter("r1", ledger=ledger, url="https://mirror.test").report(1)
    assert [post.url.path for post in collector.posts] == ["/rounds/r1/reports"]


def test_pending_report_replaces_second_value(
    collector: Collector, reporter: MakeReporter, leave_pending: LeavePending
):
    collector.add()
    ledger = Ledger.in_memory()
    leave_pending(fault=collector.answer_lost, ledger=ledger)
    receipt = reporter(ledger=ledger).report("Houston, TX")
    assert (receipt.state, receipt.resent, receipt.duplicate) == ("accepted", True, True)
    assert len(collector.posts) == 6
    assert len(set(collector.sent)) == len(collector.stored) == 1


def test_rejects_unknown_item_with_pending_report(
    collector: Collector, reporter: MakeReporter, leave_pending: LeavePending
):
    collector.add()
    ledger = Ledger.in_memory()
    leave_pending(ledger=ledger)
    with pytest.raises(UnknownItemError):
        reporter(ledger=ledger).report("Springfield")
    assert len(collector.posts) == 5


def test_resume_sends_each_under_its_key(
    collector: Collector, reporter: MakeReporter, leave_pending: LeavePending
):
    for i in range(3):
        collector.add(id=f"r{i}")
    ledger = Ledger.in_memory()
    for id in ("r0", "r2"):
        leave_pending(id, collector.answer_lost, ledger=ledger)
    reporter("r1", ledger=ledger).report(0)
    before = dict(collector.stored)
    collector.posts.clear()
    receipts = reporter("r1", ledger=ledger).resume()
    assert [(r.round_id, r.state, r.resent, r.duplicate) for r in receipts] == [
        ("r0", "accepted", True, True),
        ("r2", "accepted", True, True),
    ]
    assert [post.url.path for post in collector.posts] == [
        "/rounds/r0/reports",
        "/rounds/r2/reports",
    ]
    assert collector.stored == before
    assert reporter("r1", ledger=ledger).resume() == ()


def test_resume_returns_failures(
    collector: Collector, reporter: MakeReporter, leave_pending: LeavePending
):
    collector.add(id="r0")
    collector.add(id="r1")
    collector.add(id="r2")
    ledger = Ledger.in_memory()
    for id in ("r0", "r1", "r2"):
        leave_pending(id, ledger=ledger)
    collector.faults.extend([collector.request_lost] * 5)
    collector.rounds["r1"]["state"] = "closed"
    receipts = reporter(ledger=ledger).resume()
    assert [receipt.state for receipt in receipts] == ["pending", "refused", "accepted"]
    assert "connection refused" in receipts[0].reason
    assert "round closed" in receipts[1].reason
    assert [entry.round_id for entry in ledger.pending()] == ["r0"]


@pytest.mark.parametrize(
    ("status", "slug"),
    [(404, "round-not-found"), (409, "round-closed"), (410, "gone"), (422, "invalid-report")],
)
def test_final_refusal_keeps_epsilon_spent(
    collector: Collector, reporter: MakeReporter, status: int, slug: str
):
    collector.add()
    collector.faults.append(lambda send: collector.problem(status, slug))
    user = reporter()
    with pytest.raises(RefusedError, match=slug.replace("-", " ")) as caught:
        user.report(0)
    assert "never be counted, and its epsilon stays spent" in caught.value.__notes__[0]
    assert user.resume() == ()
    with pytest.raises(AlreadyReportedError, match="for good"):
        user.report(0)
    assert len(collector.posts) == 1
    assert user.ledger.spent == 0.5


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (lambda send: Collector.problem(401, "unauthorized"), RefusedError),
        (lambda send: Collector.problem(404, "not-found"), RefusedError),
        (lambda send: Collector.problem(413, "body-too-large"), RefusedError),
        *(
            (Collector.instead(**answer), InvalidAnswerError)
            for answer in (
                {"status_code": 404, "html": "nginx"},
                {"status_code": 202, "content": b"garbage"},
                {"status_code": 202, "json": {**ACCEPTED, "accepted": 2}},
                {"status_code": 202, "json": {**ACCEPTED, "accepted": 1, "round": "r9"}},
            )
        ),
    ],
)
def test_other_answers_leave_report_pending(collector: Collector, reporter, fault, error):
    collector.add()
    collector.faults.append(fault)
    user = reporter()
    with pytest.raises(error) as caught:
        user.report(0)
    assert error is InvalidAnswerError or "the same one goes out" in caught.value.__notes__[0]
    assert [receipt.state for receipt in user.resume()] == ["accepted"]
    assert len(set(collector.sent)) == 1


def test_rejects_invalid_round_before_perturbing(
    collector: Collector, reporter: MakeReporter, monkeypatch
):
    collector.add().update(p=0.99)
    user = reporter()
    monkeypatch.setattr(os, "urandom", None)
    with pytest.raises(InconsistentRoundError, match="states p"):
        user.report(0)
    assert not collector.posts
    assert user.ledger.entries() == ()


@pytest.mark.parametrize(
    ("options", "largest", "words"),
    [({}, 2.0, "2.01, above your limit of 2"), ({"max_epsilon": 1.0}, 1.0, "1.01, above .* of 1")],
)
def test_rejects_epsilon_above_limit_before_perturbing(
    collector, reporter: MakeReporter, monkeypatch, options, largest, words
):
    """Section VII of the paper sweeps epsilon from 0.1 to 1.6."""
    collector.add(epsilon=largest, id="largest")
    collector.add(epsilon=largest + 0.01, id="above")
    assert reporter("largest", **options).report(0).state == "accepted"
    user = reporter("above", **options)
    monkeypatch.setattr(os, "urandom", None)
    with pytest.raises(EpsilonTooHighError, match=words):
        user.report(0)
    assert len(collector.posts) == 1
    assert user.ledger.entries() == ()


@pytest.mark.parametrize("limit", [0, -1, math.nan, True])
def test_rejects_invalid_limit(reporter: MakeReporter, limit):
    with pytest.raises(ArgumentError, match="max_epsilon"):
        reporter(max_epsilon=limit)


def test_changed_parameters_send_nothing(
    collector: Collector, reporter: MakeReporter, leave_pending: LeavePending
):
    """Otherwise a server could get a value perturbed again under the same round id."""
    collector.add(epsilon=0.5)
    ledger = Ledger.in_memory()
    leave_pending(ledger=ledger)
    collector.add(epsilon=0.6)
    with pytest.raises(InconsistentRoundError, match="other parameters"):
        reporter(ledger=ledger).report(0)
    assert len(collector.posts) == 5


def test_dead_server_costs_no_epsilon(collector: Collector):
    def down(request: httpx.Request) -> NoReturn:
        raise httpx.ConnectError("refused")

    client = Client(collector.URL, retries=collector.AT_ONCE, transport=httpx.MockTransport(down))
    user = Reporter(client, ledger=Ledger.in_memory())
    with pytest.raises(UnansweredError):
        user.report(0)
    assert user.ledger.spent == 0


def test_unwritable_ledger_sends_nothing(
    collector: Collector, reporter: MakeReporter, tmp_path: Path
):
    collector.add()
    path = tmp_path / "ledger.sqlite3"
    user = reporter(ledger=Ledger(path))
    path.unlink()
    with pytest.raises(LedgerError):
        user.report(0)
    assert not collector.posts


def test_rejects_invalid_url_before_ledger(reporter: MakeReporter, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ArgumentError):
        Reporter("collector.test")
    assert not list(tmp_path.iterdir())


def test_pending_report_goes_to_its_server_only(
    collector: Collector, reporter: MakeReporter, leave_pending: LeavePending
):
    """Otherwise a server that copies another's round id would get the bytes and the key."""
    collector.add()
    ledger = Ledger.in_memory()
    leave_pending(ledger=ledger)
    sent = len(collector.posts)
    with pytest.raises(InconsistentRoundError, match=re.escape(collector.URL)):
        reporter("r1", ledger=ledger, url="https://mirror.test").report(0)
    assert len(collector.posts) == sent
    assert [receipt.state for receipt in reporter("r1", ledger=ledger).resume()] == ["accepted"]
