"""`check` finds each disagreement and its size, and nothing in an intact database."""

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
import pytest
import sqlalchemy as sa
from tests.server.storage.conftest import PARAMETERS, Group, Submitted, commit

from ldprecover import RoundParameters, Tally
from ldprecover.protocols import PROTOCOLS
from ldprecover_server.storage import Finding, Storage
from ldprecover_server.storage.encoding import encode_key, in_round
from ldprecover_server.storage.schema import labels, rounds, segments, submission_keys, tallies


def fill(storage: Storage, name: str, retention: str = "forever") -> None:
    seq = storage.rounds.open(f"R{name}", name, PARAMETERS, retention=retention).seq
    for i in range(12):
        commit(storage, seq, Submitted(b"%d" % i, (i % 6, 5)))


@pytest.fixture(scope="module")
def whole(storage: Storage) -> Storage:
    """Return a storage with rounds of every kind: open, closed, without reports, and empty."""
    fill(storage, "open")
    fill(storage, "closed")
    fill(storage, "none", retention="none")
    storage.rounds.open("Rempty", "empty", PARAMETERS)
    storage.rounds.close("closed")

    class OlhGroup(Group):
        def rows(self, positions: Sequence[int]) -> tuple[bytes, Tally]:
            return reports.tobytes(), Tally.of(parameters.oracle, reports)

    items = ("\u00e9", "e\u0301", 301 * "c")  # as an earlier version took them
    parameters = RoundParameters("olh", 1.0, items, parameter=4, stored=True)
    reports = parameters.oracle.perturb(np.arange(3).repeat(50), np.random.default_rng(1))
    olh = storage.rounds.open("Rolh", "olh", parameters).seq
    storage.commit([OlhGroup(olh, [Submitted(b"a", ())])])
    assert storage.rounds.parameters(olh) == parameters
    return storage


