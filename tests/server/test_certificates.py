"""Certificates over HTTP: those of the library to the bit, and every request that has none."""

import json
import re
from typing import Any

import numpy as np
import pytest
from tests.conftest import ServerProcess
from tests.server.conftest import InProcess, problem_of

from ldprecover import FrequencyOracle, RoundExport, Tally, frequency_oracle
from ldprecover.certificate import Ahead, AmongFirst, Claim, MoreThan, certify
from ldprecover.estimation.means import round_numbers
from ldprecover.protocols import wire
from ldprecover.reports import ReportSource
from ldprecover.types import Reports
from ldprecover_attacker import make_attack
from ldprecover_interface.certificates import CertificateRequest, certify_export

pytestmark = pytest.mark.sqlite

LABELS = ("3", "2", "1", "0", "Łódź", "x y", "a", "b", "c", "d", "e")
SHARES = [0.5, 0.3, 0.1, 0.1]
REQUEST: dict[str, Any] = {
    "malicious_share": 0.01,
    "confidence": 0.9,
    "questions": [
        {"items": ["Łódź", 0, "3"], "more_than": 0.25},
        {"items": [1]},
        {"ahead": ["3", "e"]},
        {"ahead": [1, 0]},
        {"top": 2},
    ],
}


def fill(
    server: Any, oracle: FrequencyOracle, n: int = 6000, m: int = 0, **fields: Any
) -> tuple[str, Reports]:
    """Open a round in which n users hold the first four items, and m raise another; return its id
    and reports.
    """
    rng = np.random.default_rng(4)
    own = {"hash_range": 4} if oracle.protocol == "olh" else {}
    id = server.try_open(oracle.protocol, 1.0, items=LABELS, **own, **fields).json()["id"]
    honest = oracle.perturb(rng.choice(4, n, p=SHARES), rng)
    malicious = make_attack("mga", targets=(4,)).reports(oracle, m, rng)
    for reports in filter(len, (honest, malicious)):
        assert server.submit(id, wire.pack(reports)).status_code == 202
    return id, np.concatenate([honest, malicious])


def test_certificate_is_that_of_the_library_to_the_bit(
    server: ServerProcess, oracle: FrequencyOracle
) -> None:
    id, reports = fill(server, oracle)
    tally = Tally.of(oracle, reports)
    response = server.post(f"/rounds/{id}/certificate", json=REQUEST)
    assert response.status_code == 200, response.text
    answered = response.json()
    export = RoundExport.from_dict(server.get(f"/rounds/{id}/export").json())
    offline = certify_export(export, CertificateRequest.model_validate(REQUEST))
    assert json.loads(offline.to_json()) == answered
    certificate = certify(oracle, tally, 0.01, 0.9)
    answers, sentences = answered.pop("answers"), answered.pop("sentences")
    assert len(sentences["answers"]) == len(answers)
    assert answered == {
        "round": id,
        "n": 6000,
        "malicious_share": 0.01,
        "confidence": 0.9,
        "events": 22,
        "from_reports": False,
        "seed": None,
        "assumption": certificate.assumption,
        "least_malicious_share": certificate.least_malicious_share,
        "items": list(LABELS),
        "lower": certificate.lower.tolist(),
        "upper": certificate.upper.tolist(),
    }
    estimates = oracle.estimate(tally.counts(oracle), 6000)
    claims: list[Claim] = [MoreThan((0, 4), 0.25), MoreThan((1,), 0.0), Ahead(0, 10), Ahead(1, 0)]
    claims.append(AmongFirst(tuple(np.argsort(-estimates)[:2].tolist()), 2))
    for answer, claim in zip(answers, claims, strict=True):
        assert answer["tolerance"] == certificate.tolerance(claim)
        assert certificate.region is not None
        assert answer["certified"] is claim.holds(certificate.region)
    total, one, lead, behind, first = answers
    assert (total["items"], total["more_than"]) == ([0, 4], 0.25)
    assert total["estimate"] == pytest.approx(estimates[0] + estimates[4])
    assert (total["lower"], total["upper"]) == certificate.total([0, 4])
    assert (one["items"], one["more_than"]) == ([1], 0.0)
    assert (lead["ahead"], behind["ahead"]) == ([0, 10], [1, 0])
    assert (lead["lower"], lead["upper"]) == certificate.difference(0, 10)
    assert not behind["certified"]
    ranking = certificate.ranking(2)
    assert (first["top"], first["items"]) == (2, [0, 1])
    assert (first["certain"], first["possible"]) == (list(ranking.certain), list(ranking.possible))


