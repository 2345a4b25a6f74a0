"""The client against a real server process."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ServerProcess, StartServer

from ldprecover import Tally
from ldprecover_client import (
    AccessError,
    AsyncReporter,
    Client,
    Ledger,
    Population,
    RefusedError,
    Reporter,
    RoundStatus,
    load_dataset,
    submit_reports,
)


@pytest.fixture
def admin(server: ServerProcess):
    with Client(server.url, key=server.admin_key) as client:
        yield client


def new_user(server: ServerProcess, round_: RoundStatus, **options: Any) -> Reporter:
    return Reporter(server.url, round_.id, ledger=Ledger.in_memory(), **options)


@pytest.mark.parametrize("protocol", ["grr", "oue", "olh"])
def test_population_is_counted_exactly(admin: Client, server: ServerProcess, protocol: str) -> None:
    cities = load_dataset("cities")
    round_ = admin.open_round(protocol=protocol, epsilon=0.5, items=cities.items)
    users = Population.of(cities, 25_000, seed=1)
    users.report_to(server.url, round_.id, key=server.admin_key, batch_size=3000, progress=None)
    tally = Tally.of(round_.parameters.oracle, users.reports(round_.parameters.oracle))
    answer = admin.frequencies(round_.id)
    assert answer.n == admin.round(round_.id).n == 25_000
    assert answer.counts.tolist() == tally.summary.tolist()
    assert sum(admin.recover(round_.id, targets=["Boston, MA"])["recovered"]) == pytest.approx(1)


def test_closed_round_refuses_users(admin: Client, server: ServerProcess) -> None:
    round_ = admin.open_round(protocol="olh", epsilon=0.5, items=["a", "b", "c"])
    assert new_user(server, round_).report("b").state == "accepted"
    other = AsyncReporter(server.url, round_.name, ledger=Ledger.in_memory())
    assert asyncio.run(other.report(2)).state == "accepted"
    assert admin.close_round(round_.id).state == "closed"
    late = new_user(server, round_)
    with pytest.raises(RefusedError) as caught:
        late.report("b")
    assert (caught.value.status, caught.value.slug) == (409, "round-closed")
    assert [entry.state for entry in late.ledger.entries()] == ["refused"]
    assert admin.round(round_.id).n == 2


def test_rounds_are_opened_listed_deleted(admin: Client) -> None:
    round_ = admin.open_round(protocol="grr", epsilon=1, domain_size=3)
    assert (round_.parameters.items, round_.state, round_.n) == (("0", "1", "2"), "open", 0)
    assert admin.ready()
    assert admin.rounds()[0] == round_.summary
    assert round_.summary not in admin.rounds(before=round_.id)
    assert admin.frequencies(round_.id).sum is None
    admin.delete_round(round_.id)
    with pytest.raises(RefusedError, match="Round not found"):
        admin.parameters(round_.id)


def test_error_without_a_key_asks_for_no_smaller_batches(
    admin: Client, server: ServerProcess
) -> None:
    """Without a key only one report a submission is allowed."""
    round_ = admin.open_round(protocol="olh", epsilon=1, domain_size=3)
    reports = Population([1, 1, 1], 4000, 0).reports(round_.parameters.oracle)
    with pytest.raises(RefusedError, match="with a report key it may be larger") as caught:
        submit_reports(server.url, round_.id, reports)
    assert caught.value.status == 413
    assert "batch_size" not in str(caught.value)


def test_ticket_admits_one_report(admin: Client, server: ServerProcess, tmp_path: Path) -> None:
    round_ = admin.open_round(protocol="olh", epsilon=0.5, items=["a", "b", "c"], access="ticket")
    assert (round_.access, round_.read_access) == ("ticket", "public")
    first, second, third = admin.mint_tickets(round_.id, 3)
    ledger = Ledger(tmp_path / "ledger")
    assert (
        Reporter(server.url, round_.id, ledger=ledger, ticket=first).report("b").state == "accepted"
    )
    (entry,) = ledger.entries()
    assert entry.ticket == first
    # The server has it, and the user's machine forgot that it was answered.
    assert ledger.path is not None
    with closing(sqlite3.connect(ledger.path)) as db, db:
        db.execute("UPDATE reports SET state = 'pending'")
    (receipt,) = Reporter(server.url, ledger=ledger).resume()
    assert (receipt.state, receipt.duplicate) == ("accepted", True)
    other = AsyncReporter(server.url, round_.id, ledger=Ledger.in_memory(), ticket=second)
    assert asyncio.run(other.report("b")).state == "accepted"
    with pytest.raises(AccessError, match="tickets alone"):
        new_user(server, round_).report("b")
    assert admin.round(round_.id).n == 2
    assert new_user(server, round_, ticket=third).report("a").state == "accepted"


def test_right_ticket_after_wrong_counts_once(
    admin: Client, server: ServerProcess, tmp_path: Path
) -> None:
    """An unknown ticket, one of another round, then the right one."""
    round_, another = (
        admin.open_round(protocol="grr", epsilon=0.5, domain_size=3, access="ticket")
        for _ in range(2)
    )
    (foreign,) = admin.mint_tickets(another.id, 1)
    (own,) = admin.mint_tickets(round_.id, 1)
    ledger = Ledger(tmp_path / "ledger")
    created = set()
    for wrong in ("x" * 22 + "." + "x" * 22, foreign):
        with pytest.raises(RefusedError) as caught:
            Reporter(server.url, round_.id, ledger=ledger, ticket=wrong).report("1")
        assert (caught.value.status, caught.value.slug) == (401, "invalid-ticket")
        created |= {entry.packed for entry in ledger.pending()}
    receipt = asyncio.run(
        AsyncReporter(server.url, round_.id, ledger=ledger, ticket=own).report("1")
    )
    assert (receipt.state, receipt.resent, receipt.duplicate) == ("accepted", True, False)
    assert {entry.packed for entry in ledger.entries()} == created
    assert len(created) == 1
    assert admin.round(round_.id).n == 1


def test_key_round_accepts_key(admin: Client, server: ServerProcess) -> None:
    round_ = admin.open_round(
        protocol="olh", epsilon=0.5, items=["a", "b"], access="key", read_access="key"
    )
    ledger = Ledger.in_memory()
    with pytest.raises(AccessError, match="give a report key"):
        Reporter(server.url, round_.id, ledger=ledger).report("b")
    keyed = Reporter(server.url, round_.id, ledger=ledger, key=server.admin_key)
    assert keyed.report("b").state == "accepted"
    assert [entry.state for entry in ledger.entries()] == ["accepted"]
    assert admin.frequencies(round_.id).n == 1
    with Client(server.url) as anyone, pytest.raises(RefusedError) as caught:
        anyone.frequencies(round_.id)
    assert caught.value.status == 401


def test_rate_limited_population_counts_once(start_server: StartServer) -> None:
    """A submission larger than the burst makes a debt: the second one is refused and waits."""
    limited = start_server(report_rate=2000, report_burst=1000)
    with Client(limited.url, key=limited.admin_key) as admin:
        round_ = admin.open_round(protocol="grr", epsilon=1, domain_size=3)
        users = Population([1, 1, 1], 5000, 0)
        users.report_to(
            limited.url, round_.id, key=limited.admin_key, batch_size=2500, progress=None
        )
        tally = Tally.of(round_.parameters.oracle, users.reports(round_.parameters.oracle))
        assert admin.frequencies(round_.id).counts.tolist() == tally.summary.tolist()
        assert 'refusals_total{reason="rate-limited"}' in limited.http.get("/metrics").text
