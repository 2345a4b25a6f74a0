"""Reports by name: a proxy before several deployments, where the round has different ids."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.client.conftest import Collector

from ldprecover_client import (
    AlreadyReportedError,
    ArgumentError,
    InconsistentRoundError,
    InvalidAnswerError,
    Ledger,
    RefusedError,
    UnansweredError,
)

MakeReporter = Callable[..., Any]


class Proxy:
    """Two deployments with a round "cities"; one returns parameters, the other takes reports."""

    def __init__(self) -> None:
        self.deployments = [Collector(), Collector()]
        for i, deployment in enumerate(self.deployments):
            deployment.add("oue", id=f"r{i + 1}")["name"] = "cities"
        self.states, self.takes = self.deployments

    def __call__(self, request: httpx.Request) -> httpx.Response:
        return (self.takes if request.method == "POST" else self.states)(request)

    def switch(self) -> None:
        """Let the other deployment return the parameters."""
        self.states = next(each for each in self.deployments if each is not self.states)

    @property
    def stored(self) -> list[dict[str, bytes]]:
        return [deployment.stored for deployment in self.deployments]


@pytest.fixture
def proxy() -> Proxy:
    return Proxy()


@pytest.fixture
def by_name(proxy: Proxy, reporter: MakeReporter) -> MakeReporter:
    """Make a reporter of either kind that reports to "cities" by its name."""

    def make(round_: str = "cities", **options: Any) -> Any:
        return reporter(
            round_, **{"by_name": True, "transport": httpx.MockTransport(proxy), **options}
        )

    return make


def test_report_by_name_reaches_other_deployment(proxy: Proxy, by_name: MakeReporter) -> None:
    user = by_name()
    receipt = user.report(2)
    assert (receipt.round_id, receipt.round_name, receipt.state) == ("cities", "cities", "accepted")
    assert [len(stored) for stored in proxy.stored] == [0, 1]
    proxy.switch()
    with pytest.raises(AlreadyReportedError):
        user.report(2)


def test_other_deployment_does_not_know_id(by_name: MakeReporter) -> None:
    """The reason for `by_name`."""
    with pytest.raises(RefusedError, match="round not found"):
        by_name(by_name=False).report(2)


@pytest.mark.parametrize("then", ["reporting again", "resuming"])
def test_same_report_after_other_deployments_parameters(
    proxy: Proxy, by_name: MakeReporter, then: str
) -> None:
    """The ledger stores the name, so `resume` needs no argument."""
    ledger = Ledger.in_memory()
    proxy.takes.faults.extend([Collector.answer_lost] * Collector.AT_ONCE.attempts)
    with pytest.raises(UnansweredError):
        by_name(ledger=ledger).report(2)
    proxy.switch()
    if then == "resuming":
        (receipt,) = by_name("another", ledger=ledger, by_name=False).resume()
    else:
        receipt = by_name(ledger=ledger).report(3)
    assert (receipt.state, receipt.resent, receipt.duplicate) == ("accepted", True, True)
    assert len(set(proxy.takes.sent)) == 1
    assert [len(stored) for stored in proxy.stored] == [0, 1]
    assert [entry.state for entry in ledger.entries()] == ["accepted"]


def test_other_parameters_get_no_report(proxy: Proxy, by_name: MakeReporter) -> None:
    ledger = Ledger.in_memory()
    by_name(ledger=ledger).report(2)
    proxy.switch()
    proxy.states.rounds.clear()
    proxy.states.add("oue", 0.4, id="r3")["name"] = "cities"
    with pytest.raises(InconsistentRoundError, match="other parameters"):
        by_name(ledger=ledger).report(2)


def test_rejects_wrong_accepted_count_by_name(proxy: Proxy, by_name: MakeReporter) -> None:
    proxy.takes.faults.append(
        lambda send: httpx.Response(202, json={"round": "r2", "accepted": 2, "duplicate": False})
    )
    with pytest.raises(InvalidAnswerError, match="other reports"):
        by_name().report(2)


def test_other_name_gets_no_report(proxy: Proxy, by_name: MakeReporter) -> None:
    proxy.states.rounds["cities"] = proxy.states.rounds.pop("r1") | {"name": "towns"}
    with pytest.raises(InconsistentRoundError, match="asked for the round cities"):
        by_name().report(2)
    assert proxy.takes.posts == []


@pytest.mark.parametrize("round_", ["current", "R0123", "", "Ä"])
def test_by_name_needs_name(by_name: MakeReporter, round_: str) -> None:
    with pytest.raises(ArgumentError, match="needs the round's name"):
        by_name(round_)


def test_by_name_takes_no_tickets(by_name: MakeReporter) -> None:
    with pytest.raises(ArgumentError, match="good on the one deployment that minted it"):
        by_name(ticket="x" * 22 + "." + "x" * 22)
