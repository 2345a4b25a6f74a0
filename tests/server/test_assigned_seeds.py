"""Rounds with assigned seeds: tickets, the check of a report's seed, and what leaves the server."""

from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import pytest
from tests.conftest import PACKED
from tests.server.conftest import InProcess, StartInProcess, problem_of

from ldprecover import (
    Estimates,
    RecoveryRequest,
    RoundExport,
    RoundParameters,
    Tally,
    recover,
)
from ldprecover.evidence.alarms import raise_alarms
from ldprecover.protocols import LLH, wire
from ldprecover.recovery import METHODS, ReportSource
from ldprecover.rounds.tickets import ticket_bits
from ldprecover.types import Reports
from ldprecover_attacker import MGA
from ldprecover_server.datasets import export_reports
from ldprecover_server.errors import TooFewReportsError

pytestmark = pytest.mark.sqlite

ORACLE = LLH(1.0, 6, 2, assigned_seeds=True)
WIDE, CANARIES = LLH(1.0, 20, 3, assigned_seeds=True), (18, 19)
ASSIGNED: dict[str, Any] = {"assigned_seeds": True, "access": "ticket", "tickets": 800}


class Series(NamedTuple):
    """Two rounds by their ids, and the reports of the last one."""

    app: InProcess
    first: str
    last: str
    reports: Reports


@pytest.fixture
def assigned_round(in_process: InProcess) -> str:
    """The id of an open round with eight assigned seeds."""
    return in_process.open_round("llh", items=list("abcdef"), hash_range=2, **ASSIGNED)


def mint(app: InProcess, id: str, count: int) -> list[str]:
    return app.post(
        f"/rounds/{id}/tickets", json={"count": count}, headers=app.admin
    ).text.splitlines()


def send(
    app: InProcess, id: str, ticket: str, reports: Reports, *, packed: bool = True
) -> httpx.Response:
    headers = {"Authorization": f"Ticket {ticket}"}
    if packed:
        return app.post(
            f"/rounds/{id}/reports", content=wire.pack(reports), headers=headers | PACKED
        )
    return app.post(f"/rounds/{id}/reports", json=ORACLE.wire.to_json(reports), headers=headers)


def report(ticket: str, item: int = 0, *, off: int = 0) -> Reports:
    """Return a report of an item with the seed that a ticket assigns, or one that is `off`."""
    seed = (ORACLE.seed_of(ticket_bits(ticket)) + off) % ORACLE.seed_count
    return ORACLE.with_seeds([seed]).perturb([item])


def send_all(app: InProcess, id: str, n: int) -> Reports:
    """Report n times under tickets, and return the reports."""
    tickets = mint(app, id, n)
    reports = np.concatenate([report(ticket, i % 6) for i, ticket in enumerate(tickets)])
    for ticket, one in zip(tickets, np.split(reports, n), strict=True):
        assert send(app, id, ticket, one).status_code == 202
    return reports


def test_round_states_assigned_seeds(in_process: InProcess, assigned_round: str) -> None:
    parameters = RoundParameters("llh", 1.0, tuple("abcdef"), 2, assigned_seeds=True)
    listed = next(
        round
        for round in in_process.get("/rounds").json()["rounds"]
        if round["id"] == assigned_round
    )
    for shown in (
        in_process.get(f"/rounds/{assigned_round}").json(),
        in_process.get(f"/rounds/{assigned_round}/parameters").json(),
        listed,
    ):
        assert (shown["assigned_seeds"], shown["hash_range"]) == (True, 2)
        assert shown["digest"] == parameters.digest
    other = in_process.get(f"/rounds/{in_process.open_round('llh')}").json()
    assert other["assigned_seeds"] is False


