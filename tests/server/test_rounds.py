"""Opening, reading, closing and deleting rounds."""

import contextlib
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.conftest import PACKED, NewDatabase, ServerProcess
from tests.server.conftest import StartInProcess, problem_of

from ldprecover import FrequencyOracle, RoundParameters
from ldprecover_interface.rounds import NewRound
from ldprecover_server.access.access import Access
from ldprecover_server.rounds import Rounds
from ldprecover_server.storage import Storage, StoredRound

pytestmark = pytest.mark.sqlite


def fresh_name() -> str:
    return f"n{uuid.uuid4().hex}"


def test_opening_answers_with_the_round_and_its_place(server: ServerProcess) -> None:
    request_body: dict[str, Any] = {
        "name": fresh_name(),
        "protocol": "olh",
        "epsilon": 0.5,
        "items": ["New York, NY", "Łódź"],
        "hash_range": 5,
    }
    before = datetime.now(UTC).replace(microsecond=0)
    response = server.try_open(**request_body)
    assert response.status_code == 201
    opened = response.json()
    assert opened | request_body == opened
    assert (opened["state"], opened["n"], opened["closed_at"], opened["domain_size"]) == (
        "open",
        0,
        None,
        2,
    )
    assert before <= datetime.fromisoformat(opened["opened_at"]) <= datetime.now(UTC)
    parameters = RoundParameters("olh", 0.5, ("New York, NY", "Łódź"), parameter=5)
    assert (opened["p"], opened["q"]) == (parameters.oracle.p, parameters.oracle.q)
    assert opened["digest"] == parameters.digest
    assert response.headers["location"] == f"/rounds/{opened['id']}"
    assert server.get(response.headers["location"]).json() == opened


def test_round_has_the_texts_of_its_survey(server: ServerProcess) -> None:
    texts: dict[str, Any] = {
        "question": "What did you eat?",
        "title": "L\u2019été",
        "thanks": "Merci !",
        "language": "fr-CA",
    }
    opened = server.open_round(items=["soup", "salad"], **texts)
    plain = server.open_round(items=["soup", "salad"])
    assert opened["digest"] == plain["digest"]
    assert [plain[name] for name in texts] == [None] * 4
    place = f"/rounds/{opened['id']}"
    listed = server.get("/rounds").json()["rounds"][1]
    for answer in (server.get(f"{place}/parameters").json(), server.get(place).json(), listed):
        assert {name: answer[name] for name in texts} == texts
    assert server.get(f"{place}/export").json()["question"] == texts["question"]


def test_texts_of_a_survey_have_lengths(server: ServerProcess) -> None:
    longest: dict[str, Any] = {"question": "ä" * 300, "title": "ä" * 120, "thanks": "ä" * 300}
    assert server.open_round(domain_size=2, **longest)["title"] == longest["title"]
    for name, text in longest.items():
        response = server.try_open(domain_size=2, **{name: text + "a"})
        assert response.status_code == 422
        assert (
            f"{name} must be a string of 1 to {len(text)} characters" in response.json()["detail"]
        )
    assert server.try_open(domain_size=2, language="French!").status_code == 422


@pytest.mark.both
def test_practice_rounds_are_of_an_application_for_them(start_in_process: StartInProcess) -> None:
    app = start_in_process(practice=True)
    opened, plain = app.open_round(practice=True), app.open_round(practice=False)
    for path in ("", "/parameters", "/export"):
        round = app.get(f"/rounds/{opened}{path}").json()
        assert (round["practice"], app.get(f"/rounds/{plain}{path}").json().get("practice")) == (
            True,
            None if path == "/export" else False,
        )
        parameters = RoundParameters("grr", 1.0, ("0", "1", "2", "3"), practice=True)
        assert round["digest"] == parameters.digest
    for each in (opened, plain):
        app.submit(each, b"\1\0\0\0")
    app.close_round(opened)
    recovery = app.post(f"/rounds/{plain}/recover", json={"method": "unmix", "history": [opened]})
    assert problem_of(recovery) == "invalid-parameter"
    assert recovery.json()["detail"].endswith("differs in practice")


def test_other_applications_open_no_practice_rounds(server: ServerProcess) -> None:
    response = server.try_open(practice=True)
    assert problem_of(response) == "invalid-parameter"
    assert "only the server of `ldprecover class` takes practice rounds" in response.text
    assert server.open_round(practice=False)["practice"] is False


