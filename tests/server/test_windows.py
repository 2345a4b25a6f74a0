"""Windows: several rounds of a series whose reports are counted together."""

from itertools import count
from typing import Any

import numpy as np
import pytest
from tests.server.conftest import InProcess, problem_of

from ldprecover import OUE, Estimates, RecoveryRequest, Tally
from ldprecover.certificate.results import certificate_result
from ldprecover.protocols import wire
from ldprecover.recovery import recover_tally
from ldprecover.reports import ReportSource

pytestmark = pytest.mark.sqlite

D, N = 24, 600
ORACLE = OUE(1.0, D)
SHARES = 0.8 ** np.arange(D) / (0.8 ** np.arange(D)).sum()
_names = (f"window{i}" for i in count())


def reports_of(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return ORACLE.perturb(rng.choice(D, N, p=SHARES), rng)


def tally_of(*seeds: int) -> Tally:
    return Tally.of(ORACLE, np.concatenate([reports_of(seed) for seed in seeds]))


def submit(app: InProcess, round: str, seed: int) -> None:
    assert app.submit(round, wire.pack(reports_of(seed))).status_code == 202


def series_of(app: InProcess, numbers: int, **fields: Any) -> str:
    """Open rounds with N reports each, of which the last stays open; return the series.

    The seed of a round's reports is its number.
    """
    name = next(_names)
    for number in range(1, numbers + 1):
        id = app.open_round("oue", 1.0, domain_size=D, series=name, **fields)
        submit(app, id, number)
        if number < numbers:
            app.close_round(id)
    return name


def asked(app: InProcess, path: str, **body: Any) -> Any:
    response = app.post(f"/rounds/{path}", json=body)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.both
def test_frequencies_of_a_window_are_those_of_all_its_reports(in_process: InProcess) -> None:
    app, name = in_process, series_of(in_process, 4)
    path = f"/rounds/{name}-4/frequencies?window=3"
    first = app.get(path)
    assert (
        first.json()["frequencies"] == Estimates.of(ORACLE, tally_of(2, 3, 4)).frequencies.tolist()
    )
    assert (first.json()["window"], first.json()["numbers"]) == (3, [2, 3, 4])
    submit(app, f"{name}-4", 5)
    after = app.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (after.status_code, after.json()["n"]) == (200, 4 * N)
    app.delete_round(f"{name}-3")
    deleted = app.get(path, headers={"If-None-Match": after.headers["etag"]})
    assert (deleted.json()["numbers"], deleted.json()["n"]) == ([2, 4], 3 * N)
    unchanged = app.get(path, headers={"If-None-Match": deleted.headers["etag"]})
    assert unchanged.status_code == 304
    alone = app.get(f"/rounds/{name}-4/frequencies").json()
    assert (alone["window"], alone["numbers"], alone["n"]) == (1, [4], 2 * N)


@pytest.mark.both
def test_recovery_of_a_window_reads_the_reports_of_all_its_rounds(in_process: InProcess) -> None:
    app, name = in_process, series_of(in_process, 3)
    everything = ReportSource.of(ORACLE, np.concatenate([reports_of(2), reports_of(3)]))
    expected = recover_tally(ORACLE, tally_of(2, 3), everything, request=RecoveryRequest("unmix"))
    answer = asked(app, f"{name}-3/recover", method="unmix", window=2)
    assert answer["recovered"] == pytest.approx(expected.recovered.tolist(), abs=1e-12)
    assert answer["numbers"] == [2, 3]
    assert app.get(f"/rounds/{name}-3/recover?method=unmix&window=2").json() == answer
    assert not any("only their counts" in note for note in answer["notes"])
    submit(app, f"{name}-3", 4)
    assert asked(app, f"{name}-3/recover", method="unmix", window=2)["n"] == 3 * N


def test_one_round_without_stored_reports_has_a_window_recovered_from_counts(
    in_process: InProcess,
) -> None:
    name = series_of(in_process, 1, retention="none")
    in_process.close_round(f"{name}-1")
    id = in_process.open_round("oue", 1.0, domain_size=D, series=name)
    submit(in_process, id, 2)
    answer = asked(in_process, f"{id}/recover", method="auto", window=2)
    assert (answer["method"], answer["n"]) == ("unmix", 2 * N)
    assert any("only their counts" in note for note in answer["notes"])
    refused = in_process.post(f"/rounds/{id}/recover", json={"method": "fiad", "window": 2})
    assert problem_of(refused) == "reports-not-kept"


def test_certificate_of_a_window_is_that_of_its_counts(in_process: InProcess) -> None:
    name = series_of(in_process, 3)
    expected = certificate_result(
        ORACLE, tally_of(2, 3), malicious_share=0.01, confidence=0.95, questions=()
    )
    answer = asked(in_process, f"{name}-3/certificate", malicious_share=0.01, window=2)
    assert (answer["lower"], answer["numbers"]) == (expected.intervals[0].tolist(), [2, 3])
    in_process.close_round(f"{name}-3")
    read = asked(in_process, f"{name}-3/certificate", malicious_share=0.01, window=2, reports=True)
    assert (read["from_reports"], read["n"]) == (True, 2 * N)


def test_history_may_be_the_window_before(in_process: InProcess) -> None:
    name = series_of(in_process, 4)
    body = {"method": "unmix", "window": 2}
    history = [(ORACLE, tally_of(1, 2))]
    everything = ReportSource.of(ORACLE, np.concatenate([reports_of(3), reports_of(4)]))
    request = RecoveryRequest("unmix", history=history)
    expected = recover_tally(ORACLE, tally_of(3, 4), everything, request=request)
    answer = asked(in_process, f"{name}-4/recover", history=["window before", f"{name}-1"], **body)
    assert answer["recovered"] == pytest.approx(expected.recovered.tolist(), abs=1e-12)
    assert asked(in_process, f"{name}-4/recover", **body)["conclusions"]["history_weight"] is None
    path = f"/rounds/{name}-2/recover"
    refused = in_process.post(path, json=body | {"history": ["window before"]})
    assert "no round with reports is before the window" in refused.json()["detail"]
    refused = in_process.post(path, json=body | {"history": [f"{name}-1"]})
    assert "cannot be its own history" in refused.json()["detail"]


def test_window_takes_access_to_all_of_its_rounds(in_process: InProcess) -> None:
    name = series_of(in_process, 1, read_access="key")
    in_process.close_round(f"{name}-1")
    id = in_process.open_round("oue", 1.0, domain_size=D, series=name)
    submit(in_process, id, 2)
    for path in (f"/rounds/{id}/frequencies", f"/rounds/{id}/recover"):
        assert in_process.get(path).status_code == 200
        assert problem_of(in_process.get(f"{path}?window=2")) == "unauthorized"
        assert in_process.get(f"{path}?window=2", headers=in_process.admin).status_code == 200
    for path in (f"/rounds/{id}/certificate", f"/rounds/{id}/changes"):
        body = {"window": 2, "malicious_share": 0.1} if "cert" in path else {}
        assert problem_of(in_process.post(path, json=body)) == "unauthorized"


def test_window_needs_a_series_and_at_most_520_rounds(in_process: InProcess) -> None:
    id = in_process.open_round("oue", 1.0, domain_size=D)
    submit(in_process, id, 1)
    assert "window" not in in_process.get(f"/rounds/{id}/frequencies?window=1").json()
    for size, problem in (
        (2, "invalid-parameter"),
        (0, "invalid-request"),
        (521, "invalid-request"),
    ):
        assert problem_of(in_process.get(f"/rounds/{id}/frequencies?window={size}")) == problem
        response = in_process.post(f"/rounds/{id}/recover", json={"window": size})
        assert problem_of(response) == problem


def test_window_of_a_forms_round_has_those_at_its_position(in_process: InProcess) -> None:
    app, name = in_process, next(_names)
    asks = [
        {"protocol": "grr", "epsilon": 1.0, "domain_size": 2, "question": f"Which of {i}?"}
        for i in range(2)
    ]
    for value in (0, 1):
        body = {"assign": "client", "series": name, "rounds": asks}
        form = app.post("/forms", json=body, headers=app.admin).json()
        for i, round in enumerate(form["rounds"]):
            reports = np.full(10 + i, value, "<u4")
            assert app.submit(round["id"], wire.pack(reports)).status_code == 202
        app.post(f"/forms/{form['id']}/close", headers=app.admin)
    answer = app.get(f"/rounds/{form['rounds'][1]['id']}/frequencies?window=2").json()
    assert (answer["counts"], answer["numbers"]) == ([11, 11], [1, 2])
    changes = asked(app, f"{form['rounds'][1]['id']}/changes")
    assert (changes["n"], changes["question"]) == (11, "Which of 1?")
    single = app.open_round(domain_size=2, question="Which of 1?")
    body = {"since": form["rounds"][1]["id"], "people": "same"}
    refused = app.post(f"/rounds/{single}/changes", json=body)
    assert "people must be sample for a form" in refused.json()["detail"]
