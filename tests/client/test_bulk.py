import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.client.conftest import Collector, Send

from ldprecover import ParameterError, RoundParameters
from ldprecover.protocols import PROTOCOLS
from ldprecover.protocols.wire import pack
from ldprecover_client import (
    ArgumentError,
    BulkReceipt,
    Client,
    InvalidAnswerError,
    RefusedError,
    Retries,
    UnansweredError,
    bulk,
    submit_reports,
)
from ldprecover_client._httpx import httpx

Submit = Callable[..., BulkReceipt]

SECRET = bytes(range(16))


@pytest.fixture
def submit(collector: Collector) -> Submit:
    """Submit to the collector's r1 in memory, without waiting."""

    def call(
        reports: NDArray[Any],
        key: str | None = None,
        retries: Retries = collector.AT_ONCE,
        answer: Callable[[httpx.Request], httpx.Response] = collector,
        **options,
    ) -> BulkReceipt:
        transport = httpx.MockTransport(answer)
        with Client(collector.URL, key=key, retries=retries, transport=transport) as client:
            return submit_reports(client, "r1", reports, **options)

    return call


def reports_of(collector: Collector, protocol: str = "olh", n: int = 1000):
    collector.add(protocol)
    oracle = RoundParameters(protocol, 0.5, collector.ITEMS).oracle
    rng = np.random.default_rng(1)
    return oracle.perturb(rng.integers(0, 4, n), rng)


def rows(data, reports: NDArray[Any]):
    """Return the reports in some bytes, each as bytes, sorted."""
    size = reports.itemsize * (reports.shape[1] if reports.ndim > 1 else 1)
    return sorted(data[i : i + size] for i in range(0, len(data), size))


