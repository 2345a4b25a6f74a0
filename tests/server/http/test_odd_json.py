"""The status, problem and position of odd JSON bodies, as recorded for every call with a body."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.server.conftest import InProcess

VECTORS = json.loads((Path(__file__).with_name("odd_json.json")).read_text())
"""Rows of call, body in Latin-1, its repetitions, status, slug, field and position."""

Outcome = list[object]


def open_rounds(app: InProcess) -> Mapping[str, str]:
    """Open a round for each call; return the path that the call posts to."""
    path = {
        protocol: f"/rounds/{app.open_round(protocol)}/reports"
        for protocol in ("grr", "oue", "olh")
    }
    tickets = app.open_round("grr", access="ticket")
    recovered = app.open_round("grr")
    app.post(f"/rounds/{recovered}/reports", json={"reports": [1]})
    return path | {
        "rounds": "/rounds",
        "tickets": f"/rounds/{tickets}/tickets",
        "recover": f"/rounds/{recovered}/recover",
    }


def outcome(app: InProcess, paths: Mapping[str, str], call: str, body: bytes) -> Outcome:
    """Return the status, slug, field and position that answer a body."""
    headers = {"Content-Type": "application/json"}
    if call in ("rounds", "tickets"):
        headers |= app.admin
    response = app.post(paths[call], content=body, headers=headers)
    if response.status_code < 400:
        return [response.status_code, None, None, None]
    problem = response.json()
    errors = problem.get("errors", [{}])
    slug = problem["type"].partition("#")[2]
    return [response.status_code, slug, errors[0].get("field"), problem.get("position")]


@pytest.mark.parametrize("call", dict.fromkeys(row[0] for row in VECTORS))
def test_answers_odd_json_as_recorded(in_process: InProcess, call: str) -> None:
    paths = open_rounds(in_process)
    different = []
    for name, text, times, *recorded in VECTORS:
        if name == call:
            body = text.encode("latin-1") * times
            found = outcome(in_process, paths, call, body)
            if found != recorded:
                different.append((body[:200], found, recorded))
    assert different == []
