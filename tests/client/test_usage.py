"""A program that answers a series: when it asks, what it sends, and what it never sends twice."""

import itertools
import threading
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from tests.client.conftest import Collector, Send
from tests.client.test_ledger import run_together

from ldprecover_client import Client, Ledger, Reporter, UnknownItemError, Usage
from ldprecover_client._httpx import httpx

DAY = 86_400.0
PERIOD = 10 * DAY
SYSTEM, EDITOR = "Which system?", "Which editor?"
ITEMS = ("a", "b", "c")
FORM = {
    "epsilon": 0.5,
    "questions": [{"question": each, "items": [*ITEMS]} for each in (SYSTEM, EDITOR)],
}
ANSWERS = {SYSTEM: "a", EDITOR: "b"}


@dataclass
class SeriesCollector(Collector):
    """A collector with a series, of which a form may be open."""

    number: int = 0
    current: dict[str, str] | None = None
    forms: dict[str, dict[str, Any]] = field(default_factory=dict)

    def next(self, only: str = "", **options: Any) -> None:
        """Close the form, and open the next one, with options of all its rounds or of one."""
        for round_ in self.rounds.values():
            round_["state"] = "closed"
        self.number += 1
        id, rounds = f"f{self.number}", []
        for i, question in enumerate((EDITOR, SYSTEM, "Which shell?")):
            fields: dict[str, Any] = {
                "protocol": "grr",
                "epsilon": 0.5,
                "items": ITEMS,
                "id": f"{id}-{i}",
            }
            rounds.append(self.add(**fields | (options if only in ("", question) else {})))
            rounds[-1].update({"question": question, "form": id})
        form = {"id": id, "name": id, "title": None, "assign": "client"}
        self.forms[id] = {**form, "rounds": [*map(dict, rounds)]}
        self.current = {"form": id}

    def answer(self, request: httpx.Request) -> httpx.Response:
        _, place, reference, *_ = request.url.path.split("/")
        if place == "series" and self.number:
            state = {"series": reference, "number": self.number, "current": self.current}
            return httpx.Response(200, json=state)
        if place == "forms":
            return httpx.Response(200, json=self.forms[reference])
        return super().answer(request)

    @property
    def paths(self) -> list[str]:
        """The paths of all requests."""
        return [request.url.path for request in self.requests]


