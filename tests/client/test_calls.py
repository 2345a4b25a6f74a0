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
from ldprecover_client.calls import HttpResponse, alarms, open_round, plan, recover


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_rejects_non_finite_number(value: float):
    with pytest.raises(ArgumentError, match=f"epsilon must be a finite number, not {value}"):
        open_round({"name": None, "epsilon": value})
    with pytest.raises(ArgumentError, match="eta must be"):
        recover("current", {"eta": value})
    with pytest.raises(ArgumentError, match="rate must be"):
        alarms("current", value)


def test_plan_query_has_given_fields():
    call = plan({"domain_size": 10, "users": None, "epsilon": 0.5, "error": 1e-3})
    assert call.path == "/plan?domain_size=10&epsilon=0.5&error=0.001"
    with pytest.raises(ArgumentError, match="error must be a finite number"):
        plan({"error": math.nan})


def test_plan_without_its_solution_is_rejected():
    planned = library_plan(PlanRequest(domain_size=4, users=9, epsilon=1.0)).to_dict()
    body = json.loads(json.dumps(planned))
    body["protocols"][0]["standard_error"] = None
    with pytest.raises(InvalidAnswerError, match="standard_error of"):
        plan({}).parse(HttpResponse(200, {}, json.dumps(body).encode()))


def test_numbers_of_numpy_are_json() -> None:
    assert alarms("r", np.float64(0.25)).path == "/rounds/r/alarms?rate=0.25"
    fields = {"eta": np.float32(0.5), "targets": np.array([1, 2]), "n": np.uint8(3), "rate": 1}
    content = recover("r", {**fields, "share": Fraction(1, 4)}).content
    assert content is not None
    assert json.loads(content) == {
        "eta": 0.5,
        "targets": [1, 2],
        "n": 3,
        "rate": 1,
        "share": 0.25,
        "method": "auto",
    }
    for value in (np.float32("nan"), {1, 2}, 1j, Decimal("nan")):
        with pytest.raises(ArgumentError):
            recover("r", {"eta": value})