@pytest.mark.parametrize(
    "fields",
    [
        {"epsilon": 0.01, "domain_size": 100_000},
        {"protocol": "olh", "epsilon": 10, "domain_size": 3, "hash_range": 65_536},
        {"domain_size": 2, "hash_range": None, "name": None, "items": None},
        {"items": ["\u00e9", "E\u0301", " a", "\U0001f600"]},
    ],
)
def test_every_allowed_extreme_is_taken(server: ServerProcess, fields: dict[str, Any]) -> None:
    opened = server.open_round(**fields)
    expected = {name: value for name, value in fields.items() if value is not None}
    assert opened | expected == opened


def test_accepts_100_000_labels_and_no_more(server: ServerProcess) -> None:
    labels = [f"item {i}" for i in range(100_001)]
    opened = server.open_round("olh", 1.0, items=labels[:-1])
    assert opened["items"] == labels[:-1]
    assert server.frequencies(opened["id"])["counts"] == 100_000 * [0]
    server.delete_round(opened["id"])
    response = server.try_open("olh", items=labels)
    assert problem_of(response) == "invalid-request"
    assert "100000" in response.json()["detail"]


def test_names_of_the_documented_form_are_taken(start_in_process: StartInProcess) -> None:
    app = start_in_process()
    for name in ("0", "a" * 64, "a.b_c-d", "9--", "currently", "r1."):
        opened = app.open_round(name=name)
        assert app.get(f"/rounds/{name}").json()["id"] == opened


@pytest.mark.both
def test_a_name_belongs_to_one_round_until_it_is_deleted(server: ServerProcess) -> None:
    name = fresh_name()
    first = server.open_round(name=name)
    response = server.try_open("oue", name=name)
    assert problem_of(response) == "name-taken"
    assert name in response.json()["detail"]
    assert server.get(f"/rounds/{name}").json() == first
    server.close_round(name)
    assert server.try_open(name=name).status_code == 409
    server.delete_round(name)
    second = server.try_open(name=name).json()
    assert second["id"] != first["id"]
    assert server.get(f"/rounds/{name}").json() == second