@pytest.mark.parametrize(("epsilon", "g"), [(0.5, 2), (1.0, 3)])
def test_default_hash_range_is_for_assigned_seeds(
    in_process: InProcess, epsilon: float, g: int
) -> None:
    opened = in_process.try_open(
        "llh", epsilon=epsilon, domain_size=6, **ASSIGNED | {"tickets": 900}
    )
    assert opened.json()["hash_range"] == g


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"access": "open"}, "access must be 'ticket', not 'open'"),
        ({"access": "key"}, "access must be 'ticket', not 'key'"),
        ({"protocol": "grr"}, "assigned_seeds belongs to llh; grr has none"),
        ({"protocol": "olh"}, "assigned_seeds belongs to llh; olh has none"),
        ({"assigned_seeds": 64}, "assigned_seeds"),
        ({"tickets": 799}, "8 assigned seeds needs at least 800"),
        ({"tickets": None}, "at least 800, so that a seed does not name a user, not none"),
        ({"assigned_seeds": False}, "only a round with assigned_seeds states their number"),
    ],
)
def test_rejects_round_that_cannot_assign_seeds(
    in_process: InProcess, fields: dict[str, Any], reason: str
) -> None:
    valid = {"protocol": "llh", "hash_range": 2, "domain_size": 6, **ASSIGNED}
    assert in_process.try_open(**valid).status_code == 201
    if fields.get("protocol") == "grr":
        fields = fields | {"hash_range": None}
    response = in_process.try_open(**valid | fields)
    assert response.status_code == 422
    problem_of(response)
    assert reason in response.text


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "json"])
def test_report_has_the_seed_of_its_ticket(
    in_process: InProcess, assigned_round: str, packed: bool
) -> None:
    (ticket,) = mint(in_process, assigned_round, 1)
    response = send(in_process, assigned_round, ticket, report(ticket, off=1), packed=packed)
    assert problem_of(response) == "invalid-report"
    assert "the ticket assigns the seed" in response.json()["detail"]
    assert response.json()["position"] == 0
    assert in_process.get(f"/rounds/{assigned_round}").json()["n"] == 0
    right = report(ticket)
    assert send(in_process, assigned_round, ticket, right, packed=packed).json() == {
        "round": assigned_round,
        "accepted": 1,
        "duplicate": False,
    }
    assert send(in_process, assigned_round, ticket, right, packed=packed).json()["duplicate"]
    another = right ^ np.uint32(1)  # the other bucket
    assert send(in_process, assigned_round, ticket, another, packed=packed).status_code == 409
    assert in_process.get(f"/rounds/{assigned_round}").json()["n"] == 1


def test_another_ticket_takes_the_bytes_only_with_the_same_seed(
    in_process: InProcess, assigned_round: str
) -> None:
    first, *others = mint(in_process, assigned_round, 400)
    seeds = {ticket: ORACLE.seed_of(ticket_bits(ticket)) for ticket in (first, *others)}
    same = next(ticket for ticket in others if seeds[ticket] == seeds[first])
    other = next(ticket for ticket in others if seeds[ticket] != seeds[first])
    reports = report(first)
    assert send(in_process, assigned_round, other, reports).status_code == 422
    assert send(in_process, assigned_round, same, reports).status_code == 202


def test_foreign_ticket_is_rejected_before_its_seed(
    in_process: InProcess, assigned_round: str
) -> None:
    (foreign,) = mint(in_process, in_process.open_round(access="ticket"), 1)
    response = send(in_process, assigned_round, foreign, report(foreign))
    assert problem_of(response) == "invalid-ticket"


@pytest.fixture(params=["forever", "none"])
def series(request: pytest.FixtureRequest, start_in_process: StartInProcess) -> Series:
    """Two closed rounds of a series with canaries: 400 reports each, of which 60 are malicious."""
    app, oracle, ids = start_in_process(reports_per_seed=5), WIDE, []
    fields = ASSIGNED | {"tickets": 500, "series": "weekly", "retention": request.param}
    for number in range(2):
        id = app.open_round("llh", 1.0, domain_size=18, canaries=2, hash_range=3, **fields)
        rng = np.random.default_rng(number)
        tickets = mint(app, id, 400)
        users = oracle.with_seeds([oracle.seed_of(ticket_bits(ticket)) for ticket in tickets])
        honest = users.perturb(rng.integers(18, size=340), rng)
        attack = MGA([3, 7, 11]) if number else MGA([5])
        reports = np.concatenate([honest, attack.reports(users, 60, rng)])
        for ticket, one in zip(tickets, np.split(reports, 400), strict=True):
            assert send(app, id, ticket, one).status_code == 202
        app.close_round(id)
        ids.append(id)
    return Series(app, ids[0], ids[1], reports)


