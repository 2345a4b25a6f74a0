"""Calls with invalid arguments, and invalid plans."""

import json
import math

import pytest

from ldprecover_client import ArgumentError, InvalidAnswerError
from ldprecover_client.answers import Answer
from ldprecover_client.calls import alarms, open_round, plan, recover


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_rejects_non_finite_number(value: float) -> None:
    with pytest.raises(ArgumentError, match=f"epsilon must be a finite number, not {value}"):
        open_round({"name": None, "epsilon": value})
    with pytest.raises(ArgumentError, match="eta must be"):
        recover("current", {"eta": value})
    with pytest.raises(ArgumentError, match="rate must be"):
        alarms("current", value)


def test_plan_query_has_given_fields() -> None:
    call = plan({"domain_size": 10, "users": None, "epsilon": 0.5, "error": 1e-3})
    assert call.path == "/plan?domain_size=10&epsilon=0.5&error=0.001"
    with pytest.raises(ArgumentError, match="error must be a finite number"):
        plan({"error": math.nan})


PROTOCOL: dict[str, object] = {
    "protocol": "grr",
    "own": {},
    "reason": None,
    **dict.fromkeys(("domain_size", "users", "epsilon", "standard_error", "margin")),
    **dict.fromkeys(
        ("margin_of_all", "safe_lead", "report_size", "hash_tests", "targets", "beta", "gain")
    ),
    **dict.fromkeys(("stored_bytes", "retention")),
}
PLAN: dict[str, object] = {
    "solved": "users",
    "request": {
        **dict.fromkeys(("domain_size", "users", "epsilon", "error", "frequency")),
        **dict.fromkeys(("targets", "beta", "gain", "lead")),
        "sum_of": 1,
    },
    "protocols": [],
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocols": None}, "protocols"),
        ({"protocols": [PROTOCOL | {"users": "many"}]}, "users"),
        ({"solved": "error", "protocols": [PROTOCOL]}, "standard"),
        ({"protocols": [PROTOCOL | {"users": 7, "gain": "large"}]}, "gain"),
    ],
)
def test_invalid_plan_names_field(changes: dict[str, object], message: str) -> None:
    def parse(changes: dict[str, object]) -> dict[str, object]:
        return plan({}).parse(Answer(200, {}, json.dumps(PLAN | changes).encode()))

    with pytest.raises(InvalidAnswerError, match=message):
        parse(changes)
    assert parse({"protocols": [PROTOCOL | {"reason": "no"}]})
