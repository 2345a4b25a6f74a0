"""Conclusions of methods in responses are checked like other fields."""

import json
from typing import Any

import pytest
from tests.client.messages import RECOVERY

from ldprecover_client.answers import read_recovery
from ldprecover_client.calls import HttpResponse
from ldprecover_client.errors import InvalidAnswerError

CONCLUDED: dict[str, Any] = {
    "standard_deviations": [0.1, 0.1],
    "lower": [0.0, 0.1],
    "upper": [0.9, 0.8],
    "attack": "possible",
    "attack_probability": 0.5,
    "beta": 0.05,
    "suspects": [{"item": 1, "label": "b", "probability": 0.7}],
    "dropped": [{"screen": "sizes", "what": "too many items", "reports": 3}],
    "history_weight": None,
    "sentences": ["An attack is possible."],
}


def answer(**changes) -> HttpResponse:
    return HttpResponse(
        200, {}, json.dumps(RECOVERY | {"conclusions": CONCLUDED | changes}).encode()
    )


def fields(answer: HttpResponse):
    """Return the fields of the conclusions that are read."""
    return json.loads(read_recovery(answer).to_json())["conclusions"]


def test_conclusions_are_read_unchanged():
    assert fields(answer()) == CONCLUDED
    nothing = dict.fromkeys(CONCLUDED, None) | {"suspects": [], "dropped": [], "sentences": []}
    assert fields(answer(**nothing)) == nothing


@pytest.mark.parametrize(
    "changes",
    [
        {"lower": [0.1]},
        {"upper": ["0.1", 0.2]},
        {"attack": 1},
        {"suspects": [{"item": 2, "label": "c", "probability": 0.7}]},
        {"dropped": [{"screen": "sizes", "what": "x", "reports": -1}]},
    ],
)
def test_rejects_conclusions_of_another_form(changes: dict[str, Any]):
    with pytest.raises(InvalidAnswerError):
        read_recovery(answer(**changes))
