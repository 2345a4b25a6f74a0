"""Assigned seeds: the ticket's seed is stored first, and is the only one of its round."""

import base64
import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.client.conftest import Collector, MakeReporter

from ldprecover.protocols import LLH
from ldprecover.rounds.tickets import ticket_bits
from ldprecover_attacker import MGA, MLA, Campaign, Several
from ldprecover_client import (
    AccessError,
    AlreadyReportedError,
    ArgumentError,
    EpsilonSpentError,
    InconsistentRoundError,
    Ledger,
    Population,
    RefusedError,
    SecondSeedError,
    UnansweredError,
)
from ldprecover_client.seeds import tickets_of, with_tickets

ORACLE = LLH(0.5, 4, 2, assigned_seeds=True)


def ticket(seed: int, name: int = 0) -> str:
    """Return a ticket that assigns this seed of four; `name` makes several."""
    mac = (seed << 62 | name).to_bytes(8, "little") + bytes(8)
    id, text = (
        base64.urlsafe_b64encode(part).rstrip(b"=").decode()
        for part in (name.to_bytes(16, "big"), mac)
    )
    return f"{id}.{text}"


SEED = 1
RIGHT, SAME, OTHER = ticket(SEED), ticket(SEED, 1), ticket(2)


@pytest.fixture
def seeded_round(collector: Collector) -> Collector:
    collector.add("llh", assigned_seeds=True, access="ticket")
    collector.tickets |= {RIGHT, SAME, OTHER}
    return collector


def seeds_sent(collector: Collector) -> list[int]:
    return [int(ORACLE.seeds(ORACLE.wire.unpack(packed))[0]) for _, packed in collector.sent]


def test_report_has_seed_of_ticket(seeded_round: Any, reporter: MakeReporter) -> None:
    user = reporter(ticket=RIGHT)
    assert user.report(0).state == "accepted"
    assert seeds_sent(seeded_round) == [SEED]
    assert user.ledger.seed("r1") == SEED
    assert user.ledger.seed("r2") is None


def test_seed_is_on_disk_before_perturbing(
    seeded_round: Any, reporter: MakeReporter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "ledger"
    stored_seeds = []

    def perturb(self, items: Any, rng: Any = None) -> None:
        with contextlib.closing(
            sqlite3.connect(path)
        ) as db:  # another process: what is not committed it does not see
            stored_seeds.append(db.execute("SELECT round_id, seed FROM seeds").fetchall())
        raise KeyboardInterrupt

    monkeypatch.setattr(LLH, "perturb", perturb)
    with pytest.raises(KeyboardInterrupt):
        reporter(ticket=RIGHT, ledger=Ledger(path)).report(0)
    assert stored_seeds == [[("r1", SEED)]]
    monkeypatch.undo()
    ledger = Ledger(path)
    assert (ledger.entries(), ledger.spent, ledger.seed("r1")) == ((), 0, SEED)
    with pytest.raises(SecondSeedError, match="another seed than your first one"):
        reporter(ticket=OTHER, ledger=ledger).report(0)
    assert not seeded_round.posts
    assert reporter(ticket=RIGHT, ledger=ledger).report(0).state == "accepted"


@pytest.mark.parametrize("fault", [Collector.answer_lost, Collector.request_lost, Collector.busy()])
def test_rejects_second_seed_in_any_state(
    seeded_round: Any, reporter: MakeReporter, fault: Any
) -> None:
    seeded_round.faults.extend([fault] * 5)
    ledger = Ledger.in_memory()
    with pytest.raises(UnansweredError):
        reporter(ticket=RIGHT, ledger=ledger).report(0)
    sent = len(seeded_round.posts)
    with pytest.raises(SecondSeedError):
        reporter(ticket=OTHER, ledger=ledger).report(0)
    assert len(seeded_round.posts) == sent
    assert reporter(ticket=RIGHT, ledger=ledger).report(0).state == "accepted"
    assert {*seeds_sent(seeded_round)} == {SEED}


def test_ticket_with_same_seed_sends_same_bytes(seeded_round: Any, reporter: MakeReporter) -> None:
    seeded_round.tickets.remove(RIGHT)
    ledger = Ledger.in_memory()
    with pytest.raises(RefusedError) as caught:
        reporter(ticket=RIGHT, ledger=ledger).report(0)
    assert "with another ticket that assigns the same seed" in caught.value.__notes__[0]
    with pytest.raises(SecondSeedError):
        reporter(ticket=OTHER, ledger=ledger).report(0)
    receipt = reporter(ticket=SAME, ledger=ledger).report(1)
    assert (receipt.state, receipt.resent) == ("accepted", True)
    (first, its_bytes), (second, again) = seeded_round.sent
    assert (first, second) == (RIGHT, SAME)
    assert its_bytes == again


def test_settled_report_is_refused_before_seed(seeded_round: Any, reporter: MakeReporter) -> None:
    ledger = Ledger.in_memory()
    reporter(ticket=RIGHT, ledger=ledger).report(0)
    with pytest.raises(AlreadyReportedError):
        reporter(ticket=OTHER, ledger=ledger).report(0)


def test_pending_report_resumes_under_ticket(seeded_round: Any, reporter: MakeReporter) -> None:
    seeded_round.faults.extend([seeded_round.request_lost] * 5)
    ledger = Ledger.in_memory()
    with pytest.raises(UnansweredError):
        reporter(ticket=RIGHT, ledger=ledger).report(0)
    assert [receipt.state for receipt in reporter(ledger=ledger).resume()] == ["accepted"]
    assert {*seeds_sent(seeded_round)} == {SEED}


def test_no_seed_without_ticket_or_budget(seeded_round: Any, reporter: MakeReporter) -> None:
    with pytest.raises(AccessError, match="give one of its tickets"):
        reporter().report(0)
    ledger = Ledger.in_memory(max_total_epsilon=0.4)
    with pytest.raises(EpsilonSpentError):
        reporter(ticket=RIGHT, ledger=ledger).report(0)
    assert ledger.seed("r1") is None
    assert not seeded_round.posts


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"assigned_seeds": False}, "digest is not that of its parameters"),
        (
            {"protocol": "oue", "hash_range": None},
            "no round can have these parameters: assigned_seeds belongs to llh; oue has none",
        ),
        ({"access": "open"}, "takes reports without"),
    ],
)
def test_rejects_inconsistent_seeds(
    seeded_round: Any, reporter: MakeReporter, change: Any, reason: Any
) -> None:
    seeded_round.rounds["r1"] |= change
    with pytest.raises(InconsistentRoundError, match=reason):
        reporter(ticket=RIGHT).report(0)
    assert not seeded_round.posts


