"""Filters quarantine reports with recurring seeds of a closed round, each exactly once."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import sqlalchemy as sa
from tests.server.storage.conftest import OpenStorage

from ldprecover import OLH, RoundParameters, Tally
from ldprecover.evidence.quarantine import Quarantined, split_by_size
from ldprecover.protocols import PROTOCOLS
from ldprecover_server.errors import ReportsGoneError
from ldprecover_server.housekeeping import Housekeeping
from ldprecover_server.ingest.batches import Batch, Submission
from ldprecover_server.rejections import Rejections
from ldprecover_server.storage import Outcome, Storage
from ldprecover_server.storage.schema import quarantine, rounds, segments, tallies

PARAMETERS = RoundParameters("olh", 0.5, tuple(map(str, range(60))), quarantine=True)
ORACLE = PARAMETERS.oracle
HONEST, FAKE = 40, 12
SEED = 7


def reports() -> np.ndarray:
    """Forty honest reports, and twelve under one seed, four times in turn: all of possible
    sizes.
    """
    rng = np.random.default_rng(1)
    honest = ORACLE.perturb(rng.integers(60, size=HONEST), rng)
    assert np.unique(honest["seed"]).size == HONEST
    fake = OLH(0.5, 60, 3).reports(np.full(FAKE, SEED, np.uint32), np.arange(FAKE) % 3)
    mixed = np.empty(HONEST + FAKE, ORACLE.report_dtype)
    places = np.arange(3, 4 * FAKE, 4)
    mixed[places] = fake
    mixed[np.delete(np.arange(mixed.size), places)] = honest
    assert not split_by_size(ORACLE, mixed)[0].any()
    return mixed


REPORTS = reports()
IS_FAKE = REPORTS["seed"] == SEED


def submission(seq: int, i: int) -> Submission:
    return Submission(seq, ORACLE, f"key-{i}", REPORTS[i : i + 1].tobytes(), quarantine=True)


def open_round(
    storage: Storage, parameters: RoundParameters = PARAMETERS, retention: int | None = None
) -> int:
    name = f"r{np.random.default_rng().integers(1 << 62)}"
    return storage.rounds.open(f"R{name}", name, parameters, retention=retention).seq


def commit(storage: Storage, seq: int, numbers: list[int]) -> list[Outcome]:
    batch = Batch(seq, [submission(seq, i) for i in numbers])
    batch.count()
    return storage.commit([batch])[0]


def fill(storage: Storage, seq: int) -> None:
    for i in range(len(REPORTS)):
        assert commit(storage, seq, [i]) == [Outcome.STORED]


def close(storage: Storage, seq: int) -> None:
    with storage.database.read() as connection:
        name = connection.scalars(sa.select(rounds.c.name).where(rounds.c.seq == seq)).one()
    storage.rounds.close(name)


def of(storage: Storage, seq: int, table: sa.Table) -> list[bytes]:
    """Return the packed reports of a round in a table, sorted."""
    with storage.database.read() as connection:
        rows = connection.execute(
            sa.select(table.c.n, table.c.data).where(table.c.round == seq)
        ).all()
    assert all(len(row.data) == row.n * ORACLE.report_size for row in rows)
    data = b"".join(row.data for row in rows)
    return sorted(data[i : i + ORACLE.report_size] for i in range(0, len(data), ORACLE.report_size))


def each(chosen: np.ndarray) -> list[bytes]:
    return sorted(report.tobytes() for report in chosen)


def check_apart(storage: Storage, seq: int) -> None:
    """The honest reports are counted and stored, the others are in quarantine, and every key
    answers as before.
    """
    honest = Tally.of(ORACLE, REPORTS[~IS_FAKE])
    assert storage.rounds.tally_and_quarantined(seq, ORACLE.summary_size) == (
        honest,
        Quarantined(0, FAKE),
    )
    assert (of(storage, seq, segments), of(storage, seq, quarantine)) == (
        each(REPORTS[~IS_FAKE]),
        each(REPORTS[IS_FAKE]),
    )
    assert storage.segments.evidence(seq, ORACLE.summary_size) == (honest, True)
    assert sorted(b"".join(storage.segments.reports(seq))) == sorted(REPORTS[~IS_FAKE].tobytes())
    assert Counter(commit(storage, seq, list(range(len(REPORTS))))) == {
        Outcome.DUPLICATE: len(REPORTS)
    }
    assert storage.check() == []


def pieces(most: int) -> Callable[[], bool]:
    left = [most]

    def go_on() -> bool:
        left[0] -= 1
        return left[0] >= 0

    return go_on


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of eight rows each, however long they take."""
    monkeypatch.setattr("ldprecover_server.storage.maintenance.chunks._LONG_SECONDS", 60.0)
    monkeypatch.setattr("ldprecover_server.storage.maintenance.chunks._FIRST_ROWS", 8)
    monkeypatch.setattr("ldprecover_server.storage.maintenance.chunks._MAX_ROWS", 8)


