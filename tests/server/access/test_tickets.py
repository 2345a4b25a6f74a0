"""Tickets: one report each, for one round, however often they are sent."""

from collections.abc import Callable
from contextlib import closing

import httpx
import numpy as np
import pytest
import sqlalchemy as sa
from scipy import stats
from tests.conftest import PACKED
from tests.server.conftest import InProcess, StartInProcess, problem_of

from ldprecover.rounds.tickets import assigned_round
from ldprecover_server.access import tickets
from ldprecover_server.errors import InvalidTicketError
from ldprecover_server.storage import Storage
from ldprecover_server.storage.schema import metadata

pytestmark = pytest.mark.sqlite

# RFC 5869, appendix A: the test cases with SHA-256. Secret, salt, info, and what is derived, of
# which the first block is compared.
RFC_5869 = {
    "A.1, basic": (
        "0b" * 22,
        "000102030405060708090a0b0c",
        "f0f1f2f3f4f5f6f7f8f9",
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
    ),
    "A.2, longer": (
        bytes(range(0x50)).hex(),
        bytes(range(0x60, 0xB0)).hex(),
        bytes(range(0xB0, 0x100)).hex(),
        (
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c"
            "59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71"
            "cc30c58179ec3e87c14c01d5c1f3434f1d87"
        ),
    ),
    "A.3, no salt and no info": (
        "0b" * 22,
        "",
        "",
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
    ),
}


@pytest.mark.parametrize(
    ("secret", "salt", "info", "derived"), RFC_5869.values(), ids=RFC_5869.keys()
)
def test_keys_are_derived_as_the_rfc_says(secret: str, salt: str, info: str, derived: str) -> None:
    inputs = {"salt": bytes.fromhex(salt), "info": bytes.fromhex(info)}
    assert tickets.hkdf(bytes.fromhex(secret), **inputs) == bytes.fromhex(derived)[:32]


def submit(
    app: InProcess, id: str, ticket: str, packed: bytes = b"\1\0\0\0", **headers: str
) -> httpx.Response:
    sent = {**PACKED, "Authorization": f"Ticket {ticket}", **headers}
    return app.post(f"/rounds/{id}/reports", content=packed, headers=sent)


def test_reused_ticket_is_duplicate_or_409(in_process: InProcess) -> None:
    """The ticket is its own idempotency key; one in a header changes nothing."""
    id = in_process.open_round(access="ticket")
    (ticket,) = in_process.mint(f"/rounds/{id}", 1)
    assert not submit(in_process, id, ticket).json()["duplicate"]
    assert submit(in_process, id, ticket).json()["duplicate"]
    assert submit(in_process, id, ticket, b"\1\0\0\0", **{"Idempotency-Key": "another"}).json()[
        "duplicate"
    ]
    other = submit(in_process, id, ticket, b"\2\0\0\0", **{"Idempotency-Key": "another"})
    assert problem_of(other) == "idempotency-key-reused"
    assert in_process.frequencies(id)["counts"] == [0, 1, 0, 0]


def test_ticket_admits_one_report(in_process: InProcess) -> None:
    id = in_process.open_round(access="ticket")
    minted = in_process.mint(f"/rounds/{id}", 1234)
    assert len(set(minted)) == 1234
    response = submit(in_process, id, minted[0], 2 * b"\1\0\0\0")
    assert problem_of(response) == "invalid-report"
    assert response.json()["position"] == 1
    for ticket in minted[:10]:  # none is used up
        answer = submit(in_process, id, ticket)
        assert answer.json() == {"round": id, "accepted": 1, "duplicate": False}
    assert in_process.frequencies(id)["counts"] == [0, 10, 0, 0]


def flipped(ticket: str, at: int) -> str:
    return ticket[:at] + ("A" if ticket[at] != "A" else "B") + ticket[at + 1 :]


