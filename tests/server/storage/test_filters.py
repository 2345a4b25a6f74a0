"""Filters quarantine repeats of a closed round, each exactly once."""

from collections.abc import Iterable

import numpy as np
import pytest
import sqlalchemy as sa
from tests.server.storage.conftest import (
    OpenStorage,
    close_round,
    for_chunks,
    name_of,
    open_round,
    packed_reports,
)

from ldprecover import OLH, RoundParameters, Tally
from ldprecover.evidence.quarantine import Quarantined, Repeats, report_threshold, split_by_size
from ldprecover.protocols import PROTOCOLS
from ldprecover_server.errors import ReportsGoneError
from ldprecover_server.housekeeping import Housekeeping
from ldprecover_server.ingest.batches import Batch, Submission
from ldprecover_server.rejections import Rejections
from ldprecover_server.storage import Outcome, Progress, Storage
from ldprecover_server.storage.rounds import update_round
from ldprecover_server.storage.schema import quarantine, rounds, segments, tallies

PARAMETERS = RoundParameters("olh", 0.5, tuple(map(str, range(60))), quarantine=True)
ORACLE = PARAMETERS.oracle
SIZE = ORACLE.summary_size
HONEST, FAKE = 40, 12
SEED = 7


def make_reports() -> np.ndarray:
    """Return 40 honest reports and 12 under one seed, all of possible sizes; of the first 48 every
    fourth is fake.
    """
    rng = np.random.default_rng(1)
    honest = ORACLE.perturb(rng.integers(60, size=HONEST), rng)
    assert np.unique(honest["seed"]).size == HONEST
    fake = OLH(0.5, 60, 3).reports(np.full(FAKE, SEED, np.uint32), np.arange(FAKE) % 3)
    reports = np.insert(honest, np.arange(3, 3 * FAKE + 1, 3), fake)
    assert not split_by_size(ORACLE, reports)[0].any()
    return reports


REPORTS = make_reports()
IS_FAKE = REPORTS["seed"] == SEED
ALL, HONEST_ALONE = (Tally.of(ORACLE, chosen) for chosen in (REPORTS, REPORTS[~IS_FAKE]))


def commit(storage: Storage, seq: int, positions: Iterable[int]) -> set[Outcome]:
    """Commit the reports at these positions as one group; return their outcomes."""
    batch = Batch(
        seq,
        [
            Submission(seq, ORACLE, f"key-{i}", REPORTS[i : i + 1].tobytes(), quarantine=True)
            for i in positions
        ],
    )
    batch.count()
    return set(storage.commit([batch])[0])


def fill(storage: Storage, seq: int) -> None:
    """Store every report in a segment by itself."""
    for i in range(len(REPORTS)):
        assert commit(storage, seq, [i]) == {Outcome.STORED}


def fill_and_close(storage: Storage, **options: int) -> int:
    """Return a closed round that has all reports."""
    seq = open_round(storage, PARAMETERS, **options)
    fill(storage, seq)
    close_round(storage, seq)
    return seq


def separate(reports: np.ndarray) -> list[bytes]:
    return sorted(report.tobytes() for report in reports)


def assert_filtered(storage: Storage, seq: int) -> None:
    """Honest reports are counted and stored, fake ones quarantined, and all keys are duplicates."""
    counts = storage.rounds.tally_and_quarantined(seq, SIZE)
    assert counts == (HONEST_ALONE, Quarantined(0, FAKE))
    assert packed_reports(storage, seq) == separate(REPORTS[~IS_FAKE])
    assert packed_reports(storage, seq, quarantine) == separate(REPORTS[IS_FAKE])
    assert storage.segments.evidence(seq, SIZE) == (HONEST_ALONE, True)
    assert sorted(b"".join(storage.segments.reports(seq))) == sorted(REPORTS[~IS_FAKE].tobytes())
    assert commit(storage, seq, range(len(REPORTS))) == {Outcome.DUPLICATE}
    assert storage.check() == []


def test_housekeeping_filters_and_unlinks_a_closed_round(storage: Storage) -> None:
    keeper = Housekeeping(storage, Rejections(storage))
    seq = open_round(storage, PARAMETERS)
    fill(storage, seq)
    keeper.once()
    close_round(storage, seq)
    assert storage.rounds.tally_and_quarantined(seq, SIZE) == (ALL, Quarantined(0, None))
    assert storage.unlinking.run().rows == 0  # it waits for the filters
    keeper.once()
    with storage.database.read() as connection:
        row = connection.execute(sa.select(rounds).where(rounds.c.seq == seq)).one()
    assert (row.unlinked, row.filtered, row.repeats) == (True, True, None)
    assert storage.filters.run().rows == 0
    assert_filtered(storage, seq)