def test_housekeeping_filters_and_unlinks_a_closed_round(
    open_storage: OpenStorage, fresh: str
) -> None:
    storage = open_storage(fresh)
    keeper = Housekeeping(storage, Rejections(storage))
    seq = open_round(storage)
    fill(storage, seq)
    keeper.once()
    everything = Tally.of(ORACLE, REPORTS)
    assert storage.rounds.tally_and_quarantined(seq, ORACLE.summary_size) == (
        everything,
        Quarantined(0, None),
    )
    close(storage, seq)
    assert storage.rounds.tally_and_quarantined(seq, ORACLE.summary_size) == (
        everything,
        Quarantined(0, None),
    )
    assert storage.unlinking.run().rows == 0  # it waits for the filtering
    keeper.once()
    check_apart(storage, seq)
    with storage.database.read() as connection:
        row = connection.execute(sa.select(rounds).where(rounds.c.seq == seq)).one()
    assert (row.unlinked, row.filtered, row.recurring_seeds) == (True, True, None)
    assert storage.filters.run().rows == 0
    check_apart(storage, seq)


@pytest.mark.usefixtures("small_pieces")
def test_filtering_continues_and_counts_agree_after_each_chunk(
    open_storage: OpenStorage, fresh: str
) -> None:
    storage = open_storage(fresh)
    seq = open_round(storage)
    fill(storage, seq)
    close(storage, seq)
    steps, moved = 0, 0
    while True:
        progress = storage.filters.run(pieces(1))
        steps, moved = steps + 1, moved + progress.rows
        tally, aside = storage.rounds.tally_and_quarantined(seq, ORACLE.summary_size)
        kept, apart = of(storage, seq, segments), of(storage, seq, quarantine)
        assert sorted(kept + apart) == each(REPORTS)
        assert tally == Tally.of(ORACLE, np.frombuffer(b"".join(kept), ORACLE.report_dtype))
        assert aside == Quarantined(0, FAKE if progress.done else None)
        if progress.done:
            break
    assert steps > 10
    assert moved == FAKE
    check_apart(storage, seq)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("where", ["searching", "moving"])
def test_another_process_continues_with_recorded_seeds(
    open_storage: OpenStorage, fresh: str, where: str
) -> None:
    """What a process has searched is lost with it, what it has written down is not: the same seeds
    go on.
    """
    first = open_storage(fresh)
    seq = open_round(first)
    fill(first, seq)
    close(first, seq)
    # Two passes of seven pieces and their ends, then the pieces that move.
    first.filters.run(pieces(5 if where == "searching" else 19))
    assert bool(of(first, seq, quarantine)) == (where == "moving")
    first.close()
    second = open_storage(fresh)
    assert second.filters.run().done
    check_apart(second, seq)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    "statement", ["INSERT INTO quarantine", "UPDATE segments", "DELETE FROM segments", "UPDATE t"]
)
def test_interrupted_filtering_loses_and_doubles_nothing(
    open_storage: OpenStorage, fresh: str, statement: str
) -> None:
    storage = open_storage(fresh)
    seq = open_round(storage)
    assert set(commit(storage, seq, list(range(30)))) == {Outcome.STORED}  # a segment that stays
    for i in range(30, len(REPORTS)):
        commit(storage, seq, [i])  # segments that go
    close(storage, seq)
    failed: list[str] = []

    def fail(connection: object, cursor: object, text: str, *_: object) -> None:
        if text.startswith(statement) and not failed:
            failed.append(text)
            raise RuntimeError("the process dies here")

    sa.event.listen(storage.database.engine, "after_cursor_execute", fail)
    with pytest.raises(RuntimeError, match="dies"):
        storage.filters.run()
    sa.event.remove(storage.database.engine, "after_cursor_execute", fail)
    assert storage.filters.run().done
    check_apart(storage, seq)


@pytest.mark.postgres
def test_filtering_merges_tallies_of_several_processes(
    open_storage: OpenStorage, fresh: str
) -> None:
    """No row by itself need have the support of the reports that go."""
    one, two = open_storage(fresh), open_storage(fresh)
    for number, storage in enumerate((one, two)):
        storage.database.claim()
        assert storage.database.process == number
    seq = open_round(one)
    honest, fake = np.flatnonzero(~IS_FAKE).tolist(), np.flatnonzero(IS_FAKE).tolist()
    commit(one, seq, honest)
    commit(two, seq, fake)
    close(one, seq)
    one.filters.run()
    with one.database.read() as connection:
        assert len(connection.execute(sa.select(tallies).where(tallies.c.round == seq)).all()) == 1
    check_apart(two, seq)
    assert two.filters.run().rows == 0


