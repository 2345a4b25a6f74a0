"""The status, problem and position of odd JSON bodies, as recorded for every call with a body."""

import json
from pathlib import Path

import pytest
from tests.server.conftest import InProcess, problem_of

from ldprecover.protocols import PROTOCOLS

VECTORS = json.loads((Path(__file__).with_name("odd_json.json")).read_text())
"""Rows of call, body in Latin-1, its repetitions, status, slug, field and position."""

PATHS = {"rounds": "/rounds", "tickets": "{}/tickets", "recover": "{}/recover"}
"""The path of a call; the call of a protocol posts reports."""
ADMIN = ("rounds", "tickets")
ACCESS = {"tickets": "ticket"}


pytestmark = pytest.mark.sqlite


@pytest.mark.parametrize("call", dict.fromkeys(row[0] for row in VECTORS))
def test_answers_odd_json_as_recorded(in_process: InProcess, call: str) -> None:
    protocol = call if call in PROTOCOLS else "grr"
    round = f"/rounds/{in_process.open_round(protocol, access=ACCESS.get(call, 'open'))}"
    if call == "recover":
        in_process.post(f"{round}/reports", json={"reports": [1]})
    path = PATHS.get(call, f"{round}/reports").format(round)
    headers = {"Content-Type": "application/json"} | (in_process.admin if call in ADMIN else {})
    accepted, different = 0, []
    for name, text, times, *recorded in VECTORS:
        if name == call:
            body = text.encode("latin-1") * times
            response = in_process.post(path, content=body, headers=headers)
            outcome: list[object] = [response.status_code, None, None, None]
            if response.status_code >= 400:
                problem = response.json()
                (error, *_) = problem.get("errors", [{}])
                outcome[1:] = problem_of(response), error.get("field"), problem.get("position")
            elif path.endswith("/reports"):
                accepted += response.json()["accepted"]
            if outcome != recorded:
                different.append((body[:200], outcome, recorded))
    assert different == []
    assert in_process.get(round).json()["n"] == (1 if call == "recover" else accepted)