FORGED: dict[str, Callable[[str], str]] = {
    "another id": lambda ticket: flipped(ticket, 0),
    "the last letter of the id": lambda ticket: flipped(ticket, 21),
    "the first letter of the mac": lambda ticket: flipped(ticket, 23),
    "the last letter of the mac": lambda ticket: flipped(ticket, 44),
    "cut off": lambda ticket: ticket[:-1],
    "more after it": lambda ticket: ticket + "A",
    "no mac": lambda ticket: ticket[:23],
    "the id alone": lambda ticket: ticket[:22],
    "two dots": lambda ticket: ticket.replace(".", ".."),
    "with padding": lambda ticket: ticket + "==",
    "nothing": lambda ticket: "",
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
def test_a_forged_ticket_is_refused(in_process: InProcess, forge: Callable[[str], str]) -> None:
    id = in_process.open_round(access="ticket")
    (ticket,) = in_process.mint(f"/rounds/{id}", 1)
    response = submit(in_process, id, forge(ticket))
    assert problem_of(response) == "invalid-ticket"
    assert response.headers["www-authenticate"] == "Ticket"
    assert in_process.frequencies(id)["counts"] == 4 * [0]


def test_a_ticket_of_another_round_or_server_is_refused(
    in_process: InProcess, start_in_process: StartInProcess
) -> None:
    id, other = in_process.open_round(access="ticket"), in_process.open_round(access="ticket")
    foreign = [*in_process.mint(f"/rounds/{other}", 1)]
    elsewhere = start_in_process()
    foreign += elsewhere.mint(f"/rounds/{elsewhere.open_round(access='ticket')}", 1)
    for ticket in foreign:
        response = submit(in_process, id, ticket)
        assert problem_of(response) == "invalid-ticket"
    assert in_process.frequencies(id)["counts"] == 4 * [0]


def test_ticket_round_rejects_keys_and_anonymous_callers(in_process: InProcess) -> None:
    """The admin's key too, so the number of tickets limits the number of reports."""
    id = in_process.open_round(access="ticket")
    for headers in ({}, in_process.admin):
        response = in_process.post(
            f"/rounds/{id}/reports", content=b"\1\0\0\0", headers=PACKED | headers
        )
        assert problem_of(response) == "invalid-ticket"
    assert in_process.frequencies(id)["counts"] == 4 * [0]


def test_a_clients_own_key_never_meets_a_tickets() -> None:
    key = tickets.round_key(bytes(32), "R1")
    (ticket,) = tickets.mint(key, 1)
    assert " " in tickets.submission_key(key, ticket)
    with pytest.raises(InvalidTicketError):
        tickets.submission_key(tickets.round_key(bytes(32), "R2"), ticket)


def test_nobody_but_an_admin_mints(in_process: InProcess) -> None:
    id = in_process.open_round(access="ticket")
    response = in_process.post(f"/rounds/{id}/tickets", json={"count": 1})
    assert problem_of(response) == "unauthorized"
    response = in_process.post(f"/rounds/{id}/tickets", json={"count": 1}, headers=in_process.admin)
    assert response.headers["content-type"].startswith("text/plain")
    assert response.headers["cache-control"] == "no-store"


@pytest.mark.both
def test_tickets_are_not_stored_and_survive_a_restart(start_in_process: StartInProcess) -> None:
    """The secret they are made under is made once, and another process on the database finds it."""
    app = start_in_process()
    id = app.open_round(access="ticket")
    (ticket,) = app.mint(f"/rounds/{id}", 1)
    with closing(
        Storage(app.storage.database.engine.url.render_as_string(hide_password=False))
    ) as other:
        secret = other.keys.ticket_secret()
        assert secret == app.storage.keys.ticket_secret()
        assert len(secret) == 32
    assert tickets.submission_key(tickets.round_key(secret, id), ticket)
    with app.storage.database.read() as database:
        rows = {
            name: database.scalar(sa.select(sa.func.count()).select_from(t))
            for name, t in metadata.tables.items()
        }
    assert {name for name, n in rows.items() if n} == {"acts", "labels", "rounds", "secrets"}


def test_tickets_assign_rounds_uniformly() -> None:
    """Chi-squared; each of the numbers of rounds fails with a probability of 1e-9.

    Shares that are off by 6 to 9 % of themselves are missed once in 100.
    """
    minted = [*tickets.mint(tickets.round_key(bytes(32), "F1"), 20_000)]
    assert {assigned_round(ticket, 1) for ticket in minted} == {0}
    for k in (2, 3, 5, 7, 10, 50):
        counts = np.bincount([assigned_round(ticket, k) for ticket in minted], minlength=k)
        assert stats.chisquare(counts).pvalue > 1e-9, (k, counts)
