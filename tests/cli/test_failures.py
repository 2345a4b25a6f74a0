"""Each kind of error has its exit code and says what to do next."""

import pytest

from ldprecover import ParameterError, ReportError
from ldprecover_cli.failures import CommandError, UsageError, check_items, close_to, explain
from ldprecover_client import (
    AlreadyReportedError,
    ArgumentError,
    DatasetError,
    EpsilonSpentError,
    EpsilonTooHighError,
    InvalidAnswerError,
    LedgerError,
    RefusedError,
    UnansweredError,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CommandError("x"), 1),
        (UsageError("x"), 2),
        (ArgumentError("x"), 2),
        (DatasetError("x"), 2),
        (ParameterError("x"), 2),
        (AlreadyReportedError("x"), 1),
        (LedgerError("x"), 1),
        (OSError("x"), 1),
        (RefusedError(418, "x"), 1),
        (UnansweredError("x", 503), 1),
    ],
)
def test_the_exit_code_tells_usage_from_refusal(error: Exception, code: int) -> None:
    assert explain(error) == ("x", code)


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (RefusedError(409, "Closed", type="/docs/errors#round-closed"), "ldprecover round open"),
        (RefusedError(404, "None", type="/docs/errors#no-current-round"), "ldprecover round open"),
        (RefusedError(409, "Empty", type="/docs/errors#no-reports"), "ldprecover simulate"),
        (UnansweredError("down"), "ldprecover serve"),
        (EpsilonTooHighError("high"), "--max-epsilon"),
        (EpsilonSpentError("spent"), "--max-total-epsilon"),
        (InvalidAnswerError("odd"), "--url"),
    ],
)
def test_a_hint_follows_where_there_is_something_to_do(error: Exception, hint: str) -> None:
    known = explain(error)
    assert known is not None
    assert known[0].startswith(f"{error}; ")
    assert hint in known[0]


@pytest.mark.parametrize("error", [ReportError("a report of ours is malformed"), KeyError("x"), ValueError("x")])
def test_what_should_not_happen_is_a_fault_of_ours(error: Exception) -> None:
    assert explain(error) is None


def test_close_matches_ignore_case_and_find_parts() -> None:
    cities = ["New York, NY", "Denver, CO", "St. Paul, MN"]
    assert close_to("denver", cities) == "did you mean 'Denver, CO'?"
    assert close_to("New Yrok, NY", cities) == "did you mean 'New York, NY'?"
    assert close_to("Ouagadougou", cities) == ""
    with pytest.raises(UsageError, match="did you mean 'Denver, CO'"):
        check_items(["New York, NY", "denver, co"], cities)
    check_items(cities, cities)