@dataclass
class World:
    """A server, a clock, and the ledger of one person."""

    path: Path
    server: SeriesCollector = field(default_factory=SeriesCollector)
    now: float = 1e9

    def usage(self, series: str = "plotter", form: Any = FORM, **options: Any) -> Usage:
        """Return the kit of a new process."""
        options = {"every": timedelta(seconds=PERIOD), "ledger": self.path, **options}
        transport = httpx.MockTransport(options.pop("server", self.server))
        url = Collector.URL
        return Usage(url, series, form, transport=transport, clock=lambda: self.now, **options)

    def live(
        self, usage: Usage, seconds: float, answers: Any = ANSWERS, step: float = DAY
    ) -> list[tuple[float, bytes]]:
        """Report once a day, or a step; return when what was sent."""
        sent = []
        for _ in range(round(seconds / step)):
            before = len(self.server.posts)
            usage.report(answers).join()
            sent += [(self.now, request.content) for request in self.server.posts[before:]]
            self.now += step
        return sent

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.path)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """An open form, and no variable that silences. The first answer is due in half a period."""
    for name in ("CI", "DO_NOT_TRACK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("secrets.randbelow", lambda n: n // 2)
    world = World(tmp_path / "ledger.sqlite3")
    world.server.next()
    return world


def test_answers_once_a_period_at_its_phase(world: World):
    """Two missed periods are made up by one answer."""
    usage, start = world.usage(limit=99), world.now
    times = [time for time, _ in world.live(usage, 6 * DAY)]
    world.server.next()
    times += [time for time, _ in world.live(usage, PERIOD)]
    world.server.next()
    world.now += 2.7 * PERIOD
    assert usage.on()
    times += [time for time, _ in world.live(usage, DAY)]
    world.server.next()
    times += [time for time, _ in world.live(usage, PERIOD)]
    assert [(time - start) / PERIOD for time in times] == pytest.approx([0.5, 1.5, 4.3, 4.5])


def test_requests_do_not_depend_on_values(world: World, monkeypatch: pytest.MonkeyPatch):
    """Beside a second series and a plain round on one ledger, for all histories of three values."""
    monkeypatch.setattr("secrets.choice", lambda questions: questions[0])
    outcomes = set()
    for history in itertools.product(ITEMS, repeat=3):
        world.server, world.now = SeriesCollector(), 1e9
        ledger = Ledger.in_memory(max_total_epsilon=2.75)
        monkeypatch.setattr("ldprecover_client.usage.Ledger", lambda *_, each=ledger, **__: each)
        usages = [world.usage(series) for series in ("plotter", "other")]
        for i, value in enumerate(history):
            world.server.add(id=f"plain{i}", epsilon=0.25, items=ITEMS)
            Reporter(world.server.client(), f"plain{i}", ledger=ledger).report(value)
            for usage in usages:
                world.server.next()
                world.live(usage, PERIOD, dict.fromkeys(ANSWERS, value), step=PERIOD / 2)
        outcomes.add((*world.server.paths, ledger.spent))
    assert len(outcomes) == 1
    assert outcomes.pop()[-1] == 2.75


def test_preview_draws_and_charges_once(world: World):
    usage = world.usage()
    first, *others = [usage.preview(dict.fromkeys(ANSWERS, value)) for value in "abba"]
    assert first is not None
    assert others == [first] * 3
    assert world.ledger.spent == 0.5
    assert Reporter(Collector.URL, ledger=world.ledger).resume() == ()
    world.now += PERIOD
    world.live(usage, DAY)
    assert world.server.sent == [(first.key, first.packed)]


def test_off_keeps_phase_and_deletes_the_answer(world: World):
    start, usage = world.now, world.usage()
    world.live(usage, 6 * DAY)
    assert usage.preview(ANSWERS) is None
    world.server.next()
    assert usage.preview(ANSWERS) is not None
    assert usage.off()
    assert [entry.packed for entry in world.ledger.entries() if entry.state != "accepted"] == [b""]
    paths = len(world.server.requests)
    world.live(world.usage(), 2 * PERIOD)
    assert usage.preview(ANSWERS) is None
    assert len(world.server.requests) == paths
    assert world.ledger.spent == 1.0
    assert "Next try: off" in usage.log()
    assert "switched off" not in usage.log()  # the last outcome stays
    assert usage.on()
    assert usage.on()
    world.server.next()
    ((time, _),) = world.live(usage, PERIOD)
    assert (time - start) / PERIOD == pytest.approx(3.5)


@pytest.mark.parametrize(
    ("place", "action", "reports"),
    [("forms", "off", 0), ("f1-1", "off", 0), ("f1-1", "preview", 1), ("f1-1", "report", 1)],
)
def test_draws_nothing_after_another_process(world: World, place: str, action: str, reports: int):
    """What that did while this one waited for the form, or for the last round."""
    calls: list[Any] = []

    def interrupt(request: httpx.Request) -> httpx.Response:
        if place in request.url.path and not calls:
            world.now += DAY
            world.server.next()
            other = world.usage()
            calls.append(other.off() if action == "off" else getattr(other, action)(ANSWERS))
            if action == "report":
                calls[0].join()
        return world.server(request)

    world.live(world.usage(server=interrupt), 6 * DAY)
    assert calls
    assert len(world.ledger.entries()) == len({*world.server.sent}) == reports
    assert place != "forms" or len(world.server.requests) == 2


def test_late_process_keeps_the_next_answer(world: World):
    shown = []

    def finish_first(send: Send) -> httpx.Response:
        world.now += DAY
        world.usage().report(ANSWERS).join()
        world.server.next()
        shown.append(world.usage().preview(ANSWERS))
        return send()

    world.server.faults.append(finish_first)
    world.live(world.usage(), 6 * DAY)
    assert [world.usage().preview(ANSWERS)] == shown
    assert world.ledger.pending() == ()
    assert (len({*world.server.sent}), world.ledger.spent) == (1, 1.0)


def test_answer_ends_with_the_parameters_of_its_series(world: World):
    answer = world.usage().preview(ANSWERS)
    assert answer is not None
    world.server.next(items=(*ITEMS, "d"))
    sent = {packed for _, packed in world.live(world.usage(), 2 * PERIOD)}
    assert sent == {entry.packed for entry in world.ledger.entries()}
    assert [entry.state for entry in world.ledger.entries()] == ["refused", "accepted"]
    assert world.ledger.entries()[0] == replace(answer, state="refused", reason=ANY)


@pytest.mark.parametrize("status", [404, 409, 422, 500, None])
def test_hostile_server_gets_one_report_a_period(world: World, status: int | None):
    """It reads the body, refuses it, and says next: after that only 422 ends the period."""

    def refuse(send: Send) -> httpx.Response:
        world.server.next()
        if status is None:
            raise httpx.ReadError("connection reset")
        return Collector.problem(status, "any")

    world.server.faults.extend([refuse] * 100)
    sent = world.live(world.usage(limit=99), 4 * PERIOD)
    distinct = {key for key, _ in world.server.sent}
    assert len(distinct) == (4 if status == 422 else 1)
    assert len({packed for _, packed in sent}) <= len(distinct)
    assert world.ledger.spent == 0.5 * len(distinct)
    if status in (404, 409):
        assert len({request.url.path for request in world.server.posts}) > 30


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("has_arrived", [False, True])
def test_crash_repeats_the_bytes(world: World, has_arrived: bool):
    """In another round, if that of the first try was closed meanwhile."""

    def crash(send: Send) -> httpx.Response:
        if has_arrived:
            send()
        raise SystemExit

    world.server.faults.append(crash)
    world.live(world.usage(), 6 * DAY)
    world.server.next()
    world.live(world.usage(), DAY)
    assert len({*world.server.sent}) == len(world.server.stored) == 1
    (entry,) = world.ledger.entries()
    assert (entry.state, entry.form_id) == ("accepted", "f1" if has_arrived else "f2")
    assert world.server.rounds[entry.round_id]["question"] == entry.question


def test_processes_share_one_answer(world: World):
    usages = [world.usage() for _ in range(8)]
    usages[0].report(ANSWERS).join()
    world.now += PERIOD
    run_together(8, lambda i: usages[i].report(ANSWERS).join())
    assert len(world.server.posts) == len(world.ledger.entries()) == 1


def test_silent_at_the_limit(world: World):
    usage = world.usage(limit=1.25)
    for _ in range(4):
        world.live(usage, PERIOD)
        world.server.next()
    assert world.ledger.spent == 1.0
    paths, log = len(world.server.requests), usage.log()
    world.live(usage, PERIOD)
    assert len(world.server.requests) == paths
    assert "above its limit of 1.25" in log
    assert log.partition("Last")[2] == usage.log().partition("Last")[2]


@pytest.mark.parametrize(
    ("options", "state"),
    [
        ({"items": ("a", "b", "d")}, {}),
        ({"epsilon": 0.75}, {}),
        ({"access": "ticket"}, {}),
        ({"access": "key"}, {}),
        ({}, {"current": {"form": "f1"}}),
        ({}, {"current": None}),
        ({}, {"number": 0}),
    ],
    ids=str,
)
def test_what_does_not_fit_gets_no_answer(
    world: World, options: dict[str, Any], state: dict[str, Any]
):
    """One of its questions, none of them, nothing that is open, or a server without series."""
    world.server.forms["f1"]["rounds"].pop(1)
    world.server.next(SYSTEM, **options)
    vars(world.server).update(state)
    usage = world.usage()
    world.live(usage, 7 * DAY)
    assert usage.preview(ANSWERS) is None
    assert world.server.paths.count("/series/plotter") == 3, "a try a day, and the preview"
    assert world.ledger.entries() == ()


def test_single_round_may_offer_more_items(world: World):
    """At epsilon 10 a report of GRR has another item with a probability of 1 in 7,000."""
    items = ("z", "c", "b", "a")
    world.server.add("grr", 10.0, items).update(question=SYSTEM)
    world.server.current = {"round": "r1"}
    form = {"question": SYSTEM, "items": ITEMS, "epsilon": 10.0}
    world.live(world.usage(form=form, limit=10), PERIOD, "a")
    assert world.server.sent[0][1] == bytes([3, 0, 0, 0])


def test_only_a_wrong_answer_raises(world: World, tmp_path: Path):
    """Due or not, and where nothing can be sent or stored."""
    usages = [world.usage(), world.usage(ledger=tmp_path)]
    unknown: list[Any] = [{**ANSWERS, SYSTEM: "d"}, {SYSTEM: "a"}, {**ANSWERS, "d": "a"}, "a", None]
    for usage, wrong in itertools.product(usages, unknown):
        with pytest.raises(UnknownItemError):
            usage.report(wrong)
    usages[1].report(ANSWERS).join()
    assert usages[1].preview(ANSWERS) is None
    assert not usages[1].off()
    assert usages[1].log() == "The ledger cannot be used."


def test_preview_ends_where_a_server_never_does(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ldprecover_client.usage._TIMEOUT", 0.01)
    ended = threading.Event()

    def answer(request: httpx.Request) -> httpx.Response:
        ended.wait()
        return httpx.Response(404)

    assert world.usage(server=answer).preview(ANSWERS) is None
    ended.set()


@pytest.mark.parametrize("name", ["DO_NOT_TRACK", "CI"])
def test_environment_silences(world: World, monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setenv(name, "true")
    world.live(world.usage(), PERIOD)
    assert not world.path.exists()
    assert world.usage().preview(ANSWERS) is None
    monkeypatch.setenv(name, "0")
    assert len(world.live(world.usage(), PERIOD)) == 1


def test_real_server_counts_a_report_in_the_next_form(world: World, admin: Client):
    """The program is offline while the form is open for which its answer was drawn."""
    common = {"protocol": "oue", "epsilon": 0.5, "items": [*ITEMS, "another"]}
    rounds = [{"question": each, **common} for each in (EDITOR, SYSTEM)]
    admin.open_form(series="plotter", assign="client", rounds=rounds)
    every, clock = timedelta(seconds=PERIOD), lambda: world.now
    usage = Usage(admin.url, "plotter", FORM, every=every, ledger=world.path, clock=clock)
    answer = usage.preview(ANSWERS)
    opened = admin.next("plotter", 2)
    world.now += PERIOD
    usage.report(ANSWERS).join()
    (entry,) = world.ledger.entries()
    assert answer is not None
    assert (entry.state, entry.form_id) == ("accepted", opened.id)
    assert (entry.key, entry.packed) == (answer.key, answer.packed)
    assert [round_.n for round_ in admin.form(opened.id).rounds] == [
        int(each == entry.question) for each in (EDITOR, SYSTEM)
    ]
