"""Forms: their rounds open, close and are deleted together, and a ticket is for one of them."""

from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from tests.conftest import PACKED, NewDatabase
from tests.server.conftest import InProcess, problem_of

from ldprecover.rounds.tickets import assigned_round
from ldprecover_server.storage import Finding
from ldprecover_server.storage.schema import metadata, rounds, verdicts

pytestmark = pytest.mark.sqlite

ASKED = {"question": "Which?", "protocol": "grr", "epsilon": 1.0, "domain_size": 2}
OTHER = {**ASKED, "question": "Which other?"}
FORM = {
    "assign": "ticket",
    "rounds": [{**ASKED, "question": f"Which of {d}?", "domain_size": d} for d in (2, 3, 4)],
}


def try_form(app: InProcess, **fields: Any) -> httpx.Response:
    return app.post("/forms", json=FORM | fields, headers=app.admin)


def open_form(app: InProcess, **fields: Any) -> Any:
    response = try_form(app, **fields)
    assert response.status_code == 201, response.text
    form = response.json()
    assert response.headers["location"] == f"/forms/{form['id']}"
    return form


def mint(app: InProcess, form: Any, count: int) -> list[str]:
    return app.mint(f"/forms/{form['id']}", count)


def report(form: Any, ticket: str, *, shift: int = 0, packed: bytes = b"\1\0\0\0") -> Any:
    """Return the request with a report to the assigned round, or to one that follows it."""
    headers = {**PACKED, "Authorization": f"Ticket {ticket}"}
    round = form["rounds"][(assigned_round(ticket, 3) + shift) % 3]
    return "POST", f"/rounds/{round['id']}/reports", {"content": packed, "headers": headers}


def reports_of(app: InProcess, form: Any) -> list[int]:
    return [round["n"] for round in app.get(f"/forms/{form['id']}").json()["rounds"]]


def test_form_opens_with_its_rounds_in_order(in_process: InProcess) -> None:
    app = in_process
    named = [{**ASKED, "name": "first"}, OTHER]
    form = open_form(app, name="usage", title="Usage", rounds=named)
    assert (form["title"], form["assign"]) == ("Usage", "ticket")
    assert [each["name"] for each in form["rounds"]] == ["first", "usage-2"]
    other = open_form(app, assign="client", rounds=[ASKED, {**OTHER, "access": "key"}])
    assert [round["access"] for round in other["rounds"]] == ["open", "key"]
    assert app.get("/forms/usage").json() == form
    assert app.get(f"/forms?before={other['id']}&limit=1").json() == {"forms": [form]}
    assert app.get("/forms").json()["forms"][:2] == [other, form]
    assert app.get("/rounds/usage-2").json()["form"] == form["id"]


@pytest.mark.both
def test_form_opens_all_of_its_rounds_or_none(in_process: InProcess) -> None:
    in_process.open_round(name="whole-2")
    assert problem_of(try_form(in_process, name="whole")) == "name-taken"
    for path in ("/whole", "?before=%00"):
        assert problem_of(in_process.get(f"/forms{path}")) == "form-not-found"
    assert problem_of(in_process.get("/rounds/whole-1")) == "round-not-found"
    in_process.delete_round("whole-2")
    new = {"json": {**FORM, "name": "whole"}, "headers": in_process.admin}
    answers = in_process.gather(*4 * [("POST", "/forms", new)])
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]


@pytest.mark.postgres
def test_forms_with_crossing_names_of_rounds_do_not_deadlock(in_process: InProcess) -> None:
    """Of 50 rounds each: the first name of either form is free when both transactions begin."""
    questions = [{**ASKED, "question": str(i), "name": f"crossing-{i}"} for i in range(50)]
    forms = [FORM | {"rounds": questions}, FORM | {"rounds": questions[::-1]}]
    answers = in_process.gather(
        *(("POST", "/forms", {"json": form, "headers": in_process.admin}) for form in forms)
    )
    assert sorted(answer.status_code for answer in answers) == [201, 409]


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"rounds": 51 * [ASKED]}, "rounds must be a list of 1 to 50 entries"),
    ({"rounds": [ASKED, {**ASKED, "question": None}]}, "rounds.1.question must be a string"),
    ({"rounds": [ASKED, ASKED]}, "rounds must have different questions"),
    ({"rounds": [ASKED, {**OTHER, "items": ["a", "b"]}]}, "rounds.1: give either items or"),
    ({"rounds": [{**ASKED, "access": "open"}]}, "rounds.0: access must be ticket"),
    ({"rounds": [{**ASKED, "access": "ticket"}], "assign": "client"}, "rounds.0: access must be"),
    ({"assign": "chance"}, "assign must be 'ticket' or 'client', not 'chance'"),
]


@pytest.mark.parametrize(("fields", "detail"), INVALID, ids=range(len(INVALID)))
def test_rejects_invalid_form(in_process: InProcess, fields: dict[str, Any], detail: str) -> None:
    response = try_form(in_process, **fields)
    assert problem_of(response) in ("invalid-request", "invalid-parameter")
    assert response.json()["detail"].startswith(detail)