@pytest.mark.parametrize("protocol", ["grr", "oue", "olh"])
@pytest.mark.parametrize("batch_size", [1, 7, 1000, 10_000])
def test_every_report_is_stored_once(
    collector: Collector, submit: Submit, protocol: str, batch_size
):
    reports = reports_of(collector, protocol, 100 if batch_size == 1 else 1000)
    assert submit(reports, batch_size=batch_size).accepted == len(reports)
    assert rows(b"".join(collector.stored.values()), reports) == rows(pack(reports), reports)
    assert len(collector.stored) == -(-len(reports) // batch_size)


def test_every_report_is_stored_once_despite_losses(collector: Collector, submit: Submit):
    reports = reports_of(collector)
    losses = [
        collector.answer_lost,
        collector.request_lost,
        collector.busy(503),
        collector.busy(429),
    ]
    collector.faults.extend(losses * 10)
    assert (
        submit(reports, batch_size=10, retries=Retries(attempts=50, base=0, longest=0)).accepted
        == 1000
    )
    assert rows(b"".join(collector.stored.values()), reports) == rows(pack(reports), reports)
    assert len(collector.posts) == 140


def test_progress_reaches_end_in_callers_thread(collector: Collector, submit: Submit):
    updates, threads = [], set()

    def progress(done: int, total: int) -> None:
        updates.append((done, total))
        threads.add(threading.current_thread())

    submit(reports_of(collector), batch_size=100, progress=progress)
    assert updates == [(done, 1000) for done in range(0, 1001, 100)]
    assert threads == {threading.current_thread()}


def test_connections_work_concurrently(collector: Collector, submit: Submit):
    """Each of the first submissions waits until there are as many as connections."""
    together = threading.Barrier(3, timeout=60)

    def wait_for_the_others(send: Send):
        together.wait()
        return send()

    collector.faults.extend([wait_for_the_others] * 3)
    assert submit(reports_of(collector), batch_size=100, connections=3).accepted == 1000


def test_connections_are_kept_alive(collector: Collector):
    reports = reports_of(collector)
    with collector.listening() as url:
        assert submit_reports(url, "r1", reports, batch_size=50, connections=2).accepted == 1000
    assert len(collector.posts) == 20
    assert 1 <= len(collector.connections) <= 3, "one fetches the parameters"


def test_no_reports_make_no_request(collector: Collector, submit: Submit):
    assert submit(reports_of(collector)[:0]).accepted == 0
    assert not collector.requests


def test_submission_fits_body_limit(collector: Collector, submit: Submit, monkeypatch):
    monkeypatch.setattr(bulk, "MAX_BODY_BYTES", 1000)
    reports = reports_of(collector)
    assert submit(reports).accepted == 1000
    assert max(len(post.content) for post in collector.posts) == 996, "166 reports of 6 bytes"


@pytest.mark.parametrize("key", [Collector.KEY, None])
def test_rejection_with_key_names_batch_size(collector: Collector, submit: Submit, key):
    """Without a key one report is the limit, and the server's reason says so."""
    reports = reports_of(collector)
    collector.faults.append(lambda send: collector.problem(413, "body-too-large"))
    with pytest.raises(RefusedError, match="500 reports of 3000 bytes in one sub") as caught:
        submit(reports, key=key, batch_size=500, connections=1)
    assert ("take a smaller batch_size" in str(caught.value)) is (key is not None)


def test_submission_fits_counting_limit(collector: Collector, submit: Submit, monkeypatch):
    for protocol in PROTOCOLS:
        reports = reports_of(collector, protocol)
        oracle = RoundParameters(protocol, 0.5, collector.ITEMS).oracle
        monkeypatch.setattr(bulk, "MAX_HASH_TESTS", 250 * len(collector.ITEMS))
        assert submit(reports).accepted == 1000
        assert len(collector.stored) == (4 if oracle.hash_tests else 1)
        collector.stored.clear()


def test_rate_limited_submission_waits_while_others_succeed(collector: Collector, submit: Submit):
    """Its retries end while another submission is accepted: it starts again under its key."""
    reports = reports_of(collector)
    first = pack(reports[:500])
    begun, taken = threading.Event(), threading.Event()
    keys: list[Any] = []

    def answer(request: httpx.Request):
        if request.content != first:
            if request.method == "POST":
                begun.wait(60)
            return collector(request)
        if len(keys) == 3:
            return collector(request)
        keys.append(request.headers["Idempotency-Key"])
        begun.set()
        if len(keys) == 3:
            taken.wait(60)
        return collector.problem(429, "rate-limited", **{"Retry-After": "0"})

    options = {"answer": answer, "retries": Retries(attempts=3, base=0, longest=0)}

    def moved(done: int, total: int) -> None:
        if done:
            taken.set()

    submitted = submit(reports, batch_size=500, connections=2, progress=moved, **options)
    assert submitted.accepted == 1000
    assert collector.stored[keys[0]] == first
    assert len(set(keys)) == 1
    assert len(collector.stored) == 2


@pytest.mark.parametrize(
    ("fault", "words"),
    [(Collector.busy(429), "429"), (Collector.request_lost, "connection refused")],
)
def test_gives_up_without_success(collector: Collector, submit: Submit, fault, words: str):
    collector.faults.extend([fault] * 1000)
    with pytest.raises(UnansweredError, match=words):
        submit(reports_of(collector), batch_size=500)


def test_refusal_stops_rest_and_notes_count(collector: Collector, submit: Submit):
    """One connection with one submission queued: nothing after the refusal is sent."""
    reports = reports_of(collector)
    collector.faults.extend([lambda send: send()] * 3)
    collector.faults.append(lambda send: collector.problem(409, "round-closed"))
    with pytest.raises(RefusedError, match="round closed") as caught:
        submit(reports, batch_size=10, connections=1)
    assert (
        f"{10 * len(collector.stored)} of 1000 reports were accepted"
        in traceback.format_exception(caught.value)[-1]
    )
    assert len(collector.posts) < 10


def test_failure_wakes_waiting_retries(collector: Collector, submit: Submit):
    """One submission would wait for an hour; the failure of another ends that wait."""
    waiting = threading.Event()
    reports = reports_of(collector)
    first, second = pack(reports[:500]), pack(reports[500:])

    def answer(request: httpx.Request):
        if request.content == first:
            waiting.set()
            return httpx.Response(503, headers={"Retry-After": "3600"})
        assert request.content == second
        waiting.wait(60)
        return collector.problem(409, "round-closed")

    patient = Retries(attempts=9, longest=3600, total=36_000)
    with pytest.raises(RefusedError):
        submit(
            reports,
            batch_size=500,
            connections=2,
            answer=answer,
            retries=patient,
            oracle=RoundParameters("olh", 0.5, collector.ITEMS).oracle,
        )


def test_failing_progress_stops_rest(collector: Collector, submit: Submit):
    def progress(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        submit(reports_of(collector), batch_size=10, connections=1, progress=progress)
    assert len(collector.posts) < 10


def test_rejects_wrong_accepted_count(collector: Collector, submit: Submit):
    reports = reports_of(collector)
    collector.faults.append(
        collector.instead(202, json={"round": "r1", "accepted": 999, "duplicate": False})
    )
    with pytest.raises(InvalidAnswerError, match="accepted 999 of a submission of 1000"):
        submit(reports)


@pytest.mark.parametrize("fault", ["answer_lost", "request_lost"])
@pytest.mark.parametrize("after", [0, 3, 9])
def test_second_call_with_secret_sends_the_rest(
    collector: Collector, submit: Submit, fault: str, after: int
):
    reports = reports_of(collector, n=950)
    options: dict[str, Any] = {"batch_size": 100, "connections": 1, "secret": SECRET}
    collector.faults.extend([lambda send: send()] * after + [getattr(collector, fault)])
    with pytest.raises(UnansweredError):
        submit(reports, retries=Retries(attempts=1), **options)
    stored = sum(len(body) // 6 for body in collector.stored.values())
    assert submit(reports, **options) == BulkReceipt(950, stored)
    assert rows(b"".join(collector.stored.values()), reports) == rows(pack(reports), reports)
    assert submit(reports, **options) == BulkReceipt(950, 950)


def test_rejects_other_reports_under_a_secret(collector: Collector, submit: Submit):
    reports = reports_of(collector)
    submit(reports, secret=SECRET)
    with pytest.raises(RefusedError) as caught:
        submit(reports[::-1].copy(), secret=SECRET)
    assert caught.value.slug == "idempotency-key-reused"
    assert len(collector.stored) == 1


def test_keys_depend_on_secret_and_batch_size(collector: Collector, submit: Submit):
    """Without a secret each run has new keys: its reports are another population's."""
    reports = reports_of(collector)
    for secret in (SECRET, SECRET[::-1], None, None):
        submit(reports, batch_size=100, secret=secret)
    submit(reports, batch_size=999, secret=SECRET)
    assert len(collector.stored) == 42


@pytest.mark.parametrize(
    "wrong", [{"batch_size": 0}, {"connections": 0}, {"connections": 65}, {"secret": b"short"}]
)
def test_rejects_sizes_out_of_range(collector: Collector, submit: Submit, wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        submit(reports_of(collector), **wrong)


TICKETS = [f"{i:022d}.{i:022d}" for i in range(10)]


def test_each_report_has_its_ticket(collector: Collector, submit: Submit):
    reports = reports_of(collector, n=10)
    collector.rounds["r1"]["access"] = "ticket"
    collector.tickets |= set(TICKETS)
    assert submit(reports, tickets=TICKETS).accepted == 10
    assert [collector.stored[ticket] for ticket in TICKETS] == [
        pack(reports[i : i + 1]) for i in range(10)
    ]


@pytest.mark.parametrize(
    ("tickets", "words"),
    [
        (TICKETS[:9], "10 reports need as many tickets, and there are 9 different ones"),
        (TICKETS[:9] + TICKETS[:1], "there are 9 different ones"),
        ([*TICKETS[:9], "nonsense"], "a ticket must be 22 characters"),
    ],
    ids=["too few", "one twice", "none at all"],
)
def test_rejects_bad_tickets_before_sending(
    collector: Collector, submit: Submit, tickets, words: str
):
    with pytest.raises(ArgumentError, match=words):
        submit(reports_of(collector, n=10), tickets=tickets)
    assert not collector.posts


@pytest.mark.parametrize("has_oracle", [False, True])
def test_sends_nothing_but_reports(collector: Collector, submit: Submit, has_oracle: bool):
    """Integers of eight bytes would count as twice as many reports."""
    collector.add("grr")
    oracle = RoundParameters("grr", 0.5, collector.ITEMS).oracle if has_oracle else None
    wrong: list[Any] = [[0.0, 3.0], b"\0" * 8, np.array([-1, 3]), np.array([2**32])]
    for reports in wrong:
        with pytest.raises(ParameterError, match="reports must be"):
            submit(reports, oracle=oracle)
    assert not collector.posts
    assert submit(np.array([0, 3], ">i8"), oracle=oracle).accepted == 2
    assert list(collector.stored.values()) == [b"\0\0\0\0\3\0\0\0"]


def test_sends_bits_of_reports_packed(collector: Collector, submit: Submit):
    """Unpacked, each row of four bits would be four reports of a byte."""
    collector.add("oue")
    bits = np.eye(4, dtype=np.uint8)
    assert submit(bits).accepted == 4
    assert list(collector.stored.values()) == [b"\1\2\4\10"]
