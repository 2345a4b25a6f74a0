"""`check` finds what does not agree and by how much, and nothing in a database that is whole."""

import hashlib
from collections.abc import Callable

import numpy as np
import pytest
import sqlalchemy as sa
from tests.server.storage.conftest import PARAMETERS, Group, OpenStorage, Submitted

from ldprecover import RoundParameters, Tally
from ldprecover.protocols import PROTOCOLS
from ldprecover_server.storage import Finding, SealedBatch, Storage
from ldprecover_server.storage.key_encoding import encode_key, in_round
from ldprecover_server.storage.schema import rounds, segments, submission_keys, tallies

Damage = Callable[[sa.Connection], object]


def fill(storage: Storage, name: str, **options: int) -> None:
    seq = storage.rounds.open(f"R{name}", name, PARAMETERS, **options).seq  # type: ignore[arg-type]
    for i in range(12):
        storage.commit([Group(seq, [Submitted(b"%d" % i, (i % 6, 5))])])


@pytest.fixture
def whole(open_storage: OpenStorage, fresh: str) -> Storage:
    """Return a storage with rounds of every kind: open, closed, unlinked, purged and empty."""
    storage = open_storage(fresh)
    fill(storage, "open")
    fill(storage, "closed")
    fill(storage, "none", retention=0)
    fill(storage, "purged", retention=1)
    storage.rounds.open("Rempty", "empty", PARAMETERS)
    deletion = storage.deletion
    now, deletion.clock = deletion.clock, lambda: now().replace(year=2100)
    storage.deletion.purge()
    deletion.clock = now
    storage.rounds.close("closed")
    storage.unlinking.run()

    class OlhGroup(Group):
        def seal(self, fresh: object) -> SealedBatch:
            return SealedBatch(reports.tobytes(), Tally.of(parameters.oracle, reports))

    parameters = RoundParameters("olh", 1.0, ("a", "b", "c"), 4)
    reports = parameters.oracle.perturb(np.arange(3).repeat(50), np.random.default_rng(1))
    olh = storage.rounds.open("Rolh", "olh", parameters).seq
    storage.commit([OlhGroup(olh, [Submitted(b"a", ())])])
    return storage


def test_a_database_that_is_whole_has_no_finding(whole: Storage) -> None:
    assert whole.check() == []