@pytest.mark.parametrize("small", [0, 1 << 13], ids=["one by one", "many at a time"])
def test_intact_database_has_no_finding(
    whole: Storage, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldprecover_server.storage.maintenance.check._SMALL_BYTES", small)
    assert whole.check() == []


def test_finds_round_whose_protocol_is_not_loaded(
    whole: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol = whole.rounds.parameters(whole.rounds.find("open").seq).protocol
    # A copy, because deleting from the table and restoring would change its order.
    others = {name: kind for name, kind in PROTOCOLS.items() if name != protocol}
    monkeypatch.setattr("ldprecover_server.storage.maintenance.check.PROTOCOLS", others)
    description = f"a protocol that is loaded, not the plugin {protocol!r}"
    assert Finding("open", description, 1, 0) in whole.check()


def of(name: str) -> sa.ScalarSelect[int]:
    return sa.select(rounds.c.seq).where(rounds.c.name == name).scalar_subquery()


def first_segment(name: str) -> sa.ColumnElement[bool]:
    first = sa.select(sa.func.min(segments.c.id)).where(segments.c.round == of(name))
    return segments.c.id == first.scalar_subquery()


def change_tally(name: str, **values: object) -> sa.Update:
    return sa.update(tallies).where(tallies.c.round == of(name)).values(values)


def change_segment(data: bytes) -> sa.Update:
    return sa.update(segments).where(first_segment("open")).values(data=data)


def counts(*values: int) -> bytes:
    return np.array(values, dtype="<u4").tobytes()


def items_differ(item: int, number: int, expected: int, actual: int, name: str = "open") -> Finding:
    description = f"support of {str(item)!r}, the first of {number} items that differ"
    return Finding(name, description, expected, actual)


DAMAGED_TALLY = [Finding("none", "tallies that are damaged, or of no process", 0, 1)]
DAMAGES: dict[str, tuple[sa.Executable, list[Finding]]] = {
    "lost segment": (
        sa.delete(segments).where(first_segment("open")),
        [Finding("open", "reports in segments", 24, 22), items_differ(0, 2, 1, 2)],
    ),
    "duplicate segment": (
        sa.insert(segments).from_select(
            ["round", "hour", "n", "data"],
            sa.select(segments.c.round, segments.c.hour, segments.c.n, segments.c.data).where(
                first_segment("open")
            ),
        ),
        [Finding("open", "reports in segments", 24, 26), items_differ(0, 2, 3, 2)],
    ),
    "wrong count": (
        change_tally("closed", counts=counts(2, 2, 3, 2, 2, 14)),
        [items_differ(2, 1, 2, 3, "closed")],
    ),
    "short counts": (change_tally("none", counts=b"12345"), DAMAGED_TALLY),
    "count above all reports": (
        change_tally("none", counts=counts(0, 0, 0, 0, 0, 25)),
        DAMAGED_TALLY,
    ),
    "tally of no process": (change_tally("none", process=-1), DAMAGED_TALLY),
    "changed report": (change_segment(b"\1\0\0\0\5\0\0\0"), [items_differ(0, 2, 1, 2)]),
    "impossible report": (
        change_segment(b"\6\0\0\0\5\0\0\0"),
        [
            Finding("open", "pieces of reports that the protocol does not have", 0, 1),
            items_differ(0, 6, 0, 2),
        ],
    ),
    "truncated segment": (
        change_segment(b"\0\0\0\0\5"),
        [
            Finding("open", "segments whose size is not that of their reports", 0, 1),
            items_differ(0, 2, 1, 2),
        ],
    ),
    "report in a round that keeps none": (
        sa.insert(segments).values(round=of("none"), hour=1, n=1, data=bytes(4)),
        [Finding("none", "reports in segments", 0, 1)],
    ),
    "lost keys": (
        sa.delete(submission_keys).where(in_round(submission_keys.c.key, 5)),
        [Finding("olh", "submission keys, at least one for any reports", 1, 0)],
    ),
    "surplus keys": (
        sa.insert(submission_keys).values(
            [{"key": encode_key(4, bytes([i]) * 12), "digest": bytes(8)} for i in range(3)]
        ),
        [Finding("empty", "submission keys, at most one for each report", 0, 3)],
    ),
    "unreadable parameters": (
        sa.update(labels).where(labels.c.round == of("empty")).values({"items": b"["}),
        [Finding("empty", "parameters of the round's digest, p and q", 1, 0)],
    ),
    "unreadable parameters of reports": (
        sa.update(rounds).where(rounds.c.name == "open").values(epsilon=-1.0),
        [Finding("open", "parameters of the round's digest, p and q", 1, 0)],
    ),
    "segment of no round": (sa.insert(segments).values(round=6, hour=1, n=1, data=bytes(4)), []),
    "missing labels": (
        sa.delete(labels).where(labels.c.round == of("empty")),
        [Finding("empty", "parameters of the round's digest, p and q", 1, 0)],
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_check_finds_each_damage_exactly(
    whole: Storage, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The damage is checked in its own transaction, which is rolled back."""
    monkeypatch.setattr("ldprecover_server.storage.maintenance.check._ROUNDS", 1)
    statement, expected = DAMAGES[damage]
    with whole.database.engine.connect() as connection:
        connection.execute(statement)
        monkeypatch.setattr(whole.database, "read", lambda: nullcontext(connection))
        assert whole.check() == expected


def test_rows_of_a_deleted_round_are_no_fault(
    whole: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldprecover_server.storage.maintenance.deletion._CALL_SECONDS", -1.0)
    fill(whole, "deleted")
    seq = whole.deletion.delete("deleted").seq
    findings = whole.check()
    whole.deletion.delete_rest()
    description = "rows of a deleted round, not deleted yet"
    assert findings == [Finding(f"!{seq}", description, 0, 24, fault=False)]


def test_check_sees_each_round_at_one_moment(whole: Storage) -> None:
    """A submission is committed between its statements."""
    fill(whole, "busy")
    seq, numbers = whole.rounds.find("busy").seq, iter(range(1000, 2000))

    def commit_another(
        connection: sa.Connection, cursor: object, statement: str, *_: object
    ) -> None:
        if any(part in statement for part in ("count(*)", "FROM segments", "FROM tallies JOIN")):
            commit(whole, seq, Submitted(b"%d" % next(numbers), (3,)))

    sa.event.listen(whole.database.engine, "before_cursor_execute", commit_another)
    findings = whole.check()
    sa.event.remove(whole.database.engine, "before_cursor_execute", commit_another)
    assert findings == []
    assert next(numbers) > 1002
