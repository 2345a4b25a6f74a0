"""Methods and alarms over HTTP, from counts and from stored reports."""

from typing import Any

import numpy as np
import pytest
from tests.server.conftest import InProcess, StartInProcess, problem_of

from ldprecover import FrequencyOracle, RecoveryRequest, Tally, frequency_oracle, recover
from ldprecover.estimation.means import ITEMS, Mean, round_numbers
from ldprecover.evidence.alarms import raise_alarms
from ldprecover.protocols import PROTOCOLS, wire
from ldprecover.recovery import METHODS
from ldprecover.reports import ReportSource
from ldprecover_server.storage.segments import StoredReports

pytestmark = pytest.mark.sqlite


D = 24
FREQUENCIES = 1 / np.arange(1, D + 1) / (1 / np.arange(1, D + 1)).sum()
TARGETS = [15, 20]


def honest(oracle: FrequencyOracle, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return oracle.perturb(rng.choice(D, n, p=FREQUENCIES), rng)


def send(app: InProcess, round: str, reports: np.ndarray, pieces: int = 3) -> None:
    for piece in np.array_split(reports, pieces):
        response = app.submit(round, wire.pack(piece))
        assert response.status_code == 202, response.text


def listed(app: InProcess, round: str) -> dict[str, dict[str, Any]]:
    answer = app.get(f"/rounds/{round}/methods").json()
    assert answer["round"] == round
    return {method["name"]: method for method in answer["methods"]}


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_a_round_runs_exactly_the_methods_it_lists(in_process: InProcess, protocol: str) -> None:
    round = in_process.open_round(protocol, 1.0, domain_size=D)
    reports = honest(frequency_oracle(protocol, 1.0, D), 600, 1)
    send(in_process, round, reports)
    methods = listed(in_process, round)
    assert set(methods) == set(METHODS)
    read = "tally" if protocol in ("grr", "hr", "llh") else "reports"
    assert (methods["em"]["source"], methods["mle"]["source"]) == (read, "counts")
    for name, method in methods.items():
        body = {"method": name, "targets": TARGETS[:1] if "targets" in method["needs"] else []}
        answer = in_process.post(f"/rounds/{round}/recover", json=body)
        if method["available"]:
            assert answer.status_code == 200, (name, answer.text)
            recovered = answer.json()["recovered"]
            if method["gives"] != "frequencies":
                assert sum(recovered) == pytest.approx(1)
            if method["gives"] == "distribution":
                assert min(recovered) >= 0
        else:
            assert answer.status_code == 422, name
            assert method["reason"] in answer.json()["detail"]


def test_counts_serve_without_stored_reports(in_process: InProcess) -> None:
    round = in_process.open_round("oue", 1.0, domain_size=D, retention="none")
    send(in_process, round, honest(frequency_oracle("oue", 1.0, D), 300, 3))
    methods = listed(in_process, round)
    method = methods["diffstats"]
    assert (method["available"], method["reason"]) == (
        False,
        "diffstats needs the reports themselves",
    )
    assert (method["source"], methods["unmix"]["source"]) == ("reports", "counts")
    refused = in_process.post(f"/rounds/{round}/recover", json={"method": "diffstats"})
    assert problem_of(refused) == "reports-not-kept"
    alarms = in_process.get(f"/rounds/{round}/alarms").json()
    assert alarms["reports_read"] is False
    assert [alarm["name"] for alarm in alarms["alarms"]] == ["sum-drift", "excess"]


@pytest.mark.parametrize(("protocol", "retention"), [("grr", "none"), ("llh", "forever")])
def test_a_histogram_takes_the_place_of_stored_reports(
    in_process: InProcess, protocol: str, retention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every method, and the alarms, are those of the reports; no stored report is read."""

    def no_reports(reports: StoredReports) -> None:
        raise AssertionError("stored reports were read")

    monkeypatch.setattr(StoredReports, "__iter__", no_reports)
    round = in_process.open_round(protocol, 1.0, domain_size=D, retention=retention)
    oracle = frequency_oracle(protocol, 1.0, D)
    reports = honest(oracle, 600, 1)
    send(in_process, round, reports)
    methods = listed(in_process, round)
    reading = [
        name
        for name, method in METHODS.items()
        if "reports" in method.needs and method.unfit(oracle) is None
    ]
    assert len(reading) >= 3
    for name in reading:
        assert methods[name]["available"], methods[name]["reason"]
        answer = in_process.post(f"/rounds/{round}/recover", json={"method": name, "targets": [3]})
        assert answer.status_code == 200, answer.text
        expected = recover(oracle, reports, RecoveryRequest(name, targets=[3]))
        np.testing.assert_allclose(answer.json()["recovered"], expected.recovered, atol=1e-12)
    alarms = in_process.get(f"/rounds/{round}/alarms").json()
    assert alarms["reports_read"] is True
    expected_alarms = raise_alarms(oracle, Tally.of(oracle, reports), ReportSource(oracle, reports))
    assert [alarm["statistic"] for alarm in alarms["alarms"]] == [
        alarm.statistic for alarm in expected_alarms
    ]


def test_key_is_checked_before_other_parameters(in_process: InProcess) -> None:
    round = in_process.open_round(read_access="key")
    assert in_process.post(f"/rounds/{round}/recover?format=xml").status_code == 401


def test_a_round_for_numbers_answers_with_their_mean(in_process: InProcess) -> None:
    round = in_process.open_round("grr", 1.0, items=list(ITEMS))
    assert in_process.frequencies(round)["mean"] is None
    oracle = frequency_oracle("grr", 1.0, 2)
    rng = np.random.default_rng(8)
    reports = oracle.perturb(round_numbers(rng.uniform(-1, 1, 500), rng), rng)
    send(in_process, round, reports)
    expected = Mean.of(oracle, Tally.of(oracle, reports))
    low, high = expected.interval()
    assert in_process.frequencies(round)["mean"] == {
        "value": expected.value,
        "standard_error": expected.standard_error,
        "low": low,
        "high": high,
    }
    assert "mean" not in in_process.frequencies(in_process.open_round("grr", 1.0))


def test_a_round_without_reports_gives_no_method_and_no_alarm(
    start_in_process: StartInProcess,
) -> None:
    app = start_in_process()
    round = app.open_round()
    assert {method["reason"] for method in listed(app, round).values()} == {
        "the round has no reports"
    }
    assert app.get(f"/rounds/{round}/alarms").status_code == 409