def test_a_round_whose_protocol_is_not_loaded_is_told(
    whole: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol = whole.rounds.parameters(whole.rounds.find("open").seq).protocol
    # The table itself would get it back in another place, and others choose by the order.
    others = {name: kind for name, kind in PROTOCOLS.items() if name != protocol}
    monkeypatch.setattr("ldprecover_server.storage.maintenance.check.PROTOCOLS", others)
    what = f"a protocol that is loaded, not the plugin {protocol!r}"
    assert Finding("open", what, 1, 0) in whole.check()


def of(name: str) -> sa.ScalarSelect[int]:
    return sa.select(rounds.c.seq).where(rounds.c.name == name).scalar_subquery()


def one_segment(name: str) -> sa.ColumnElement[bool]:
    return (
        segments.c.id
        == sa.select(sa.func.min(segments.c.id))
        .where(segments.c.round == of(name))
        .scalar_subquery()
    )


def counts(*values: int) -> bytes:
    return np.array(values, dtype="<u4").tobytes()


DAMAGES: dict[str, tuple[Damage, list[Finding]]] = {
    "a segment is lost": (
        lambda c: c.execute(sa.delete(segments).where(one_segment("open"))),
        [
            Finding("open", "reports in segments", 24, 22),
            Finding("open", "support of '0', the first of 2 items that differ", 1, 2),
        ],
    ),
    "a segment is there twice": (
        lambda c: c.execute(
            sa.insert(segments).from_select(
                ["round", "hour", "n", "data"],
                sa.select(segments.c.round, segments.c.hour, segments.c.n, segments.c.data).where(
                    one_segment("open")
                ),
            )
        ),
        [
            Finding("open", "reports in segments", 24, 26),
            Finding("open", "support of '0', the first of 2 items that differ", 3, 2),
        ],
    ),
    "a count is wrong": (
        lambda c: c.execute(
            sa.update(tallies)
            .where(tallies.c.round == of("closed"))
            .values(counts=counts(2, 2, 3, 2, 2, 14))
        ),
        [Finding("closed", "support of '2', the first of 1 items that differ", 2, 3)],
    ),
    "counts are short": (
        lambda c: c.execute(
            sa.update(tallies).where(tallies.c.round == of("none")).values(counts=b"12345")
        ),
        [Finding("none", "tallies that are damaged, or of no process", 0, 1)],
    ),
    "a count is more than all": (
        lambda c: c.execute(
            sa.update(tallies)
            .where(tallies.c.round == of("none"))
            .values(counts=counts(0, 0, 0, 0, 0, 25))
        ),
        [Finding("none", "tallies that are damaged, or of no process", 0, 1)],
    ),
    "a tally is of no process": (
        lambda c: c.execute(
            sa.update(tallies).where(tallies.c.round == of("none")).values(process=-1)
        ),
        [Finding("none", "tallies that are damaged, or of no process", 0, 1)],
    ),
    "a report changed": (
        lambda c: c.execute(
            sa.update(segments).where(one_segment("open")).values(data=b"\1\0\0\0\5\0\0\0")
        ),
        [Finding("open", "support of '0', the first of 2 items that differ", 1, 2)],
    ),
    "a report is none": (
        lambda c: c.execute(
            sa.update(segments).where(one_segment("open")).values(data=b"\6\0\0\0\5\0\0\0")
        ),
        [
            Finding("open", "pieces of reports that the protocol does not have", 0, 1),
            Finding("open", "support of '0', the first of 6 items that differ", 0, 2),
        ],
    ),
    "a segment is cut": (
        lambda c: c.execute(
            sa.update(segments).where(one_segment("open")).values(data=b"\0\0\0\0\5")
        ),
        [
            Finding("open", "segments whose size is not that of their reports", 0, 1),
            Finding("open", "support of '0', the first of 2 items that differ", 1, 2),
        ],
    ),
    "reports are left that were to be none": (
        lambda c: c.execute(
            sa.insert(segments).values(round=of("none"), hour=1, n=1, data=bytes(4))
        ),
        [Finding("none", "reports in segments", 0, 1)],
    ),
    "purged reports are miscounted": (
        lambda c: c.execute(sa.update(rounds).where(rounds.c.name == "purged").values(purged=23)),
        [Finding("purged", "reports in segments, 23 being purged", 1, 0)],
    ),
    "keys are lost": (
        lambda c: c.execute(
            sa.delete(submission_keys).where(
                in_round(submission_keys.c.key, c.scalars(sa.select(of("olh"))).one())
            )
        ),
        [Finding("olh", "submission keys, at least one for any reports", 1, 0)],
    ),
    "keys are too many": (
        lambda c: c.execute(
            sa.insert(submission_keys),
            [
                {"key": encode_key(5, hashlib.sha256(b"%d" % i).digest()), "digest": bytes(8)}
                for i in range(3)
            ],
        ),
        [Finding("empty", "submission keys, at most one for each report", 0, 3)],
    ),
    "parameters cannot be read": (
        lambda c: c.execute(
            sa.update(rounds).where(rounds.c.name == "empty").values({"items": b"["})
        ),
        [Finding("empty", "parameters that can be read", 1, 0)],
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_check_finds_each_damage_exactly(whole: Storage, damage: str) -> None:
    do, expected = DAMAGES[damage]
    with whole.database.write() as connection:
        do(connection)
    assert whole.check() == expected


def test_rows_of_a_deleted_round_are_told_and_no_fault(
    whole: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldprecover_server.storage.maintenance.deletion._CALL_SECONDS", -1.0)
    seq = whole.rounds.find("open").seq
    whole.deletion.delete("open")
    assert whole.check() == [
        Finding(f"!{seq}", "rows of a deleted round, not deleted yet", 0, 24, fault=False)
    ]


def test_check_sees_each_round_at_one_moment(whole: Storage) -> None:
    """Commits go on between its statements."""
    seq, number = whole.rounds.find("open").seq, iter(range(1000, 2000))

    def commit(connection: sa.Connection, cursor: object, statement: str, *more: object) -> None:
        if "sum(segments.n)" in statement:
            assert whole.commit([Group(seq, [Submitted(b"%d" % next(number), (3,))])])

    sa.event.listen(whole.database.engine, "before_cursor_execute", commit)
    assert whole.check() == []
    assert next(number) > 1001
