"""An audit finds what a client reveals beyond its epsilon, and nothing in a sound one."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.core.auditing.clients import (
    FLAWED,
    ITEMS,
    SOUND,
    Memoising,
    draws,
    grr,
    oue,
    subset,
    sue,
)

from ldprecover import ParameterError
from ldprecover.auditing import audit
from ldprecover.auditing.audits import (
    _Client,
    _depends_on_start,
    expected_evidence,
    least_probability,
)
from ldprecover.distributions import binomial_threshold


@pytest.mark.slow
@pytest.mark.parametrize("name", FLAWED)
def test_flaw_is_proven(name: str) -> None:
    result = audit(FLAWED[name], ["a", "b"], 1.0, seed=1)
    assert result.violation
    assert result.sentences[0].startswith("Not 1-LDP: at least ")
    assert result.sentences[1] == f"Evidence: {result.evidence}."


@pytest.mark.slow
@pytest.mark.parametrize("name", SOUND)
def test_sound_client_is_no_violation(name: str) -> None:
    """Wrong once in 10^6 runs."""
    result = audit(SOUND[name], ["a", "b"], 1.0, calls=5_000, seed=1)
    assert result.audited
    assert not result.violation
    assert "it proves nothing about what was not tried" in result.sentences[0]


@pytest.mark.statistical
@pytest.mark.parametrize("name", SOUND)
def test_no_violation_in_200_audits_of_sound_clients(name: str) -> None:
    """25 audits of each of eight clients: wrong once in 40,000 runs of each."""
    for _ in range(25):
        assert not audit(SOUND[name], [*ITEMS[:2]], 1.0, calls=5_000).violation


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("client", "calls", "least"),
    [
        *((client, 20_000, 0.78) for client in (grr, subset)),
        *((client, 20_000, 0.73) for client in (oue, sue)),
        *((client, 50_000, 0.85) for client in (grr, subset)),
        *((client, 50_000, 0.80) for client in (oue, sue)),
    ],
)
def test_evidence_nearly_reaches_epsilon(
    client: Callable[[str], Any], calls: int, least: float
) -> None:
    """The mean of 20 audits, whose standard error is .01."""
    result = [audit(client, ["a", "b"], 1.0, calls=calls).at_least for _ in range(20)]
    assert np.mean(result) >= least


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("client", "calls"),
    [
        (lambda value: grr(value, 1.1, "ab"), 200_000),
        (lambda value: f"{value}!" if draws.random() < 0.001 else grr(value), 600_000),
    ],
    ids=["epsilon 1.1", "in clear once in 1,000"],
)
def test_small_flaw_is_proven_by_many_calls(client: Callable[[str], Any], calls: int) -> None:
    assert audit(client, ["a", "b"], 1.0, calls=calls).violation


@pytest.mark.statistical
def test_bounds_are_wrong_as_rarely_as_they_state() -> None:
    """A ratio of e, two bounds at .025: more violations than a binomial number at .05 allows have
    a probability of 10^-6. Bounds that are wrong in .09 of the rounds are missed as rarely.
    """
    n, rng = 500, np.random.default_rng(3)
    p = math.e / (math.e + 3)
    wrong = 0
    for a, b in zip(rng.binomial(n, p, 2_000), rng.binomial(n, p / math.e, 2_000), strict=True):
        low = least_probability(int(a), n, 0.025)
        high = 1 - least_probability(int(n - b), n, 0.025)
        wrong += low / high > math.e
    assert wrong < binomial_threshold(2_000, 0.05, 1e-6)


@pytest.mark.parametrize(("values", "pairs"), [("ab", 1), ("abcd", 6)])
def test_error_is_divided_by_all_bounds(values: str, pairs: int) -> None:
    """Of n reports that name the value all and none have the event: the bounds are powers."""
    n, level = 2_000, 1e-6 / (pairs * 2 * 16 * 2)
    result = audit(lambda value: value, [*values], 1.0, calls=len(values) * n * 5 // 4)
    limit = level ** (1 / n)
    assert result.at_least == pytest.approx(math.log(limit / (1 - limit)))
    assert result.counts == ((n, n), (0, n))


def test_evidence_of_a_sound_client_is_expected() -> None:
    result = audit(lambda value: grr(value, items="ab"), ["a", "b"], 1.0, calls=5_000, seed=3)
    assert expected_evidence(1.0, 2, 5_000, 1e-6) == pytest.approx(result.at_least, abs=0.15)


@pytest.mark.parametrize("second", [math.inf, 2.0])
def test_memory_is_no_violation_and_is_named(second: float) -> None:
    client = Memoising(second)
    client.answers.update(a="a", b="b")
    result = audit(client, ["a", "b"], 1.0, calls=2_000, restart=client.forget, seed=1)
    assert (result.audited, result.violation) == (False, False)
    assert "remembers between calls" in result.note


def test_noise_that_is_remembered_is_a_memory() -> None:
    """No start shows the same number again."""
    answers: dict[str, float] = {}

    def report(value: str) -> float:
        return answers.setdefault(value, draws.random())

    result = audit(report, ["a", "b"], 1.0, calls=2_000, restart=answers.clear)
    assert "remembers between calls" in result.note


def test_rare_event_is_no_memory() -> None:
    """In reports that are independent; one in 440 calls comes in a fifth of the audits."""

    def report(value: str) -> str:
        return "!" if draws.random() < 0.0005 else "."

    client = _Client(report, [["a"]], None, 1)
    event = frozenset(["report == '!'"])
    for _ in range(50):
        assert not _depends_on_start(client, lambda: None, event, 1.0, 1e-6, (0, 4, 8_000))


def test_constant_client_is_no_memory() -> None:
    result = audit(lambda value: value, ["a", "b"], 1.0, calls=2_000, restart=lambda: None)
    assert result.violation


@pytest.mark.slow
def test_memory_of_each_value_is_proven_by_a_history() -> None:
    client = Memoising()
    histories = [["a"] * 3 + ["b"] * 3, ["a"] * 6]
    result = audit(client, histories, 4.0, restart=client.forget, fresh=True, calls=10_000)
    assert result.violation
    assert result.values == ("'a'*3, 'b'*3", "'a'*6")
    assert result.note == ""


def test_nothing_is_audited_if_every_call_fails_or_all_reports_are_equal() -> None:
    def fails(value: str) -> str:
        raise KeyError(value)

    for client, reason in ((fails, "Every call failed"), (lambda value: 1, "All reports are the")):
        result = audit(client, ["a", "b"], 1.0, calls=100)
        assert (result.audited, result.violation) == (False, False)
        assert result.note.startswith(reason)
        assert result.sentences == ["Nothing was audited.", result.note]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"values": ["a"]}, "values must be two"),
        ({"values": ["a", "a"]}, "values must be two"),
        ({"values": ["a", []]}, "values must be two"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"error": 1.5}, "error must be"),
        ({"calls": 19}, "calls must be an integer from 20"),
    ],
)
def test_arguments_out_of_range_are_errors(changed: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"values": ["a", "b"], "epsilon": 1.0} | changed
    with pytest.raises(ParameterError, match=message):
        audit(grr, **arguments)
