"""Calls with invalid arguments, and responses of other servers."""

import math

import pytest

from ldprecover_client import ArgumentError, InvalidAnswerError
from ldprecover_client.answers import Answer
from ldprecover_client.calls import alarms, open_round, plan, recover, rounds, suspects


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_rejects_non_finite_number(value: float) -> None:
    with pytest.raises(ArgumentError, match=f"epsilon must be a finite number, not {value}"):
        open_round({"name": None, "epsilon": value})
    with pytest.raises(ArgumentError, match="eta must be"):
        recover("current", {"eta": value})
    with pytest.raises(ArgumentError, match="drift must be"):
        suspects("current", 0.05, value)
    with pytest.raises(ArgumentError, match="rate must be"):
        alarms("current", value)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (404, "status 404 without a problem, so this is not an LDP"),
        (301, "give the URL it redirects to"),
    ],
)
def test_foreign_server_is_named_in_error(status: int, message: str) -> None:
    with pytest.raises(InvalidAnswerError, match=f"GET /rounds: .*{message}"):
        rounds().parse(Answer(status, {"content-type": "text/html"}, b"<h1>"))


def test_plan_query_has_given_fields() -> None:
    call = plan({"domain_size": 10, "users": None, "epsilon": 0.5, "error": 1e-3, "curves": True})
    assert call.path == "/plan?domain_size=10&epsilon=0.5&error=0.001&curves=true"
    with pytest.raises(ArgumentError, match="error must be a finite number"):
        plan({"error": math.nan})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[]", "object"),
        (b'{"solved": "users"}', "protocols"),
        (
            (
                b'{"solved": "users", "protocols": [{"protocol": "grr", '
                b'"users": "many", "gains": []}]}'
            ),
            "users",
        ),
        (
            (
                b'{"solved": "error", "protocols": [{"protocol": "grr", '
                b'"standard_error": null, "gains": []}]}'
            ),
            "standard",
        ),
        (
            b'{"solved": "users", "protocols": [{"protocol": "grr", "users": 7, "gains": [{}]}]}',
            "attack",
        ),
    ],
)
def test_invalid_plan_names_field(body: bytes, message: str) -> None:
    with pytest.raises(InvalidAnswerError, match=message):
        plan({}).parse(Answer(200, {"content-type": "application/json"}, body))
    refused = b'{"solved": "users", "protocols": [{"protocol": "grr", "reason": "no"}]}'
    assert plan({}).parse(Answer(200, {}, refused))["protocols"][0]["reason"] == "no"