def test_migrates_version_3(tmp_path: Path) -> None:
    """Version 3 had no seeds."""
    path = tmp_path / "ledger"
    Ledger(path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript("DROP TABLE seeds; PRAGMA user_version = 3;")
    assert Ledger(path).seed("r1") is None


def test_tickets_match_seeds_of_reports() -> None:
    tickets = [ticket(seed, name) for name, seed in enumerate((1, 3, 1, 2))]
    reports = with_tickets(ORACLE, tickets).perturb([0, 1, 2, 3])
    assert ORACLE.seeds(reports).tolist() == [1, 3, 1, 2]
    order = [3, 2, 0, 1]
    ordered = tickets_of(ORACLE, reports[order], tickets)
    assert [ORACLE.seed_of(ticket_bits(each)) for each in ordered] == [2, 1, 1, 3]
    assert sorted(ordered) == sorted(tickets)
    with pytest.raises(ArgumentError, match="assign other seeds"):
        tickets_of(ORACLE, reports, [*tickets[:3], ticket(0)])
    with pytest.raises(ArgumentError, match="a ticket must be"):
        with_tickets(ORACLE, ["nonsense"])


@pytest.mark.parametrize(
    "attack", [MGA([1, 3]), MLA(), Several([MGA([1]), MLA(against="raw")])], ids=lambda a: a.name
)
def test_attack_uses_seeds_of_tickets(seeded_round: Any, attack: Any) -> None:
    import httpx

    tickets = [ticket(i % 4, i) for i in range(40)]
    seeded_round.tickets |= set(tickets)
    options = {
        "retries": seeded_round.AT_ONCE,
        "transport": httpx.MockTransport(seeded_round),
        "connections": 1,
    }
    campaign = Campaign(seeded_round.URL, "r1", attack, 30, 1, tickets=tickets, **options)
    assert campaign.run().accepted == 30
    for seeded, packed in seeded_round.sent:
        assert ORACLE.seeds(ORACLE.wire.unpack(packed))[0] == ORACLE.seed_of(ticket_bits(seeded))


def test_simulated_users_report_with_tickets(seeded_round: Any) -> None:
    import httpx

    tickets = [ticket(i % 4, i) for i in range(20)]
    seeded_round.tickets |= set(tickets)
    options = {
        "retries": seeded_round.AT_ONCE,
        "transport": httpx.MockTransport(seeded_round),
        "connections": 1,
        "progress": None,
    }
    users = Population(np.arange(1, 5), 20, 1)
    assert users.report_to(seeded_round.URL, "r1", tickets=tickets, **options).accepted == 20
    assert [seeded for seeded, _ in seeded_round.sent] == tickets
    for seeded, packed in seeded_round.sent:
        assert ORACLE.seeds(ORACLE.wire.unpack(packed))[0] == ORACLE.seed_of(ticket_bits(seeded))