def test_every_method_reads_assigned_seeds(series: Series) -> None:
    """Whatever the retention, the result is that of the reports."""
    app, id, reports = series.app, series.last, series.reports
    methods = app.get(f"/rounds/{id}/methods").json()["methods"]
    assert {each["name"] for each in methods} == set(METHODS)
    for method in methods:
        name, targets = method["name"], [3] if "targets" in method["needs"] else []
        answer = app.post(f"/rounds/{id}/recover", json={"method": name, "targets": targets})
        if name == "diffstats":
            reason = "diffstats: 66 of the 81 different llh reports support 6 or 7 items"
            assert method["reason"].startswith(reason)
            assert answer.status_code == 422
            continue
        assert (method["available"], answer.status_code) == (True, 200), answer.text
        request = RecoveryRequest(name, targets=targets)
        expected = recover(WIDE, reports, request, canaries=CANARIES)
        assert answer.json()["recovered"] == expected.recovered.tolist(), name
        reads = "reports" in (*METHODS[name].needs, *METHODS[name].better_with)
        assert method["source"] == ("tally" if reads else "counts"), name
    for fields in ({"eta": "auto"}, {"targets": "infer"}, {"history": [series.first]}):
        answer = app.post(f"/rounds/{id}/recover", json={"method": "ldprecover"} | fields)
        assert answer.status_code == 200, answer.text


def test_every_analysis_reads_assigned_seeds(series: Series) -> None:
    app, id, tally = series.app, series.last, Tally.of(WIDE, series.reports)
    expected = Estimates.of(WIDE, tally)
    shown = app.frequencies(id)
    assert shown["counts"] == tally.counts(WIDE).tolist()
    assert shown["frequencies"] == expected.frequencies.tolist()
    assert shown["standard_errors"] == expected.standard_errors.tolist()
    alarms = app.get(f"/rounds/{id}/alarms").json()
    source = ReportSource(WIDE, series.reports)
    assert alarms["reports_read"]
    assert [(each["name"], each["statistic"], each["threshold"]) for each in alarms["alarms"]] == [
        (each.name, each.statistic, each.threshold)
        for each in raise_alarms(WIDE, tally, source, canaries=CANARIES)
    ]
    assert "canaries" in {each["name"] for each in alarms["alarms"]}
    suspects = app.get(f"/rounds/{id}/suspects").json()
    assert suspects["earlier"] == [series.first]
    for body in ({"malicious_tickets": 60}, {"malicious_share": 0.15, "reports": True}):
        answer = app.post(f"/rounds/{id}/certificate", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["from_reports"] == ("reports" in body)
    export = RoundExport.from_json(app.get(f"/rounds/{id}/export").content)
    assert export.tally == tally


def test_reports_leave_when_enough_share_each_seed(
    start_in_process: StartInProcess, tmp_path: Path
) -> None:
    app = start_in_process(reports_per_seed=5)
    fields = ASSIGNED | {"tickets": 40}
    id = app.open_round("llh", items=list("abcdef"), hash_range=2, **fields)
    send_all(app, id, 39)
    response = app.get(f"/rounds/{id}/export")
    assert problem_of(response) == "too-few-reports"
    assert "39 reports, and at least 40 must share its 8" in response.json()["detail"]
    with pytest.raises(TooFewReportsError, match="at least 40"):
        export_reports(app.storage, id, str(tmp_path / "few"), reports_per_seed=5)
    assert not (tmp_path / "few").exists()
    assert app.frequencies(id)["n"] == 39
    assert app.get(f"/rounds/{id}/alarms").status_code == 200
    send_all(app, id, 1)
    export = RoundExport.from_json(app.get(f"/rounds/{id}/export").content)
    assert export.parameters.assigned_seeds
    assert export.tally.n == 40
    assert export.estimates().frequencies.tolist() == app.frequencies(id)["frequencies"]
    dataset = export_reports(app.storage, id, str(tmp_path / "all"), reports_per_seed=5)
    assert dataset.n == 40
