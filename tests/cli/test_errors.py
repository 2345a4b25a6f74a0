"""Exit codes and messages of errors."""

import pytest

from ldprecover import ParameterError, ReportError
from ldprecover_cli.errors import CommandError, UsageError, check_items, close_to, explain
from ldprecover_client import (
    AccessError,
    AlreadyReportedError,
    EpsilonSpentError,
    EpsilonTooHighError,
    RefusedError,
    UnansweredError,
)
from ldprecover_client._httpx import httpx


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CommandError("x"), 1),
        (UsageError("x"), 2),
        (ParameterError("x"), 2),
        (AlreadyReportedError("x"), 1),
        (OSError("x"), 1),
        (UnansweredError("x", 503), 1),
    ],
)
def test_exit_code(error: Exception, code: int) -> None:
    assert explain(error) == ("x", code)


def test_memory_error_says_what_takes_less() -> None:
    explanation = "memory is short: 7 TiB; take fewer users, items or processes"
    assert explain(MemoryError("7 TiB")) == (explanation, 1)


def test_problem_without_detail_is_its_title() -> None:
    error = RefusedError(422, "Does not fit", None, "/docs/errors#invalid-parameter")
    assert explain(error) == ("Does not fit", 2)


def test_names_three_fields_at_most() -> None:
    fields = tuple((name, "must be 1") for name in "abcd")
    error = RefusedError(422, "Invalid", "x", "/docs/errors#invalid-request", fields=fields)
    assert explain(error) == ("a must be 1; b must be 1; c must be 1", 2)


def test_shows_notes_of_error() -> None:
    error = RefusedError(409, "Closed", type="/docs/errors#round-closed")
    error.add_note("5 of 9 reports were accepted")
    text = "Closed (5 of 9 reports were accepted); open another with `ldprecover round open`"
    assert explain(error) == (text, 1)
    other = CommandError("no key")
    other.__cause__ = error
    assert explain(other) == ("no key (5 of 9 reports were accepted)", 1)


def test_system_error_names_file_without_errno() -> None:
    error = FileNotFoundError(2, "No such file or directory", "a.csv")
    assert explain(error) == ("a.csv: No such file or directory", 1)
    assert explain(OSError(28, "No space left on device")) == ("No space left on device", 1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("give users or domain_size", "give users or --domain-size"),
        ("cannot read domain_size.csv", "cannot read domain_size.csv"),
        ("there is no key 'domain_size'", "there is no key 'domain_size'"),
        ("x needs the attacked items (targets)", "x needs the attacked items (--target)"),
    ],
)
def test_options_stand_for_fields_and_not_for_files(text: str, shown: str) -> None:
    assert explain(ParameterError(text)) == (shown, 2)


def _unanswered(cause: Exception) -> UnansweredError:
    error = UnansweredError("x")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (RefusedError(409, "Closed", type="/docs/errors#round-closed"), "ldprecover round open"),
        (RefusedError(404, "None", type="/docs/errors#round-not-found"), "ldprecover round open"),
        (RefusedError(409, "Empty", type="/docs/errors#no-reports"), "ldprecover sim users"),
        (UnansweredError("down"), "ldprecover serve"),
        (_unanswered(httpx.ReadTimeout("timed out")), "the same command again"),
        (_unanswered(httpx.ConnectError("refused")), "ldprecover serve"),
        (_unanswered(httpx.ConnectTimeout("timed out")), "ldprecover serve"),
        (_unanswered(httpx.ProxyError("403 Forbidden")), "HTTPS_PROXY"),
        (UnansweredError("[SSL: CERTIFICATE_VERIFY_FAILED]"), "SSL_CERT_FILE"),
        (UnansweredError("[SSL: WRONG_VERSION_NUMBER]"), "http://"),
        (UnansweredError("cut", 504), "a proxy"),
        (RefusedError(400, "No", type="/docs/errors#host-not-allowed"), "LDPRECOVER_ALLOWED_HOSTS"),
        (AccessError("keyed", "key"), "--key or LDPRECOVER_KEY"),
        (EpsilonTooHighError("high"), "--max-epsilon"),
        (EpsilonSpentError("spent"), "--max-total-epsilon"),
    ],
)
def test_hint_follows_message(error: Exception, hint: str) -> None:
    explanation = explain(error)
    assert explanation is not None
    assert explanation[0].startswith(f"{error}; ")
    assert hint in explanation[0]


@pytest.mark.parametrize("error", [ReportError("a report of ours is malformed"), KeyError("x")])
def test_unexpected_error_has_no_explanation(error: Exception) -> None:
    assert explain(error) is None


def test_close_matches_ignore_case_and_match_parts() -> None:
    cities = ["New York, NY", "Denver, CO", "St. Paul, MN"]
    assert close_to("denver", cities) == "did you mean 'Denver, CO'?"
    assert close_to("New Yrok, NY", cities) == "did you mean 'New York, NY'?"
    assert close_to("Ouagadougou", cities) == ""
    with pytest.raises(UsageError, match="did you mean 'Denver, CO'"):
        check_items(["New York, NY", "denver, co"], cities, "cities")
    check_items([*cities, "Den\u00adver, CO"], cities, "cities")


@pytest.mark.parametrize(
    ("round", "source"), [("lunch", "`ldprecover round show lunch --json`"), (None, "its export")]
)
def test_an_unknown_item_names_where_all_are_listed(round: str | None, source: str) -> None:
    with pytest.raises(UsageError) as raised:
        check_items(["tea"], ["soup", "salad"], round)
    assert str(raised.value) == f"no item of the round is called 'tea'; {source} lists all"
