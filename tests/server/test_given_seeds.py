"""Rounds with given seeds: opened with tickets alone, and each ticket's report has the seed that it
picks.
"""

from typing import Any

import httpx
import numpy as np
import pytest
from tests.conftest import PACKED
from tests.server.conftest import InProcess, problem_of

from ldprecover import Estimates, RoundExport, RoundParameters, Tally
from ldprecover.protocols import GivenSeedsOLH, wire
from ldprecover.rounds.tickets import ticket_draw
from ldprecover.types import Reports

pytestmark = pytest.mark.sqlite


ORACLE = GivenSeedsOLH(1.0, 6, 4, 64)


@pytest.fixture
def given_round(in_process: InProcess) -> str:
    """The id of an open round with given seeds."""
    return in_process.open_round("olh", items=list("abcdef"), given_seeds=64, access="ticket")


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
    """Return a report of an item with the seed that a ticket picks, or one `off` it in the list."""
    draw = (ticket_draw(ticket) + off * (1 << 58)) % (1 << 64)
    return ORACLE.with_seeds([ORACLE.seed_of(draw)]).perturb([item])


def test_a_round_says_how_many_seeds_are_given(in_process: InProcess, given_round: str) -> None:
    expected = {"hash_range": 4, "subset_size": None, "given_seeds": 64}
    parameters = RoundParameters("olh", 1.0, tuple("abcdef"), 4, given_seeds=64)
    listed = next(
        round for round in in_process.get("/rounds").json()["rounds"] if round["id"] == given_round
    )
    for shown in (
        in_process.get(f"/rounds/{given_round}").json(),
        in_process.get(f"/rounds/{given_round}/parameters").json(),
        listed,
    ):
        assert {name: shown[name] for name in expected} == expected
        assert shown["digest"] == parameters.digest
    other = in_process.get(f"/rounds/{in_process.open_round('olh')}").json()
    assert other["given_seeds"] is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"protocol": "olh", "given_seeds": 64}, "access must be 'ticket', not 'open'"),
        (
            {"protocol": "olh", "given_seeds": 64, "access": "key"},
            "access must be 'ticket', not 'key'",
        ),
        (
            {"protocol": "grr", "given_seeds": 64, "access": "ticket"},
            "given_seeds belongs to olh; grr has none",
        ),
        (
            {"protocol": "olh", "given_seeds": 63, "access": "ticket"},
            "must be an integer from 64 to 4096, not 63",
        ),
        ({"protocol": "olh", "given_seeds": 64.5, "access": "ticket"}, "given_seeds"),
        (
            {"protocol": "olh", "given_seeds": 64, "access": "ticket", "domain_size": 200},
            "given_seeds must be at least",
        ),
    ],
)
def test_a_round_that_cannot_give_seeds_is_refused(
    in_process: InProcess, fields: dict[str, Any], reason: str
) -> None:
    response = in_process.try_open(**({"domain_size": 6} | fields))
    assert response.status_code == 422
    problem_of(response)
    assert reason in response.text


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "json"])
def test_a_report_has_the_seed_that_its_ticket_picks(
    in_process: InProcess, given_round: str, packed: bool
) -> None:
    (ticket,) = mint(in_process, given_round, 1)
    stranger = report(ticket)
    stranger["seed"] += 1  # of no list
    for wrong, reason in (
        (report(ticket, off=1), "the ticket picks the seed"),
        (stranger, "one of the round's 64"),
    ):
        response = send(in_process, given_round, ticket, wrong, packed=packed)
        assert problem_of(response) == "invalid-report"
        assert reason in response.json()["detail"]
        assert response.json()["position"] == 0
    assert in_process.get(f"/rounds/{given_round}").json()["n"] == 0
    right = report(ticket)
    assert send(in_process, given_round, ticket, right, packed=packed).json() == {
        "round": given_round,
        "accepted": 1,
        "duplicate": False,
    }
    assert send(in_process, given_round, ticket, right, packed=packed).json()["duplicate"]
    another = right.copy()
    another["bucket"] = (another["bucket"] + 1) % 4
    assert send(in_process, given_round, ticket, another, packed=packed).status_code == 409
    assert in_process.get(f"/rounds/{given_round}").json()["n"] == 1


def test_another_ticket_takes_the_same_bytes_only_where_it_picks_the_same_seed(
    in_process: InProcess, given_round: str
) -> None:
    first, *others = mint(in_process, given_round, 400)
    first_seed = ORACLE.seed_of(ticket_draw(first))
    same = next(ticket for ticket in others if ORACLE.seed_of(ticket_draw(ticket)) == first_seed)
    other = next(ticket for ticket in others if ORACLE.seed_of(ticket_draw(ticket)) != first_seed)
    reports = report(first)
    assert send(in_process, given_round, other, reports).status_code == 422
    assert send(in_process, given_round, same, reports).status_code == 202


def test_a_ticket_that_is_not_the_rounds_is_refused_before_its_seed_is_looked_at(
    in_process: InProcess, given_round: str
) -> None:
    (foreign,) = mint(in_process, in_process.open_round(access="ticket"), 1)
    response = send(in_process, given_round, foreign, report(foreign))
    assert problem_of(response) == "invalid-ticket"


def test_what_is_stored_is_estimated_exported_and_recovered_by_the_list(
    in_process: InProcess, given_round: str
) -> None:
    true_items = np.arange(60) % 6
    tickets = mint(in_process, given_round, 60)
    reports = np.concatenate(
        [report(ticket, int(item)) for ticket, item in zip(tickets, true_items, strict=True)]
    )
    for ticket, one in zip(tickets, np.split(reports, 60), strict=True):
        assert send(in_process, given_round, ticket, one).status_code == 202
    tally = Tally.of(ORACLE, reports)
    expected = Estimates.of(ORACLE, tally)
    shown = in_process.frequencies(given_round)
    assert shown["counts"] == tally.summary.tolist()
    assert shown["frequencies"] == expected.frequencies.tolist()
    assert shown["standard_errors"] == expected.standard_errors.tolist()
    export = RoundExport.from_json(in_process.get(f"/rounds/{given_round}/export").content)
    assert export.parameters.given_seeds == 64
    assert export.estimates().frequencies.tolist() == shown["frequencies"]
    for body in ({}, {"targets": ["a"], "malicious_model": "searched"}, {"method": "em"}):
        answer = in_process.post(f"/rounds/{given_round}/recover", json=body)
        assert answer.status_code == 200, answer.text
        assert sum(answer.json()["recovered"]) == pytest.approx(1)
    methods = {
        method["name"]: method
        for method in in_process.get(f"/rounds/{given_round}/methods").json()["methods"]
    }
    assert methods["em"]["reason"] is None
    assert "sizes of honest olh reports" in methods["diffstats"]["reason"]
    alarms = in_process.get(f"/rounds/{given_round}/alarms").json()["alarms"]
    assert [alarm["name"] for alarm in alarms] == ["sum-drift", "excess"]


def test_round_with_given_seeds_has_no_certificate(in_process: InProcess, given_round: str) -> None:
    """Its q is not the same for all pairs of items, so p and q bound no frequency."""
    (ticket,) = mint(in_process, given_round, 1)
    assert send(in_process, given_round, ticket, report(ticket)).status_code == 202
    response = in_process.post(f"/rounds/{given_round}/certificate", json={"malicious_share": 0.1})
    assert problem_of(response) == "invalid-parameter"
    assert "lacks one q for all items" in response.json()["detail"]