@pytest.mark.both
def test_rounds_of_a_form_are_never_current_and_never_end_alone(in_process: InProcess) -> None:
    app = in_process
    id, form = app.open_round(), open_form(app, assign="client")
    assert app.get("/rounds/current").json()["id"] == id
    assert app.post("/reports", json={"reports": [1]}).json()["round"] == id
    round = form["rounds"][0]["id"]
    tickets = {"json": {"count": 1}, "headers": app.admin}
    ends = (
        app.close_round(round),
        app.delete_round(round),
        app.post(f"/rounds/{round}/tickets", **tickets),
    )
    assert [problem_of(response) for response in ends] == 3 * ["round-of-form"]
    assert problem_of(app.post(f"/forms/{form['id']}/tickets", **tickets)) == "invalid-parameter"
    for rest in ("", f"/{form['id']}/close", f"/{form['id']}/tickets"):
        assert problem_of(app.post(f"/forms{rest}")) == "unauthorized"
    assert problem_of(app.request("DELETE", f"/forms/{form['id']}")) == "unauthorized"


@pytest.mark.both
def test_ticket_counts_once_and_in_its_round_alone(in_process: InProcess) -> None:
    form, other = open_form(in_process), open_form(in_process)
    expected = [0, 0, 0]
    for ticket in mint(in_process, form, 9):
        answers = in_process.gather(*4 * [report(form, ticket, shift=i) for i in range(3)])
        accepted = answers[::3]
        assert {answer.status_code for answer in accepted} == {202}
        assert sum(answer.json()["duplicate"] for answer in accepted) == 3
        rejected = {problem_of(answer) for answer in answers if answer not in accepted}
        assert rejected == {"forbidden"}
        changed = report(form, ticket, packed=bytes(4))
        answers = in_process.gather(changed, report(other, ticket))
        assert [*map(problem_of, answers)] == ["idempotency-key-reused", "invalid-ticket"]
        expected[assigned_round(ticket, 3)] += 1
        assert reports_of(in_process, form) == expected
    assert problem_of(in_process.submit(other["rounds"][0]["id"], bytes(4))) == "invalid-ticket"


@pytest.mark.both
def test_check_finds_forms_that_do_not_fit_their_rounds(in_process: InProcess) -> None:
    form = open_form(in_process)
    last = sa.update(rounds).where(rounds.c.id == form["rounds"][2]["id"])
    for values, description, expected in (
        ({"position": 3}, "rounds", 3),
        ({"position": 2, "state": "closed"}, "states of its rounds", 1),
    ):
        with in_process.storage.database.write() as database:
            database.execute(last.values(values))
        assert in_process.storage.check() == [
            Finding(f"form {form['name']}", description, expected, 2)
        ]


@pytest.mark.both
def test_form_outlives_its_server_and_ends_whole(new_database: NewDatabase, tmp_path: Path) -> None:
    with new_database(tmp_path) as url:
        with closing(InProcess(url)) as app:
            form = open_form(app, name="usage")
            sent, late = (report(form, ticket) for ticket in mint(app, form, 2))
            assert app.gather(sent)[0].json()["duplicate"] is False
        with closing(InProcess(url)) as app:
            closed = [app.post("/forms/usage/close", headers=app.admin).json() for _ in range(2)]
            assert closed[0] == closed[1]
            assert {round["state"] for round in closed[0]["rounds"]} == {"closed"}
            duplicate, rejected = app.gather(sent, late)
            assert duplicate.json()["duplicate"] is True
            assert problem_of(rejected) == "round-closed"
            assert app.storage.check() == []
            assert app.request("DELETE", "/forms/usage", headers=app.admin).status_code == 204
            assert problem_of(app.get(f"/forms/{form['id']}")) == "form-not-found"
            app.storage.deletion.delete_rest()
            with app.storage.database.read() as database:
                tables = metadata.tables.items()
                full = {name for name, each in tables if database.execute(sa.select(each)).first()}
            assert full == {"secrets", "acts"}


def test_verdict_in_a_form_needs_the_key_of_its_round(in_process: InProcess) -> None:
    app = in_process
    form = open_form(app, rounds=[ASKED, {**OTHER, "read_access": "key"}])
    seqs = sa.select(rounds.c.seq, sa.literal("{}"))
    seqs = seqs.where(rounds.c.form == form["id"])
    with app.storage.database.write() as database:
        database.execute(sa.insert(verdicts).from_select(["round", "verdict"], seqs))
    for headers, expected in (({}, [{}, None]), (app.admin, [{}, {}])):
        one = app.get(f"/forms/{form['id']}", headers=headers).json()
        assert [round["verdict"] for round in one["rounds"]] == expected
        assert app.get("/forms?limit=1", headers=headers).json() == {"forms": [one]}
