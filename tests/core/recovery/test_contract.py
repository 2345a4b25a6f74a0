"""What a recovery method may return and raise, whether built in or a plugin."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ldprecover import GRR, OUE, ContractError, ParameterError, Recovery, recover
from ldprecover.recovery import METHODS, Conclusions, Method
from ldprecover.recovery.contract import RecoveryInputs
from ldprecover.types import Reports

ORACLE = GRR(1.0, 4)
F = [0.4, 0.3, 0.2, 0.1]


def _recovered(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[Recovery], Any], **fields: Any
) -> Recovery:
    """Return what `recover` makes of a method that returns this of a good recovery."""

    def recovered(inputs: RecoveryInputs) -> Recovery:
        good = replace(METHODS["norm-sub"].recover(inputs), method="theirs")
        changed: Recovery = answer(good)
        return changed

    method = Method("theirs", "somebody's", uses=frozenset(), recover=recovered, **fields)
    monkeypatch.setitem(METHODS, "theirs", method)
    return recover(ORACLE, F, "theirs")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"recovered": np.full(4, np.nan)}, "recovered must be a numpy array of 4 finite numbers"),
        (
            {"recovered": np.array([0.5, 0.5])},
            "recovered must be a numpy array of 4 finite numbers",
        ),
        ({"recovered": [0.25] * 4}, "recovered must be a numpy array of 4 finite numbers"),
        (
            {"recovered": np.array([0.5, 0.6, -0.1, 0.0])},
            "must be a distribution, and item index 2 has -0.1",
        ),
        ({"recovered": np.array([0.5, 0.6, 0.1, 0.0])}, "recovered must sum to one, not 1.2"),
        ({"malicious": np.full(4, np.inf)}, "malicious must be a numpy array"),
        ({"genuine": np.zeros(3)}, "genuine must be a numpy array"),
        ({"poisoned": None}, "poisoned must be a numpy array"),
        ({"eta": float("nan")}, "eta must be a finite number, not nan"),
        ({"eta": 10**400}, "eta must be a finite number, not 1000"),
        ({"malicious_sum": "1"}, "malicious_sum must be a finite number, not '1'"),
        ({"targets": (4,)}, "targets must be a tuple of item indices from 0 to 3"),
        ({"notes": "a note"}, "notes must be a tuple of sentences"),
        ({"method": "ours"}, "method must be 'theirs', not 'ours'"),
        ({"conclusions": {}}, "conclusions must be Conclusions or None"),
        (
            {"conclusions": Conclusions(lower=np.zeros(3))},
            "lower of the conclusions must be a numpy array of 4",
        ),
        (
            {"conclusions": Conclusions(beta=float("inf"))},
            "beta of the conclusions must be a finite number or None",
        ),
    ],
)
def test_error_names_a_method_with_an_invalid_result(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(
        ContractError, match=f"^the method 'theirs' returned what it may not: .*{words}"
    ):
        _recovered(monkeypatch, lambda good: replace(good, **changes))


def test_rejects_results_that_are_no_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ContractError, match=r"it must be a Recovery, not \{'x': 1\}"):
        _recovered(monkeypatch, lambda _: {"x": 1})


def test_result_needs_only_the_promised_property(monkeypatch: pytest.MonkeyPatch) -> None:
    negative, anything = np.array([0.5, 0.6, -0.1, 0.0]), np.array([7.0, 0.0, -1.0, 0.0])
    result = _recovered(
        monkeypatch, lambda good: replace(good, recovered=negative), gives="sum-one"
    )
    assert result.recovered is negative
    result = _recovered(
        monkeypatch, lambda good: replace(good, recovered=anything), gives="frequencies"
    )
    assert result.recovered is anything
    with pytest.raises(ContractError, match="must sum to one"):
        _recovered(monkeypatch, lambda good: replace(good, recovered=anything), gives="sum-one")


@pytest.mark.parametrize("error", [ValueError("boom"), RuntimeError("boom"), SystemExit("boom")])
def test_error_names_a_method_that_raises(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def boom(_: Recovery) -> Recovery:
        raise error

    with pytest.raises(
        ContractError, match=f"^the method 'theirs' raised {type(error).__name__}: boom$"
    ) as raised:
        _recovered(monkeypatch, boom)
    assert raised.value.__cause__ is error


@pytest.mark.parametrize("error", [ParameterError("not so"), MemoryError()])
def test_own_errors_and_memory_errors_pass(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(_: Recovery) -> Recovery:
        raise error

    with pytest.raises(type(error)) as raised:
        _recovered(monkeypatch, refuse)
    assert raised.value is error


def test_errors_of_the_report_source_pass_through() -> None:
    def unreadable() -> Iterator[Reports]:
        raise OSError("the disk is gone")
        yield

    with pytest.raises(OSError, match="the disk is gone"):
        recover(OUE(1.0, 8), unreadable, "diffstats")


def test_error_in_unfit_is_the_reason_of_refusal() -> None:
    def unfit(_: object) -> str | None:
        raise KeyError("boom")

    reason = replace(METHODS["norm-sub"], unfit=unfit).refusal(ORACLE, frozenset({"counts"}))
    assert reason == "the method 'norm-sub' cannot say whether it fits: KeyError: 'boom'"