def test_default_name_has_the_documented_form(server: ServerProcess) -> None:
    names = {server.open_round("oue", name=None)["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("oue-") and name == name.lower() for name in names)


def test_finds_round_by_id_name_and_current(server: ServerProcess) -> None:
    opened = server.open_round()
    for identifier in (opened["id"], opened["name"], "current"):
        assert server.get(f"/rounds/{identifier}").json() == opened
        assert server.frequencies(identifier)["round"] == opened["id"]
    assert server.get("/frequencies").json()["round"] == opened["id"]
    assert server.post("/reports", json={"reports": [1]}).json()["round"] == opened["id"]
    assert server.post("/recover").json()["round"] == opened["id"]


@pytest.mark.parametrize("identifier", ["nothing", "%FF", "a" * 1900])
def test_an_unknown_round_is_a_404(server: ServerProcess, identifier: str) -> None:
    calls = [
        server.get(f"/rounds/{identifier}"),
        server.get(f"/rounds/{identifier}/parameters"),
        server.get(f"/rounds/{identifier}/frequencies"),
        server.post(f"/rounds/{identifier}/recover"),
        server.post(f"/rounds/{identifier}/reports", json={"reports": [1]}),
        server.close_round(identifier),
        server.delete_round(identifier),
    ]
    assert {problem_of(r) for r in calls} == {"round-not-found"}


@pytest.mark.both
def test_lists_rounds_latest_first_in_pages(start_in_process: StartInProcess) -> None:
    app = start_in_process()
    assert app.get("/rounds").json() == {"rounds": []}
    opened = [app.open_round() for _ in range(5)]
    app.close_round(opened[1])
    app.post(f"/rounds/{opened[4]}/reports", json={"reports": [1, 2]}, headers=app.admin)
    listed = app.get("/rounds").json()["rounds"]
    assert [r["id"] for r in listed] == opened[::-1]
    whole = [app.get(f"/rounds/{id}").json() for id in opened[::-1]]
    assert listed == [
        {name: value for name, value in each.items() if name != "items"} for each in whole
    ]
    first = app.get("/rounds", params={"limit": 2}).json()["rounds"]
    second = app.get("/rounds", params={"limit": 10, "before": first[-1]["id"]}).json()["rounds"]
    assert first + second == listed


def test_only_calls_that_answer_labels_read_them(start_in_process: StartInProcess) -> None:
    app = start_in_process()
    app.storage.rounds.open("R2", "two", RoundParameters("grr", 1.0, ("a", "b")))
    statements: list[str] = []
    sa.event.listen(
        app.storage.database.engine,
        "before_cursor_execute",
        lambda connection, cursor, statement, *others: statements.append(statement),
    )
    app.get("/rounds")
    app.post("/rounds/two/reports", content=b"\0\0\0\0", headers=PACKED)
    for path in ("stats", "methods", "alarms"):
        assert app.get(f"/rounds/two/{path}").status_code == 200
    assert statements
    assert not [statement for statement in statements if "items" in statement]
    for _ in range(2):
        assert app.get("/rounds/two").json()["items"] == ["a", "b"]
        assert app.get("/rounds/two/frequencies").json()["items"] == ["a", "b"]
    assert len([statement for statement in statements if "items" in statement]) == 1


def test_round_deleted_before_its_tally_is_read_is_404(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = start_in_process()
    parameters = RoundParameters("grr", 1.0, ("a", "b"))
    find = app.storage.rounds.find

    def then_deleted(identifier: str) -> StoredRound:
        stored_rounds = find(identifier)
        app.storage.deletion.delete(identifier)
        return stored_rounds

    for method, path in (
        ("GET", "frequencies"),
        ("POST", "recover"),
        ("GET", "stats"),
        ("GET", "export"),
    ):
        app.storage.rounds.open(f"R{path}", path, parameters)
        assert app.get(f"/rounds/R{path}/frequencies").json()["counts"] == [0, 0], (
            "and it is known in memory"
        )
        with monkeypatch.context() as patch:
            patch.setattr(app.storage.rounds, "find", then_deleted)
            response = app.request(method, f"/rounds/R{path}/{path}")
        assert problem_of(response) == "round-not-found", path


def test_parameters_are_immutable_with_a_recomputable_digest(
    server: ServerProcess, oracle: FrequencyOracle
) -> None:
    labels = [f"№ {i}" for i in range(11)]
    opened = server.open_round(oracle.protocol, oracle.epsilon, items=labels)
    parameters = server.get(f"/rounds/{opened['id']}/parameters").json()
    mutable = ("state", "n", "verdict", "opened_at", "closed_at")
    thresholds = {name: str(value) for name, value in oracle.thresholds.items()}
    immutable = {name: value for name, value in opened.items() if name not in mutable}
    assert parameters == immutable | {"thresholds": thresholds}
    recomputed = RoundParameters(
        parameters["protocol"],
        parameters["epsilon"],
        tuple(parameters["items"]),
        parameter=parameters["hash_range"],
    )
    assert parameters["digest"] == recomputed.digest


def test_parameters_by_id_are_cached_for_ever(server: ServerProcess) -> None:
    opened = server.open_round()
    path = f"/rounds/{opened['id']}/parameters"
    first = server.get(path)
    assert first.headers["cache-control"] == "public, max-age=31536000, immutable"
    server.post(f"/rounds/{opened['id']}/reports", json={"reports": [1]})
    server.close_round(opened["id"])
    second = server.get(path)
    assert (second.content, second.headers["etag"]) == (first.content, first.headers["etag"])


@pytest.mark.parametrize("form", ["W/{}", '"other", {}', "*"])
def test_a_known_etag_is_answered_304(server: ServerProcess, form: str) -> None:
    opened = server.open_round()
    path = f"/rounds/{opened['id']}/parameters"
    etag = server.get(path).headers["etag"]
    assert etag.startswith('"')
    assert etag.endswith('"')
    info = server.get(path, headers={"If-None-Match": form.format(etag)})
    assert (info.status_code, info.content, info.headers["etag"]) == (304, b"", etag)
    assert "immutable" in info.headers["cache-control"]
    unknown = server.get(path, headers={"If-None-Match": '"other"'})
    assert unknown.status_code == 200


def test_parameters_by_name_are_not_cached(server: ServerProcess) -> None:
    name = fresh_name()
    server.open_round(name=name)
    first = server.get(f"/rounds/{name}/parameters")
    assert first.headers["cache-control"] == "no-cache"
    assert server.get("/rounds/current/parameters").headers["cache-control"] == "no-cache"
    server.delete_round(name)
    server.open_round(name=name)
    second = server.get(
        f"/rounds/{name}/parameters", headers={"If-None-Match": first.headers["etag"]}
    )
    assert second.status_code == 200
    assert second.json()["id"] != first.json()["id"]


def test_closing_twice_is_200_without_change(server: ServerProcess) -> None:
    opened = server.open_round()
    first = server.close_round(opened["id"])
    assert first.status_code == 200
    closed = first.json()
    assert closed == opened | {"state": "closed", "closed_at": closed["closed_at"]}
    assert datetime.fromisoformat(closed["closed_at"]) >= datetime.fromisoformat(
        opened["opened_at"]
    )
    second = server.close_round(opened["name"])
    assert (second.status_code, second.json()) == (200, closed)
    assert server.get(f"/rounds/{opened['id']}").json() == closed


@pytest.mark.both
def test_deleting_a_round_leaves_the_others(server: ServerProcess) -> None:
    remaining, opened = server.open_round(), server.open_round()
    for round_ in (remaining, opened):
        server.submit(round_["id"], b"\1\0\0\0", "key")
    response = server.delete_round(opened["id"])
    assert (response.status_code, response.content) == (204, b"")
    for identifier in (opened["id"], opened["name"]):
        assert problem_of(server.get(f"/rounds/{identifier}")) == "round-not-found"
        assert problem_of(server.submit(identifier, b"\1\0\0\0", "key")) == "round-not-found"
    assert server.delete_round(opened["id"]).status_code == 404
    assert server.frequencies(remaining["id"])["counts"] == [0, 1, 0, 0]


def test_current_round_after_a_deletion_is_the_latest(start_in_process: StartInProcess) -> None:
    app = start_in_process()

    calls = [app.get("/frequencies"), app.post("/recover"), app.get("/rounds/current")]
    calls.append(app.post("/reports", json={"reports": [1]}))
    assert {problem_of(r) for r in calls} == {"round-not-found"}
    first, second, third = (app.open_round() for _ in range(3))
    app.close_round(second)
    for id, current in ((third, second), ("current", first)):
        app.delete_round(id)
        assert app.get("/frequencies").json()["round"] == current


def test_the_scheme_of_the_key_is_read_in_any_case(server: ServerProcess) -> None:
    body = {"protocol": "grr", "epsilon": 1, "domain_size": 4}
    for scheme in ("Bearer", "bearer", "BEARER"):
        headers = {"Authorization": f"{scheme} {server.admin_key}"}
        assert server.post("/rounds", json=body, headers=headers).status_code == 201


def test_round_in_use_stays_cached(
    new_database: NewDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldprecover_server.rounds._CACHE_SIZE", 3)
    with new_database(tmp_path) as url, contextlib.closing(Storage(url)) as storage:
        storage.prepare()
        rounds = Rounds(storage, Access(storage, None), 10)
        busy, *others = (
            rounds.open(NewRound(protocol="grr", epsilon=1.0, domain_size=2)).id for _ in range(8)
        )
        rounds.find(busy)
        for other in others:
            assert rounds.find(other).id == other
            info = rounds.cached(busy)
            assert info is not None
            assert info.id == busy
        assert [other for other in others if rounds.cached(other) is not None] == others[-2:]


def test_submissions_by_name_look_the_round_up_once(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = start_in_process()
    id, find, request_body = app.open_round(name="cities"), app.storage.rounds.find, []

    def counted(identifier: str) -> StoredRound:
        request_body.append(identifier)
        return find(identifier)

    monkeypatch.setattr(app.storage.rounds, "find", counted)
    answers = [
        app.post("/rounds/cities/reports", content=b"\1\0\0\0", headers=PACKED) for _ in range(5)
    ]
    assert [answer.json()["round"] for answer in answers] == [id] * 5
    assert request_body == []  # it was opened by this process


@pytest.mark.parametrize(
    ("protocol", "access"), [("grr", "open"), ("oue", "open"), ("grr", "ticket")]
)
def test_report_to_a_reused_name_must_be_sent_again(
    start_in_process: StartInProcess, protocol: str, access: str
) -> None:
    """Whether the round that was deleted would have rejected it or not, nothing of that is the
    sender's to hear.
    """
    app = start_in_process()
    report = {"content": {"grr": b"\1\0\0\0", "oue": b"\1"}[protocol], "headers": PACKED}
    items = ("a", "b", "c", "d")
    path = "/rounds/cities/reports"
    app.open_round(name="cities", access=access)
    app.post(path, content=b"\1\0\0\0", headers=PACKED)
    app.storage.deletion.delete("cities")  # as another process does, without a word to this one
    assert problem_of(app.post(path, **report)) == "round-not-found"

    app.open_round(name="cities", access=access)
    app.storage.deletion.delete("cities")
    app.storage.rounds.open("R2", "cities", RoundParameters(protocol, 1.0, items))
    again = app.post(path, **report)
    assert (problem_of(again), int(again.headers["retry-after"]) > 0) == ("busy", True)
    assert app.post(path, **report).json() == {"round": "R2", "accepted": 1, "duplicate": False}
    assert app.get("/rounds/cities").json()["n"] == 1
    assert problem_of(app.post(path, content=b"\xff\xff", headers=PACKED)) == "invalid-report"