def test_certificate_as_csv_has_the_columns(server: ServerProcess) -> None:
    id, _ = fill(server, frequency_oracle("oue", 1.0, 11))
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


def fill_and_close(server: Any, oracle: FrequencyOracle, **fields: Any) -> tuple[str, Reports]:
    """Close a round in which some users raise an item; return its id and reports."""
    id, reports = fill(server, oracle, 3000, 300, **fields)
    assert server.close_round(id).status_code == 200
    return id, reports


# Each question costs dozens of linear programmes; the other two ask for nothing else of reports.
FROM_REPORTS = REQUEST | {
    "malicious_share": 0.3,
    "reports": True,
    "questions": REQUEST["questions"][:3],
}
ONE_QUESTION = FROM_REPORTS | {"questions": REQUEST["questions"][1:2]}
SETS = [(0, 4), (1,), (0,), (10,)]


def offline_certificate(server: InProcess, id: str, body: Any) -> Any:
    """Return the certificate that the round's export and its stored reports give."""
    export = RoundExport.from_json(server.get(f"/rounds/{id}/export").content)
    oracle = export.parameters.oracle
    seq = server.storage.rounds.find(id).seq
    _, stored = server.storage.segments.tally_and_reports(seq, oracle.summary_size)
    source = ReportSource(oracle, np.frombuffer(b"".join(stored), oracle.wire.dtype))
    request = CertificateRequest.model_validate(body)
    return json.loads(certify_export(export, request, source).to_json())


def test_certificate_from_reports_is_that_of_the_library(in_process: InProcess) -> None:
    oracle = frequency_oracle("oue", 1.0, 11)
    id, reports = fill_and_close(in_process, oracle)
    response = in_process.post(f"/rounds/{id}/certificate", json=FROM_REPORTS)
    assert response.status_code == 200, response.text
    answered = response.json()
    seed = in_process.get(f"/rounds/{id}/export").json()["seed"]
    assert (answered["from_reports"], answered["seed"]) == (True, seed)
    certificate = certify(oracle, reports, 0.3, 0.9, questions=SETS, seed=int(seed, 16))
    assert answered["assumption"] == certificate.assumption
    assert answered["assumption"].endswith("drew those that chose what is tested.")
    assert answered["events"] == certificate.evidence.events > 22
    assert answered["least_malicious_share"] == certificate.least_malicious_share
    assert answered["lower"] == certificate.lower.tolist()
    total, one, lead = answered["answers"]
    assert (total["lower"], total["upper"]) == certificate.total((0, 4))
    assert one["tolerance"] == certificate.tolerance(MoreThan((1,), 0.0))
    assert (lead["lower"], lead["upper"]) == certificate.difference(0, 10)


@pytest.mark.both
def test_exported_reports_give_the_servers_certificate(in_process: InProcess) -> None:
    """The export shuffles the reports."""
    oracle = frequency_oracle("olh", 1.0, 11, 4)
    id, _ = fill_and_close(in_process, oracle)
    answered = in_process.post(f"/rounds/{id}/certificate", json=ONE_QUESTION).json()
    assert answered["from_reports"]
    assert offline_certificate(in_process, id, ONE_QUESTION) == answered


@pytest.mark.both
def test_all_certificates_of_a_round_have_one_seed(in_process: InProcess) -> None:
    oracle = frequency_oracle("grr", 1.0, 11)
    (first, _), (other, _) = (fill_and_close(in_process, oracle) for _ in range(2))
    seeds = [
        in_process.post(f"/rounds/{id}/certificate", json=ONE_QUESTION | fields).json()["seed"]
        for id, fields in ((first, {}), (first, {"confidence": 0.8}), (other, {}))
    ]
    assert in_process.close_round(first).status_code == 200  # once more
    assert in_process.get(f"/rounds/{first}/export").json()["seed"] == seeds[0] == seeds[1]
    assert seeds[2] != seeds[0]
    opened = in_process.open_round()
    assert "seed" not in in_process.get(f"/rounds/{opened}/export").json()


