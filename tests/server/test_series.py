"""Series: numbers follow each other, what is asked stays, and one round is open at most."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from tests.server.conftest import InProcess, StartInProcess, problem_of

from ldprecover_server.errors import NotNextError
from ldprecover_server.housekeeping import Housekeeping
from ldprecover_server.storage import Finding
from ldprecover_server.storage.schema import rounds

ASKED: dict[str, Any] = {"question": "Which?", "items": ["a", "b", "c"]}
QUESTIONS = [
    {**ASKED, "protocol": "grr", "epsilon": 1.0, "question": f"Which of {i}?"} for i in range(2)
]
_names = (f"series{i:03}" for i in count())


def open_round(app: InProcess, **fields: Any) -> Any:
    response = app.try_open(**ASKED | fields)
    assert response.status_code == 201, response.text
    return response.json()


def try_form(app: InProcess, series: str, rounds: Any, **fields: Any) -> httpx.Response:
    body = {"assign": "client", "series": series, "rounds": rounds, **fields}
    return app.post("/forms", json=body, headers=app.admin)


def try_next(app: InProcess, series: str, number: int, **fields: Any) -> httpx.Response:
    body = {"number": number, **fields}
    return app.post(f"/series/{series}/next", json=body, headers=app.admin)


def in_an_hour() -> str:
    return (datetime.now(UTC) + timedelta(hours=1)).isoformat(timespec="seconds")


def test_next_closes_one_round_and_opens_its_copy_once(in_process: InProcess) -> None:
    app, series = in_process, next(_names)
    settings = {"access": "ticket", "read_access": "key", "retention": "none", "thanks": "Thanks"}
    first = open_round(app, series=series, **settings)
    assert (first["name"], first["number"], first["closes_at"]) == (f"{series}-1", 1, None)
    [ticket] = app.mint(f"/rounds/{first['id']}", 1)
    time = in_an_hour()
    opened = try_next(app, series, 2, closes_at=time)
    assert opened.status_code == 201
    second = opened.json()
    assert opened.headers["location"] == f"/rounds/{second['id']}"
    own = {"id": second["id"], "name": f"{series}-2", "number": 2, "closes_at": time}
    assert second == {**first, **own, "opened_at": second["opened_at"]}
    headers = {"Authorization": f"Ticket {ticket}"}
    foreign = app.post(f"/rounds/{second['id']}/reports", json={"reports": [1]}, headers=headers)
    assert problem_of(foreign) == "invalid-ticket"
    repeated = try_next(app, series, 2, closes_at=None)
    assert (repeated.status_code, repeated.json()) == (200, second)
    assert [problem_of(try_next(app, series, number)) for number in (1, 4)] == 2 * ["not-next"]
    listed = app.get(f"/series/{series}").json()
    newest, oldest = listed.pop("rounds")
    assert listed == {"series": series, "number": 2, "current": {"round": second["id"]}}
    assert {**second, **newest} == second
    assert (oldest["state"], oldest["id"], oldest["closes_at"]) == ("closed", first["id"], None)
    acts = [(act.act, act.subject) for act in app.storage.acts.all()[:2]]
    assert acts == [("open round", second["name"]), ("close round", first["name"])]
    app.close_round(second["id"])
    assert app.get(f"/series/{series}").json()["current"] is None
    assert open_round(app, series=series)["number"] == 3
    [stored] = app.storage.rounds.in_series(app.storage.rounds.find(first["id"]), range(3, 9))
    assert stored.number == 3


def test_next_of_a_form_copies_its_rounds(in_process: InProcess) -> None:
    app, before, series = in_process, next(_names), next(_names)
    taken = f"{series}-2-1"
    open_round(app, name=taken)
    first = try_form(app, series, QUESTIONS, title="Usage").json()
    assert [each["name"] for each in first["rounds"]] == [f"{series}-1-1", f"{series}-1-2"]
    opened = try_next(app, series, 2)
    second = opened.json()
    assert opened.headers["location"] == f"/forms/{second['id']}"
    assert (second["title"], second["assign"]) == ("Usage", "client")
    assert second["name"] != f"{series}-2"  # a name of its rounds is taken
    assert [each["digest"] for each in second["rounds"]] == [
        each["digest"] for each in first["rounds"]
    ]
    (entry,) = app.get("/series", params={"limit": 1, "after": before}).json()["series"]
    assert entry == app.get(f"/series/{series}").json()
    assert entry["current"] == {"form": second["id"]}
    assert [(each["name"], each["state"]) for each in entry["forms"]] == [
        (second["name"], "open"),
        (first["name"], "closed"),
    ]
    assert try_next(app, series, 2).json() == second
    place = app.storage.rounds.find(first["rounds"][1]["id"])
    copies = app.storage.rounds.in_series(place, range(1, 3))
    assert [each.id for each in copies] == [each["rounds"][1]["id"] for each in (first, second)]


OTHERS: list[tuple[dict[str, Any], str]] = [
    ({"protocol": "oue"}, "protocol must"),
    ({"epsilon": 2.0}, "epsilon must"),
    ({"items": ["b", "a", "c"], "question": "What?"}, "items and question must"),
]


@pytest.mark.sqlite
def test_rejects_round_that_differs_from_its_series(in_process: InProcess) -> None:
    app, series, of_forms = in_process, next(_names), next(_names)
    first = open_round(app, series=series)
    try_form(app, of_forms, QUESTIONS)
    for fields, detail in OTHERS:
        refused = app.try_open(**{**ASKED, "series": series, **fields})
        assert problem_of(refused) == "invalid-parameter"
        assert refused.json()["detail"].startswith(detail)
    other = [QUESTIONS[0], {**QUESTIONS[1], "epsilon": 2.0}]
    for body, detail in (
        (other, "rounds.1: epsilon must be as in the series"),
        (QUESTIONS[:1], f"the series {of_forms} is one of forms of 2 rounds"),
    ):
        refused = try_form(app, of_forms, body)
        assert problem_of(refused) == "invalid-parameter"
        assert refused.json()["detail"].startswith(detail)
    assert problem_of(try_form(app, series, QUESTIONS)) == "invalid-parameter"
    assert problem_of(app.try_open(**ASKED, series=of_forms)) == "invalid-parameter"
    assert problem_of(app.try_open(**ASKED, series=series)) == "not-next"
    assert app.get(f"/series/{series}").json()["current"] == {"round": first["id"]}
    for name in ("A", "a" * 51, ""):
        assert problem_of(app.try_open(**ASKED, series=name)) == "invalid-request"
    assert problem_of(app.get("/series/none")) == "series-not-found"
    assert problem_of(try_next(app, "none", 1)) == "series-not-found"


def test_other_applications_open_no_next_practice_round(start_in_process: StartInProcess) -> None:
    app = start_in_process(practice=True)
    open_round(app, series="class", practice=True)
    app.app.state.services.rounds._practice = False  # as of another one on this database
    assert problem_of(try_next(app, "class", 2)) == "invalid-parameter"
    assert app.get("/series/class").json()["number"] == 1


def test_deletion_never_frees_a_number(in_process: InProcess) -> None:
    app, series = in_process, next(_names)
    open_round(app, series=series)
    for number in (2, 3):
        assert try_next(app, series, number).status_code == 201
    app.delete_round(f"{series}-3")
    remaining = app.get(f"/series/{series}").json()
    assert (remaining["number"], remaining["current"], len(remaining["rounds"])) == (3, None, 2)
    assert problem_of(try_next(app, series, 3)) == "not-next"
    assert try_next(app, series, 4).json()["question"] == "Which?"
    for number in (1, 2, 4):
        app.delete_round(f"{series}-{number}")
    assert problem_of(app.get(f"/series/{series}")) == "series-not-found"
    assert problem_of(try_next(app, series, 5)) == "series-not-found"
    form = try_form(app, series, QUESTIONS).json()
    assert form["rounds"][0]["number"] == 5
    app.request("DELETE", f"/forms/{form['id']}", headers=app.admin)
    assert problem_of(app.get(f"/series/{series}")) == "series-not-found"


def test_housekeeping_closes_at_the_time(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, time = in_process, in_an_hour()
    for wrong in ("2026-01-01T00:00:00", "2020-01-01T00:00:00Z", 1_900_000_000):
        assert app.try_open(**ASKED, closes_at=wrong).status_code == 422
    assert try_form(app, next(_names), [{**QUESTIONS[0], "closes_at": time}]).status_code == 422
    round = open_round(app, closes_at=time)
    form = try_form(app, next(_names), QUESTIONS, closes_at=time.replace("+00:00", "z")).json()
    assert {each["closes_at"] for each in form["rounds"]} == {time}
    housekeeping = Housekeeping(app.storage)
    housekeeping.once()
    assert app.get(f"/rounds/{round['id']}").json()["state"] == "open"
    monkeypatch.setattr(app.storage.rounds, "clock", lambda: datetime.fromisoformat(time))
    housekeeping.once()
    closed = app.get(f"/forms/{form['id']}").json()["rounds"]
    closed.append(app.get(f"/rounds/{round['id']}").json())
    assert {(each["state"], each["closed_at"]) for each in closed} == {("closed", time)}


def test_racing_callers_lose_no_number(in_process: InProcess) -> None:
    """12 threads each ask five times for the number after the last that they see."""
    app, series = in_process, next(_names)
    open_round(app, series=series)
    store = app.storage.series

    def race(_: int) -> list[int]:
        opened = []
        for _ in range(5):
            number = store.members(series)[0].last + 1
            try:
                [round], is_new = store.next(series, number, None, None, lambda newest: None)
            except NotNextError:
                continue
            assert round.number == number
            opened += [number] * is_new
        return opened

    with ThreadPoolExecutor(12) as pool:
        opened = sorted(sum(pool.map(race, range(12)), [1]))
    assert len(opened) > 5
    listed = app.get(f"/series/{series}").json()
    assert [each["number"] for each in listed["rounds"]] == opened[::-1]
    assert opened == [*range(1, listed["number"] + 1)]
    assert [each["state"] for each in listed["rounds"]] == ["open", *["closed"] * (len(opened) - 1)]


def test_check_finds_series_that_do_not_fit_their_rounds(in_process: InProcess) -> None:
    app, series = in_process, next(_names)
    first = open_round(app, series=series)
    try_next(app, series, 2)
    change = sa.update(rounds).where(rounds.c.id == first["id"])
    for values, description, expected, actual in (
        ({"number": 3}, "the last number", 3, 2),
        ({"state": "open", "number": 1}, "open rounds or forms, at most", 1, 2),
    ):
        with app.storage.database.write() as connection:
            connection.execute(change.values(values))
        finding = Finding(f"series {series}", description, expected, actual)
        assert app.storage.check() == [finding]
