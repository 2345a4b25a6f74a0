"""A drill from its form to its score, on a real server."""

from typing import Any

import numpy as np
import pytest
from tests.conftest import ServerProcess
from tests.experiments.drill.conftest import RunningDrill, StartDrill

from ldprecover.planning.choosing import choose
from ldprecover_client import Client, Population, load_dataset
from ldprecover_experiments.demo import Demo, no_progress
from ldprecover_experiments.demo_settings import DemoSettings
from ldprecover_experiments.drill.certificates import certify
from ldprecover_experiments.drill.jobs import Job

GRR = {"protocol": "grr", "users": 2000, "targets": 3, "methods": ["ldprecover"], "seed": 7}


def test_drill_scores_equal_those_of_the_demo(drill: RunningDrill, server: ServerProcess) -> None:
    begun = drill.http.post("/drill/run", json={**GRR, "methods": ["ldprecover", "unmix"]})
    assert (begun.status_code, begun.json()["kind"]) == (202, "round")
    shown = drill.ended()
    assert (shown["state"], shown["error"]) == ("done", None)
    round_ = server.http.get(f"/rounds/{shown['round']}").json()
    assert (round_["state"], round_["n"], round_["name"][:6]) == ("closed", 2105, "drill-")
    rows = {name: row for row in shown["result"]["rows"] for name in row["names"]}
    demo = Demo(DemoSettings(protocol="grr", users=2000, targets=3, seed=7)).on(
        server.url, server.admin_key, no_progress, name=f"{shown['round']}-demo"
    )
    fg = demo.fg
    assert fg is not None
    names = {
        "before the attack": "genuine",
        "after the attack": "poisoned",
        "projection alone": "projected",
        "LDPRecover": "recovered",
        "un-mixing": "unmixed",
        "LDPRecover told the targets": "recovered_targets",
    }
    assert rows.keys() == names.keys() | {"un-mixing told the targets"}
    for name, of_the_demo in names.items():
        assert rows[name]["mse"] == pytest.approx(demo.mse[of_the_demo])
        assert rows[name]["gain"] == pytest.approx(fg[of_the_demo], abs=1e-12)
    truth = Population.of(load_dataset("cities"), 2000, 7).frequencies
    assert shown["result"]["truth"] == pytest.approx(truth)
    assert np.asarray(shown["result"]["targets"]).tolist() == list(demo.targets or ())


def test_drill_certifies_before_and_after_the_attack(
    drill: RunningDrill, server: ServerProcess
) -> None:
    drill.http.post("/drill/run", json={**GRR, "epsilon": 4, "beta": 0.02})
    shown = drill.ended()
    result = shown["result"]
    before, after = (result["certificates"][name] for name in ("before", "after"))
    assert (before["n"], after["n"]) == (2000, 2041)
    first, second = np.argsort(-np.asarray(result["columns"]["before the attack"]))[:2].tolist()
    questions = [each["ahead"] for each in before["answers"] if "ahead" in each]
    assert questions[0] == [first, second]
    assert [each["ahead"] for each in after["answers"] if "ahead" in each] == questions
    assert after["answers"][-1]["items"] == sorted(result["targets"])
    body = {
        "malicious_share": 41 / 2041,
        "questions": [
            {"top": 1},
            *({"ahead": each} for each in questions),
            {"items": result["targets"]},
        ],
    }
    expected = server.post(f"/rounds/{shown['round']}/certificate", json=body).json()
    del expected["items"]
    assert after == expected
    truth = np.asarray(result["truth"])
    for certificate in (before, after):
        assert (np.asarray(certificate["lower"]) <= truth).all()
        assert (truth <= np.asarray(certificate["upper"])).all()


def test_drill_states_why_there_is_no_certificate(server: ServerProcess) -> None:
    empty = server.open_round("grr")
    with Client(server.url) as client:
        refused = certify(client, empty["id"], 0.1, ())
    assert refused.keys() == {"refused"}
    assert "no reports" in refused["refused"]


def test_unfit_method_is_refused_and_others_stand(
    drill: RunningDrill,
) -> None:
    drill.http.post(
        "/drill/run", json={**GRR, "methods": ["diffstats", "norm-cut"], "attack": "manip"}
    )
    result = drill.ended()["result"]
    assert result["refused"].keys() == {"DiffStats"}
    assert "norm-cut" in {name for row in result["rows"] for name in row["names"]}


