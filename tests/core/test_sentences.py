"""Numbers and labels within sentences."""

import pytest

from ldprecover.sentences import (
    DOWN,
    UP,
    counted,
    listed,
    number,
    percent,
    points,
    repeats_sentence,
)
from ldprecover_client.ledger import MAX_TOTAL_EPSILON


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1e-9, "0.000000001"),
        (-0.31416, "-0.314"),
        (0.99996, "1"),
        (2.0, "2"),
        (99.96, "100"),
        (12345.6, "12,346"),
    ],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_ends_are_rounded_outwards() -> None:
    assert (percent(0.10009, DOWN), percent(0.20001, UP), points(0.02349)) == (
        "10 %",
        "20.1 %",
        "2.35",
    )


def test_numbers_agree_with_their_noun() -> None:
    texts = [counted(n, "report") for n in (0, 1, 2000)]
    assert texts == ["0 reports", "1 report", "2,000 reports"]


def test_ten_labels_are_listed_isolated() -> None:
    assert listed(["New York, NY"]) == "New York, NY"
    assert listed(["a", "b", "\u05d0"], "or") == "a; b or \u2068\u05d0\u2069"
    assert listed(list("abcdefghijkl")) == "a; b; c; d; e; f; g; h; i; j and 2 more"


@pytest.mark.parametrize(
    ("epsilon", "times"), [(0.1, "40 times"), (1.0, "4 times"), (2.5, "once"), (4.5, "No client")]
)
def test_the_same_people_answer_up_to_the_limit(epsilon: float, times: str) -> None:
    assert times in repeats_sentence(epsilon, MAX_TOTAL_EPSILON)
    assert repeats_sentence(epsilon) == repeats_sentence(epsilon, MAX_TOTAL_EPSILON)