@pytest.mark.usefixtures("small_chunks")
def test_counts_and_reports_agree_after_each_chunk(storage: Storage) -> None:
    seq = fill_and_close(storage)
    moved = []
    done = False
    while not done:
        progress = storage.filters.run(for_chunks(1))
        done = progress.done
        moved.append(progress.rows)
        tally, quarantined = storage.rounds.tally_and_quarantined(seq, SIZE)
        counted = packed_reports(storage, seq)
        assert sorted(counted + packed_reports(storage, seq, quarantine)) == separate(REPORTS)
        assert tally == Tally.of(ORACLE, np.frombuffer(b"".join(counted), ORACLE.wire.dtype))
        assert quarantined == Quarantined(0, FAKE if done else None)
    assert len(moved) > 10
    assert sum(moved) == FAKE
    assert_filtered(storage, seq)


def test_a_transaction_stops_at_its_deadline(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any time it processes one segment, whatever the number of rows it may take.

    The round has 52 small segments, and 20,000 other repeats are recorded.
    """
    seq = open_round(storage, PARAMETERS)
    fill(storage, seq)
    close_round(storage, seq)
    others = np.setdiff1d(np.arange(20_000, dtype=np.uint32), [SEED, *REPORTS["seed"]])
    values = np.union1d(others, np.array([SEED], np.uint32))
    repeats = Repeats(values, np.where(values == SEED, FAKE, 1))
    with storage.database.write() as connection:
        update_round(connection, seq, {"repeats": repeats.to_bytes()})
        ids = connection.scalars(sa.select(segments.c.id).where(segments.c.round == seq)).all()
    last = sa.select(rounds.c.filtered_segment).where(rounds.c.seq == seq)
    monkeypatch.setattr("ldprecover_server.storage.maintenance.chunks._LONG_SECONDS", 0.0)
    for i, id in enumerate(sorted(ids)):
        assert not storage.filters.run(for_chunks(1)).done
        with storage.database.read() as connection:
            assert connection.scalar(last) == id
        tally, _ = storage.rounds.tally_and_quarantined(seq, SIZE)
        assert tally.n == len(REPORTS) - IS_FAKE[: i + 1].sum()
    assert storage.filters.run().done
    assert_filtered(storage, seq)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize(("chunks", "are_moving"), [(5, False), (19, True)])
def test_another_process_continues(
    open_storage: OpenStorage, url: str, chunks: int, are_moving: bool
) -> None:
    """It repeats an unfinished search, but keeps recorded seeds.

    The two passes of the search take 16 chunks.
    """
    first, second = open_storage(url), open_storage(url)
    seq = fill_and_close(first)
    first.filters.run(for_chunks(chunks))
    assert bool(packed_reports(first, seq, quarantine)) == are_moving
    assert second.filters.run().done
    assert_filtered(second, seq)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize(
    "statement", ["INSERT INTO quarantine", "UPDATE segments", "DELETE FROM segments", "UPDATE t"]
)
def test_interrupted_filtering_loses_and_doubles_nothing(storage: Storage, statement: str) -> None:
    seq = open_round(storage, PARAMETERS)
    commit(storage, seq, range(30))  # a segment that stays
    for i in range(30, len(REPORTS)):
        commit(storage, seq, [i])  # segments that are deleted
    close_round(storage, seq)

    def fail(connection: object, cursor: object, text: str, *_: object) -> None:
        if text.startswith(statement):
            raise KeyboardInterrupt

    sa.event.listen(storage.database.engine, "after_cursor_execute", fail)
    with pytest.raises(KeyboardInterrupt):
        storage.filters.run()
    sa.event.remove(storage.database.engine, "after_cursor_execute", fail)
    assert storage.filters.run().done
    assert_filtered(storage, seq)


@pytest.mark.postgres
def test_filtering_merges_tallies_of_several_processes(open_storage: OpenStorage, url: str) -> None:
    """No single row need contain the support of all quarantined reports."""
    one, two = open_storage(url), open_storage(url)
    one.database.process, two.database.process = 0, 1
    seq = open_round(one, PARAMETERS)
    commit(one, seq, np.flatnonzero(~IS_FAKE).tolist())
    commit(two, seq, np.flatnonzero(IS_FAKE).tolist())
    close_round(one, seq)
    one.filters.run()
    with one.database.read() as connection:
        assert len(connection.execute(sa.select(tallies).where(tallies.c.round == seq)).all()) == 1
    assert_filtered(two, seq)
    assert two.filters.run().rows == 0


def test_round_without_recurring_seeds_keeps_all_reports(storage: Storage) -> None:
    seq = open_round(storage, PARAMETERS)
    commit(storage, seq, [*np.flatnonzero(~IS_FAKE).tolist(), int(np.argmax(IS_FAKE))])
    close_round(storage, seq)
    assert storage.filters.run().done
    assert storage.rounds.tally_and_quarantined(seq, SIZE)[1] == Quarantined(0, 0)
    assert len(packed_reports(storage, seq)) == HONEST + 1


FEW = RoundParameters("llh", 1.0, tuple(map(str, range(9))), 3, quarantine=True)


@pytest.mark.usefixtures("small_chunks")
def test_reports_beyond_what_honest_users_send_are_quarantined(
    open_storage: OpenStorage, url: str
) -> None:
    """Two processes share the work, and of equal reports the first ones move."""
    first, second = open_storage(url), open_storage(url)
    oracle, rng = FEW.oracle, np.random.default_rng(1)
    honest = oracle.perturb(rng.integers(9, size=300), rng)
    reports = rng.permutation(np.concatenate([honest, np.repeat([0, 4], [90, 120]).astype("<u4")]))
    seq = open_round(first, FEW)
    for i, part in enumerate(np.array_split(reports, 40)):
        batch = Batch(seq, [Submission(seq, oracle, f"k{i}", part.tobytes(), quarantine=True)])
        batch.count()
        assert first.commit([batch])[0] == [Outcome.STORED]
    close_round(first, seq)
    limit = report_threshold(oracle, reports.size) - 1
    expected = np.minimum(Tally.of(oracle, reports).summary, limit)
    assert limit < 90
    first.filters.run(for_chunks(8))
    assert second.filters.run().done
    tally, quarantined = second.rounds.tally_and_quarantined(seq, oracle.summary_size)
    assert (tally.summary.tolist(), tally.n) == (expected.tolist(), expected.sum())
    assert quarantined == Quarantined(0, reports.size - tally.n)
    moved = np.frombuffer(b"".join(packed_reports(second, seq, quarantine)), "<u4")
    assert np.unique(moved).tolist() == [0, 4]
    assert sorted([*moved, *np.repeat(np.arange(27), expected)]) == sorted(reports.tolist())
    assert second.check() == []


def test_rounds_that_keep_no_reports_judge_no_seeds(storage: Storage) -> None:
    seq = fill_and_close(storage, retention=0)
    assert storage.filters.run().done
    assert storage.rounds.tally_and_quarantined(seq, SIZE) == (ALL, Quarantined(0, 0))
    assert storage.check() == []


def test_filters_skip_rounds_of_missing_plugins(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROTOCOLS, "theirs", type("Theirs", (OLH,), {"protocol": "theirs"}))
    theirs = open_round(storage, RoundParameters("theirs", 0.5, PARAMETERS.items, quarantine=True))
    fill(storage, theirs)
    close_round(storage, theirs)
    ours = fill_and_close(storage)
    with monkeypatch.context() as unloaded:
        unloaded.delitem(PROTOCOLS, "theirs")
        assert storage.filters.run().done
        assert storage.rounds.tally_and_quarantined(ours, SIZE)[1] == Quarantined(0, FAKE)
    assert storage.filters.run().rows == FAKE
    storage.deletion.delete(name_of(storage, theirs))


def test_a_damaged_round_does_not_stop_others(
    storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = fill_and_close(storage)
    sound = fill_and_close(storage)
    with storage.database.write() as connection:
        update_round(connection, damaged, {"repeats": b"not twelve bytes each"})
    assert storage.filters.run().done
    assert_filtered(storage, sound)
    assert f"the round with seq {damaged} cannot be filtered" in caplog.text
    caplog.clear()
    assert storage.filters.run() == Progress(0, True)
    assert caplog.text == ""
    storage.deletion.delete(name_of(storage, damaged))
    storage.filters.run()
    assert storage.filters._given_up == set()


def test_earlier_view_fails_and_deletion_takes_the_quarantine(storage: Storage) -> None:
    seq = fill_and_close(storage)
    reports = storage.segments.reports(seq)
    storage.filters.run()
    with pytest.raises(ReportsGoneError, match="quarantined"):
        list(reports)
    storage.deletion.delete(name_of(storage, seq))
    assert storage.deletion.delete_rest().done
    assert packed_reports(storage, seq, quarantine) == []


def test_retention_purges_quarantined_reports(storage: Storage) -> None:
    seq = fill_and_close(storage, retention=1)
    storage.filters.run()
    with storage.database.write() as connection:
        for table in (segments, quarantine):
            connection.execute(sa.update(table).values(hour=table.c.hour - 5))
    storage.deletion.purge()
    assert packed_reports(storage, seq) == packed_reports(storage, seq, quarantine) == []
    counts = storage.rounds.tally_and_quarantined(seq, SIZE)
    assert counts == (HONEST_ALONE, Quarantined(0, FAKE))
    assert storage.check() == []


def test_check_finds_missing_quarantined_reports(storage: Storage) -> None:
    seq = fill_and_close(storage)
    storage.filters.run()
    with storage.database.write() as connection:
        connection.execute(sa.delete(quarantine).where(quarantine.c.round == seq))
    (finding,) = storage.check()
    storage.deletion.delete(name_of(storage, seq))
    assert finding.what == "quarantined reports with the reason repeat"
    assert (finding.expected, finding.found) == (FAKE, 0)
