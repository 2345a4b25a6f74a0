"""Certificates over HTTP: those of the library to the bit, and what only a server decides."""

import json
from typing import Any

import numpy as np
import pytest
from tests.conftest import ServerProcess
from tests.server.conftest import InProcess, problem_of

from ldprecover import FrequencyOracle, RoundExport, frequency_oracle
from ldprecover.protocols import wire
from ldprecover.reports import ReportSource
from ldprecover_interface.certificates import CertificateRequest, certify_export

pytestmark = pytest.mark.sqlite

LABELS = ("3", "2", "1", "0", "Łódź", "x y", "a", "b", "c", "d", "e")
REQUEST: dict[str, Any] = {
    "malicious_share": 0.01,
    "confidence": 0.9,
    "questions": [{"items": ["Łódź", 0, "3"], "more_than": 0.25}, {"ahead": [1, 0]}, {"top": 2}],
}
# Each question costs dozens of linear programmes.
FROM_REPORTS = REQUEST | {"reports": True, "questions": REQUEST["questions"][:1]}


def fill(server: Any, oracle: FrequencyOracle, close: bool = False, **fields: Any) -> str:
    """Return a round of 3,000 users of the first four items."""
    rng = np.random.default_rng(4)
    own = {"hash_range": 4} if oracle.protocol == "olh" else {}
    id = server.try_open(oracle.protocol, 1.0, items=LABELS, **own, **fields).json()["id"]
    reports = oracle.perturb(rng.choice(4, 3_000, p=[0.5, 0.3, 0.1, 0.1]), rng)
    assert server.submit(id, wire.pack(reports)).status_code == 202
    if close:
        assert server.close_round(id).status_code == 200
    return id


def offline_certificate(server: Any, id: str, body: Any, stored: Any = None) -> Any:
    """Return the certificate that the round's export gives, with the reports if they are needed."""
    export = RoundExport.from_json(server.get(f"/rounds/{id}/export").content)
    oracle, source = export.parameters.oracle, None
    if stored is not None:
        source = ReportSource(oracle, np.frombuffer(b"".join(stored), oracle.wire.dtype))
    request = CertificateRequest.model_validate(body)
    return json.loads(certify_export(export, request, source).to_json())


def test_certificate_is_that_of_the_library_to_the_bit(
    server: ServerProcess, oracle: FrequencyOracle
) -> None:
    id = fill(server, oracle)
    response = server.post(f"/rounds/{id}/certificate", json=REQUEST)
    assert response.status_code == 200, response.text
    assert response.json() == offline_certificate(server, id, REQUEST)


def test_certificate_as_csv_has_the_columns(server: ServerProcess) -> None:
    id = fill(server, frequency_oracle("oue", 1.0, 11))
    path = f"/rounds/{id}/certificate"
    answered = server.post(path, json=REQUEST).json()
    response = server.post(f"{path}?format=csv", json=REQUEST)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/csv")
    assert response.headers["content-disposition"].endswith(f'"certificate-{id}.csv"')
    head, *lines = response.text.splitlines()
    assert head == '"item","index","lower","upper","events","from_reports","seed"'
    assert lines[4] == f'"Łódź",4,{answered["lower"][4]!r},{answered["upper"][4]!r},22,false,'
    assert len(lines) == 11


@pytest.mark.both
@pytest.mark.parametrize(("protocol", "hash_range"), [("olh", 4)])
def test_exported_reports_give_the_servers_certificate(
    in_process: InProcess, protocol: str, hash_range: int | None
) -> None:
    """The export shuffles the reports. All certificates of a round have its seed."""
    oracle = frequency_oracle(protocol, 1.0, 11, hash_range)
    id = fill(in_process, oracle, close=True)
    answered = in_process.post(f"/rounds/{id}/certificate", json=FROM_REPORTS).json()
    assert (answered["from_reports"], answered["malicious_share"]) == (True, 0.01)
    seq = in_process.storage.rounds.find(id).seq
    _, stored = in_process.storage.segments.tally_and_reports(seq, oracle.summary_size)
    assert offline_certificate(in_process, id, FROM_REPORTS, stored) == answered
    body = FROM_REPORTS | {"confidence": 0.8}
    assert in_process.close_round(id).status_code == 200  # once more
    again = in_process.post(f"/rounds/{id}/certificate", json=body).json()
    assert (
        again["seed"] == answered["seed"] == in_process.get(f"/rounds/{id}/export").json()["seed"]
    )
    other = fill(in_process, frequency_oracle("grr", 1.0, 11), close=True)
    assert in_process.get(f"/rounds/{other}/export").json()["seed"] != answered["seed"]
    opened = in_process.open_round()
    assert "seed" not in in_process.get(f"/rounds/{opened}/export").json()


