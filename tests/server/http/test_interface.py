"""Every response is a message of the interface, and the message has all of its fields."""

import json

import pytest
from tests.server.conftest import InProcess

from ldprecover_interface import (
    analysis,
    certificates,
    forms,
    operation,
    plans,
    problems,
    results,
    rounds,
    submissions,
)
from ldprecover_interface.base import Message
from ldprecover_interface.export import Export

pytestmark = pytest.mark.sqlite


def test_responses_are_messages_of_the_interface(in_process: InProcess) -> None:
    app = in_process
    reports = {"seeds": [1, 2], "buckets": [0, 1]}
    opened = app.post(
        "/rounds", json={"protocol": "olh", "epsilon": 1, "domain_size": 4}, headers=app.admin
    )
    path = opened.headers["location"]
    accepted = app.post(f"{path}/reports", json=reports, headers=app.admin)
    numbers = app.open_round("grr", items=["-1", "1"])
    question = {"question": "Which?", "protocol": "hr", "epsilon": 1, "domain_size": 4}
    new_form = {"assign": "ticket", "rounds": [question]}
    form = app.post("/forms", json=new_form, headers=app.admin)
    responses: list[tuple[type[Message], bytes]] = [
        (rounds.RoundStatus, opened.content),
        (submissions.Accepted, accepted.content),
        (rounds.RoundStatus, app.get(path).content),
        (rounds.RoundList, app.get("/rounds").content),
        (forms.Form, form.content),
        (forms.FormList, app.get("/forms").content),
        (rounds.Parameters, app.get(f"{path}/parameters").content),
        (rounds.Stats, app.get(f"{path}/stats", headers=app.admin).content),
        (results.Frequencies, app.get(f"{path}/frequencies").content),
        (results.Frequencies, app.get(f"/rounds/{numbers}/frequencies").content),
        (results.Recovered, app.post(f"{path}/recover", json={"method": "unmix"}).content),
        (
            certificates.Certified,
            app.post(
                f"{path}/certificate",
                json={
                    "malicious_share": 0.1,
                    "questions": [{"items": [1]}, {"ahead": [0, 1]}, {"top": 2}],
                },
            ).content,
        ),
        (Export, app.get(f"{path}/export").content),
        (analysis.Methods, app.get(f"{path}/methods").content),
        (analysis.Alarms, app.get(f"{path}/alarms").content),
        (plans.Plans, app.get("/plan?domain_size=4&users=9&epsilon=1").content),
        (operation.Version, app.get("/version").content),
        (operation.KeyScope, app.get("/key", headers=app.admin).content),
        (operation.Status, app.get("/healthz").content),
        (problems.Problem, app.post(f"{path}/recover", json={"eta": "x"}).content),
        (problems.Problem, app.post(f"{path}/reports", json={"reports": ["2"]}).content),
    ]
    for model, body in responses:
        assert json.loads(model.model_validate_json(body).to_json()) == json.loads(body), model


def test_schemas_of_optional_bodies_allow_null(in_process: InProcess) -> None:
    paths = in_process.get("/openapi.json").json()["paths"]
    optional = {
        path: operation["requestBody"]["content"]["application/json"]["schema"]
        for path, operations in paths.items()
        for operation in operations.values()
        if "requestBody" in operation and not operation["requestBody"].get("required")
    }
    assert optional.keys() == {
        "/recover",
        "/rounds/{round}/recover",
        "/rounds/{round}/changes",
    }
    assert all({"type": "null"} in schema["anyOf"] for schema in optional.values())
