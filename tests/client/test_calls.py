"""What is refused before it is sent, and what is said of answers that are none."""

import math

import pytest

from ldprecover_client import ArgumentError, InvalidAnswerError
from ldprecover_client.answers import Answer
from ldprecover_client.calls import alarms, open_round, recover, rounds, suspects


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused_by_its_name(value: float) -> None:
    with pytest.raises(ArgumentError, match=f"epsilon must be a finite number, not {value}"):
        open_round({"name": None, "epsilon": value})
    with pytest.raises(ArgumentError, match="eta must be"):
        recover("current", {"eta": value})
    with pytest.raises(ArgumentError, match="drift must be"):
        suspects("current", 0.05, value)
    with pytest.raises(ArgumentError, match="rate must be"):
        alarms("current", value)


@pytest.mark.parametrize(
    ("status", "said"),
    [(404, "status 404 without a problem, so this is not an LDP"), (301, "give the URL it redirects to")],
)
def test_an_answer_of_somebody_else_says_so(status: int, said: str) -> None:
    with pytest.raises(InvalidAnswerError, match=f"GET /rounds: .*{said}"):
        rounds().take(Answer(status, {"content-type": "text/html"}, b"<h1>"))