@pytest.mark.parametrize("protocol", ["llh", "auto"])
def test_any_protocol_plays_a_round(drill: RunningDrill, protocol: str) -> None:
    form = {**GRR, "protocol": protocol, "methods": ["ldprecover", "unmix"]}
    assert drill.http.post("/drill/run", json=form).status_code == 202
    shown = drill.ended()
    assert (shown["state"], shown["result"]["refused"]) == ("done", {})
    best = choose(102, 0.5, 2000).best.oracle.protocol
    assert shown["settings"]["protocol"] == (best if protocol == "auto" else protocol)
    assert len(shown["result"]["certificates"]["after"]["lower"]) == 102


def test_steps_are_known_before_they_are_taken(
    drill: RunningDrill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step is taken, in their order."""
    update, taken = Job.update, []

    def observed(self: Job, **fields: Any) -> None:
        update(self, **fields)
        if "step" in fields:
            taken.append(fields["step"])

    monkeypatch.setattr(Job, "update", observed)
    for form, number in ((GRR, 7), ({**GRR, "beta": 0.0}, 6)):
        taken.clear()
        steps = drill.http.post("/drill/run", json=form).json()["steps"]
        assert drill.ended()["state"] == "done"
        assert taken == list(range(number)) == list(range(len(steps)))


def test_a_map_is_made_without_the_server(start_drill: StartDrill) -> None:
    drill = start_drill("http://127.0.0.1:9")
    begun = drill.http.post("/drill/run", json={"kind": "map", "protocol": "grr", "users": 300})
    assert (begun.status_code, begun.json()["settings"]["users"]) == (202, 300)
    shown = drill.ended()
    assert (shown["state"], shown["round"]) == ("done", None)
    assert [row["title"] for row in shown["result"]["rows"]] == shown["steps"]


def test_one_drill_at_a_time_and_cancelling_deletes_its_round(
    drill: RunningDrill, server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled once its first reports are in: the progress of the genuine users is what the run
    shows.
    """
    rounds = {each["name"] for each in server.http.get("/rounds").json()["rounds"]}
    update, second = Job.update, []

    def cancel_when_reported(self: Job, **fields: Any) -> None:
        update(self, **fields)
        if fields.get("done", 0) > 0 and self.as_json()["step"] == 1:
            second.append(drill.http.post("/drill/run", json=GRR))
            assert drill.http.delete("/drill/run").json()["state"] == "cancelling"

    monkeypatch.setattr(Job, "update", cancel_when_reported)
    drill.http.post("/drill/run", json={**GRR, "users": 30_000})
    shown = drill.ended()
    assert (shown["state"], shown["result"], shown["total"]) == ("cancelled", None, 30_000)
    assert (second[0].status_code, second[0].json()["title"]) == (409, "Conflict")
    assert {each["name"] for each in server.http.get("/rounds").json()["rounds"]} <= rounds
    assert server.http.get(f"/rounds/{shown['round']}").status_code == 404


def test_drill_without_admin_key_fails_with_a_message(
    start_drill: StartDrill, server: ServerProcess
) -> None:
    drill = start_drill(server.url, "a-key-that-opens-nothing")
    assert drill.http.get("/drill/run").json() == {"state": "idle"}
    assert drill.http.delete("/drill/run").json() == {"state": "idle"}
    drill.http.post("/drill/run", json=GRR)
    shown = drill.ended()
    assert (shown["state"], shown["round"]) == ("failed", None)
    assert "key" in shown["error"]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b"{}", {}, 415),
        (b"{", {"Content-Type": "application/json"}, 400),
        (b"[" * 50_000, {"Content-Type": "application/json"}, 400),
        (b'{"users": NaN}', {"Content-Type": "application/json"}, 422),
        (b'{"users": 0}', {"Content-Type": "application/json; charset=utf-8"}, 422),
        (b" " * 70_000, {"Content-Type": "application/json"}, 413),
    ],
)
def test_a_form_that_cannot_be_read_is_a_problem(
    drill: RunningDrill, body: bytes, headers: dict[str, str], status: int
) -> None:
    answer = drill.http.post("/drill/run", content=body, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (
        status,
        "application/problem+json",
    )


def test_the_drills_own_paths_are_never_the_servers(drill: RunningDrill) -> None:
    for method, path, status in (
        *(("GET", "/drill/nothing", 404), ("PUT", "/drill/run", 405), ("GET", "/drill/run/", 404)),
        *(("GET", "/drill/static/nothing.js", 404), ("GET", "/drill/static/..%2Fapp.py", 404)),
    ):
        answer = drill.http.request(method, path)
        assert (answer.status_code, answer.headers["content-type"]) == (
            status,
            "application/problem+json",
        ), path
        assert "x-request-id" not in answer.headers