def test_round_without_recurring_seeds_keeps_all_reports(
    open_storage: OpenStorage, fresh: str
) -> None:
    storage = open_storage(fresh)
    seq = open_round(storage)
    honest = np.flatnonzero(~IS_FAKE).tolist()
    commit(storage, seq, [*honest, int(np.flatnonzero(IS_FAKE)[0])])
    close(storage, seq)
    assert storage.filters.run().done
    assert storage.rounds.tally_and_quarantined(seq, ORACLE.summary_size)[1] == Quarantined(0, 0)
    assert len(of(storage, seq, segments)) == HONEST + 1
    assert of(storage, seq, quarantine) == []


def test_rounds_that_keep_no_reports_judge_no_seeds(open_storage: OpenStorage, fresh: str) -> None:
    storage = open_storage(fresh)
    seq = open_round(storage, retention=0)
    fill(storage, seq)
    close(storage, seq)
    assert storage.filters.run().done
    assert storage.rounds.tally_and_quarantined(seq, ORACLE.summary_size) == (
        Tally.of(ORACLE, REPORTS),
        Quarantined(0, 0),
    )
    assert storage.check() == []


def test_filters_skip_rounds_of_missing_plugins(
    open_storage: OpenStorage, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(fresh)
    monkeypatch.setitem(PROTOCOLS, "theirs", type("Theirs", (OLH,), {"protocol": "theirs"}))
    theirs = open_round(storage, RoundParameters("theirs", 0.5, PARAMETERS.items, quarantine=True))
    ours = open_round(storage)
    for seq in (theirs, ours):
        fill(storage, seq)
        close(storage, seq)
    with monkeypatch.context() as unloaded:
        unloaded.delitem(PROTOCOLS, "theirs")
        assert storage.filters.run().done
        assert storage.rounds.tally_and_quarantined(ours, ORACLE.summary_size)[1] == Quarantined(
            0, FAKE
        )
    assert storage.filters.run().rows == FAKE


def test_earlier_view_fails_after_filtering(open_storage: OpenStorage, fresh: str) -> None:
    storage = open_storage(fresh)
    seq = open_round(storage)
    fill(storage, seq)
    asked = storage.segments.reports(seq)
    close(storage, seq)
    storage.filters.run()
    with pytest.raises(ReportsGoneError, match="quarantined"):
        list(asked)


def test_a_deleted_round_takes_its_quarantine_with_it(
    open_storage: OpenStorage, fresh: str
) -> None:
    storage = open_storage(fresh)
    seq = open_round(storage)
    fill(storage, seq)
    close(storage, seq)
    storage.filters.run()
    with storage.database.read() as connection:
        name = connection.scalars(sa.select(rounds.c.name).where(rounds.c.seq == seq)).one()
    storage.deletion.delete(name)
    assert storage.deletion.delete_rest().done  # what a second did not suffice for
    with storage.database.read() as connection:
        for table in (rounds, segments, quarantine, tallies):
            assert connection.execute(sa.select(table)).all() == []


def test_what_is_set_aside_is_purged_with_what_is_kept(
    open_storage: OpenStorage, fresh: str
) -> None:
    storage = open_storage(fresh)
    seq = open_round(storage, retention=1)
    fill(storage, seq)
    close(storage, seq)
    storage.filters.run()
    with storage.database.write() as connection:
        for table in (segments, quarantine):
            connection.execute(sa.update(table).values(hour=table.c.hour - 5))
    storage.deletion.purge()
    assert of(storage, seq, quarantine) == of(storage, seq, segments) == []
    assert storage.rounds.tally_and_quarantined(seq, ORACLE.summary_size) == (
        Tally.of(ORACLE, REPORTS[~IS_FAKE]),
        Quarantined(0, FAKE),
    )
    assert storage.check() == []


def test_check_finds_missing_quarantined_reports(open_storage: OpenStorage, fresh: str) -> None:
    storage = open_storage(fresh)
    seq = open_round(storage)
    fill(storage, seq)
    close(storage, seq)
    storage.filters.run()
    with storage.database.write() as connection:
        connection.execute(sa.delete(quarantine))
    (finding,) = storage.check()
    assert (finding.what, finding.expected, finding.found) == (
        "reports quarantined by their seed",
        FAKE,
        0,
    )
