"""Calls with invalid arguments, and invalid plans."""

import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from ldprecover.planning import PlanRequest
from ldprecover.planning import plan as library_plan
from ldprecover_client import ArgumentError, InvalidAnswerError
from ldprecover_client.answers import read_plan
from ldprecover_client.calls import HttpResponse, post, query_of, read_nothing


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_rejects_non_finite_number(value: float):
    with pytest.raises(ArgumentError, match=f"epsilon must be a finite number, not {value}"):
        post("/rounds", read_nothing, {"name": "x", "epsilon": value})
    with pytest.raises(ArgumentError, match="rate must be"):
        query_of("/alarms", {"rate": value})


def test_plan_without_its_solution_is_rejected():
    planned = library_plan(PlanRequest(domain_size=4, users=9, epsilon=1.0)).to_dict()
    body = json.loads(json.dumps(planned))
    body["protocols"][0]["standard_error"] = None
    with pytest.raises(InvalidAnswerError, match="standard_error of"):
        read_plan(HttpResponse(200, {}, json.dumps(body).encode()))


def test_numbers_of_numpy_are_json() -> None:
    assert query_of("/alarms", {"rate": np.float64(0.25), "canary": ["a"]}) == (
        "/alarms?rate=0.25&canary=a"
    )
    fields = {"eta": np.float32(0.5), "targets": np.array([1, 2]), "n": np.uint8(3), "rate": 1}
    content = post("/recover", read_nothing, {**fields, "share": Fraction(1, 4)}).content
    assert content is not None
    assert json.loads(content) == {
        "eta": 0.5,
        "targets": [1, 2],
        "n": 3,
        "rate": 1,
        "share": 0.25,
    }
    for value in (np.float32("nan"), {1, 2}, 1j, Decimal("nan")):
        with pytest.raises(ArgumentError):
            post("/recover", read_nothing, {"eta": value})