def test_round_without_stored_reports_has_a_certificate_of_counts(in_process: InProcess) -> None:
    id = fill(in_process, frequency_oracle("oue", 1.0, 11), close=True, retention="none")
    response = in_process.post(f"/rounds/{id}/certificate", json=FROM_REPORTS)
    assert problem_of(response) == "reports-not-kept"
    body = FROM_REPORTS | {"reports": False}
    assert in_process.post(f"/rounds/{id}/certificate", json=body).status_code == 200


def test_histogram_has_a_certificate_without_stored_reports(in_process: InProcess) -> None:
    id = fill(in_process, frequency_oracle("hr", 1.0, 11), close=True, retention="none")
    answered = in_process.post(f"/rounds/{id}/certificate", json=FROM_REPORTS).json()
    assert answered["from_reports"] is True
    assert offline_certificate(in_process, id, FROM_REPORTS) == answered


def test_server_without_scipy_says_what_is_missing(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = fill(in_process, frequency_oracle("grr", 1.0, 11), close=True)
    monkeypatch.setattr("ldprecover_server.analysis.analyses.find_spec", lambda name: None)
    response = in_process.post(f"/rounds/{id}/certificate", json=FROM_REPORTS)
    assert problem_of(response) == "invalid-parameter"
    assert "with scipy, the extra certify" in response.json()["detail"]


def test_mean_of_numbers_is_certified(in_process: InProcess) -> None:
    id = in_process.open_round("grr", 1.0, items=("-1", "1"))
    reports = np.repeat(np.array([0, 1], "<u4"), [7_000, 13_000])
    assert in_process.submit(id, wire.pack(reports)).status_code == 202
    body = {"malicious_share": 0.01, "questions": [{"mean_above": 0.2}]}
    answered = in_process.post(f"/rounds/{id}/certificate", json=body).json()
    (answer,) = answered["answers"]
    assert answered["mean"] == pytest.approx({"lower": answer["lower"], "upper": answer["upper"]})
    assert answer["certified"]


def test_share_below_the_proven_one_is_a_problem(in_process: InProcess) -> None:
    id = in_process.open_round("oue", 1.0, items=LABELS)
    every = np.packbits(np.ones((200, 11), bool), axis=1, bitorder="little")
    assert in_process.submit(id, wire.pack(every)).status_code == 202
    response = in_process.post(f"/rounds/{id}/certificate", json={"malicious_share": 0.01})
    assert problem_of(response) == "share-too-small"
    assert 0.1 < response.json()["least_malicious_share"] < 1
    assert response.json()["detail"].startswith("nothing is certified if at most 1 % of all")


def test_large_round_is_certified_by_a_worker(in_process: InProcess) -> None:
    """A worker's certificate is that of the thread."""
    oracle = frequency_oracle("grr", 5.0, 5000)
    id = in_process.open_round("grr", 5.0, domain_size=5000)
    users = np.repeat(np.arange(3), [12_000, 6_000, 2_000])
    reports = oracle.perturb(users, np.random.default_rng(4))
    assert in_process.submit(id, wire.pack(reports)).status_code == 202
    body = REQUEST | {"questions": [{"ahead": ["0", 2]}, {"top": 2}, {"items": [1, 2]}]}
    answered = in_process.post(f"/rounds/{id}/certificate", json=body).json()
    assert offline_certificate(in_process, id, body) == answered
    assert answered["answers"][1]["items"] == [0, 1]


def test_tickets_bound_the_share(in_process: InProcess) -> None:
    id = in_process.open_round("grr", 2.0, access="ticket")
    path = f"/rounds/{id}"
    for i, ticket in enumerate(in_process.mint(path, 20)):
        headers = {"Authorization": f"Ticket {ticket}"}
        response = in_process.post(f"{path}/reports", json={"reports": [i % 4]}, headers=headers)
        assert response.status_code == 202
    by_tickets, by_share = (
        in_process.post(f"{path}/certificate", json=body).json()
        for body in ({"malicious_tickets": 2}, {"malicious_share": 0.1})
    )
    assert by_tickets == by_share
    assert by_tickets["malicious_share"] == 0.1


def test_large_request_is_rejected_before_it_is_read(in_process: InProcess) -> None:
    id = in_process.open_round()
    body = {"malicious_share": 0.1, "questions": [{"items": ["x" * 2**16]}]}
    response = in_process.post(f"/rounds/{id}/certificate", json=body)
    assert problem_of(response) == "body-too-large"