def test_round_without_stored_reports_has_a_certificate_of_counts(in_process: InProcess) -> None:
    id, _ = fill_and_close(in_process, frequency_oracle("oue", 1.0, 11), retention="none")
    response = in_process.post(f"/rounds/{id}/certificate", json=FROM_REPORTS)
    assert problem_of(response) == "reports-not-kept"
    body = FROM_REPORTS | {"reports": False}
    assert in_process.post(f"/rounds/{id}/certificate", json=body).status_code == 200


def test_histogram_has_a_certificate_without_stored_reports(in_process: InProcess) -> None:
    id, _ = fill_and_close(in_process, frequency_oracle("hr", 1.0, 11), retention="none")
    answered = in_process.post(f"/rounds/{id}/certificate", json=FROM_REPORTS).json()
    assert answered["from_reports"] is True
    export = RoundExport.from_dict(in_process.get(f"/rounds/{id}/export").json())
    request = CertificateRequest.model_validate(FROM_REPORTS)
    assert json.loads(certify_export(export, request).to_json()) == answered


def test_server_without_scipy_says_what_is_missing(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    id, _ = fill_and_close(in_process, frequency_oracle("grr", 1.0, 11))
    monkeypatch.setattr("ldprecover_server.analysis.analyses.find_spec", lambda name: None)
    response = in_process.post(f"/rounds/{id}/certificate", json=FROM_REPORTS)
    assert problem_of(response) == "invalid-parameter"
    assert "with scipy, the extra certify" in response.json()["detail"]


def test_claim_may_hold_at_a_smaller_share_than_assumed(in_process: InProcess) -> None:
    id, _ = fill(in_process, frequency_oracle("oue", 1.0, 11), 40_000)
    body = {"malicious_share": 0.2, "questions": [{"top": 2}, {"ahead": [2, 3]}]}
    open_claim, noise = in_process.post(f"/rounds/{id}/certificate", json=body).json()["answers"]
    assert not open_claim["certified"]
    assert 0 < open_claim["tolerance"] < 0.2
    assert noise["tolerance"] is None


def test_mean_of_numbers_is_certified(in_process: InProcess) -> None:
    oracle, rng = frequency_oracle("grr", 1.0, 2), np.random.default_rng(4)
    id = in_process.open_round("grr", 1.0, items=("-1", "1"))
    numbers = rng.uniform(-0.2, 1.0, 20_000)
    reports = oracle.perturb(round_numbers(numbers, rng), rng)
    assert in_process.submit(id, wire.pack(reports)).status_code == 202
    body = {"malicious_share": 0.01, "questions": [{"mean_above": 0.2}, {"mean_above": 0.9}]}
    answered = in_process.post(f"/rounds/{id}/certificate", json=body).json()
    certificate = certify(oracle, Tally.of(oracle, reports), 0.01)
    low, high = certificate.difference(1, 0)
    assert low < numbers.mean() < high
    assert answered["mean"] == {"lower": pytest.approx(low), "upper": pytest.approx(high)}
    proven, false = answered["answers"]
    assert (proven["lower"], proven["upper"]) == (low, high)
    assert proven["mean_above"] == 0.2
    assert proven["certified"]
    assert proven["tolerance"] == certificate.tolerance(Ahead(1, 0, by=0.2))
    assert proven["estimate"] == pytest.approx(numbers.mean(), abs=0.1)
    assert not false["certified"]


@pytest.fixture(scope="module")
def attacked(in_process: InProcess) -> tuple[str, Tally]:
    """A round in which every tenth report supports all items but one."""
    oracle, rng = frequency_oracle("oue", 1.0, 11), np.random.default_rng(4)
    id = in_process.open_round("oue", 1.0, items=LABELS)
    honest = oracle.perturb(rng.choice(4, 18_000, p=SHARES), rng)
    bits = np.arange(11) < np.full((2000, 1), 10)
    malicious = np.packbits(bits, axis=1, bitorder="little")
    for reports in (honest, malicious):
        assert in_process.submit(id, wire.pack(reports)).status_code == 202
    return id, Tally.of(oracle, honest) + Tally.of(oracle, malicious)


def test_attacked_round_says_how_many_reports_are_malicious(
    in_process: InProcess, attacked: tuple[str, Tally]
) -> None:
    id, _ = attacked
    questions = [{"ahead": [0, 10]}, {"ahead": [4, 5]}, {"items": [0], "more_than": 0.7}]
    body = {"malicious_share": 0.1, "questions": questions}
    answered = in_process.post(f"/rounds/{id}/certificate", json=body).json()
    least = answered["least_malicious_share"]
    assert 0.05 < least < 0.1
    proven, narrow, unproven = answered["answers"]
    assert proven["certified"]
    assert narrow["tolerance"] > least
    assert not narrow["certified"]
    # The claim holds in the estimate, which the malicious reports raised.
    assert unproven["estimate"] > 0.7
    assert (unproven["certified"], unproven["tolerance"]) == (False, None)


def test_share_below_the_proven_one_is_a_problem(
    in_process: InProcess, attacked: tuple[str, Tally]
) -> None:
    id, tally = attacked
    response = in_process.post(f"/rounds/{id}/certificate", json={"malicious_share": 0.01})
    assert problem_of(response) == "share-too-small"
    certificate = certify(frequency_oracle("oue", 1.0, 11), tally, 0.01)
    assert response.json()["least_malicious_share"] == certificate.least_malicious_share
    assert re.fullmatch(
        r"nothing is certified if at most 1 % of all reports are malicious: they prove that at "
        r"least \S+ % are",
        response.json()["detail"],
    )


def test_large_round_is_certified_by_a_worker(in_process: InProcess) -> None:
    """A worker's certificate is that of the thread."""
    d = 5000
    oracle, rng = frequency_oracle("grr", 5.0, d), np.random.default_rng(4)
    id = in_process.open_round("grr", 5.0, domain_size=d)
    reports = oracle.perturb(rng.choice(3, 20_000, p=[0.6, 0.3, 0.1]), rng)
    assert in_process.submit(id, wire.pack(reports)).status_code == 202
    body = REQUEST | {"questions": [{"ahead": ["0", 2]}, {"top": 2}, {"items": [1, 2]}]}
    answered = in_process.post(f"/rounds/{id}/certificate", json=body).json()
    export = RoundExport.from_dict(in_process.get(f"/rounds/{id}/export").json())
    offline = certify_export(export, CertificateRequest.model_validate(body))
    assert json.loads(offline.to_json()) == answered
    assert answered["answers"][1]["items"] == [0, 1]


def test_tickets_bound_the_share(in_process: InProcess) -> None:
    oracle, rng = frequency_oracle("grr", 2.0, 4), np.random.default_rng(4)
    id = in_process.open_round("grr", 2.0, access="ticket")
    path = f"/rounds/{id}"
    tickets = in_process.mint(path, 50)
    for ticket, report in zip(tickets, oracle.perturb(rng.choice(2, 50), rng), strict=True):
        headers = {"Authorization": f"Ticket {ticket}"}
        body = {"reports": [int(report)]}
        assert in_process.post(f"{path}/reports", json=body, headers=headers).status_code == 202
    by_tickets, by_share = (
        in_process.post(f"{path}/certificate", json=body).json()
        for body in ({"malicious_tickets": 5}, {"malicious_share": 0.1})
    )
    assert by_tickets == by_share
    assert by_tickets["malicious_share"] == 0.1
    response = in_process.post(f"{path}/certificate", json={"malicious_tickets": 50})
    assert problem_of(response) == "invalid-parameter"
    assert "below the number of reports, 50, not 50" in response.json()["detail"]


def test_certificate_needs_the_key_of_its_round(in_process: InProcess) -> None:
    id = in_process.open_round(read_access="key")
    path, body = f"/rounds/{id}/certificate", {"malicious_share": 0.1}
    assert problem_of(in_process.post(path, json=body)) == "unauthorized"
    response = in_process.post(path, json=body, headers=in_process.admin)
    assert problem_of(response) == "no-reports"


def test_large_request_is_rejected_before_it_is_read(in_process: InProcess) -> None:
    id = in_process.open_round()
    questions = [{"items": ["x" * 2**16]}]
    body = {"malicious_share": 0.1, "questions": questions}
    response = in_process.post(f"/rounds/{id}/certificate", json=body)
    assert problem_of(response) == "body-too-large"
