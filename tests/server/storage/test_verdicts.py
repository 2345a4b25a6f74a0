"""Stored verdicts: which rounds lack one, who computes it, and how long it holds."""

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from tests.server.storage.conftest import (
    OpenStorage,
    Submitted,
    close_round,
    commit,
    name_of,
    open_round,
)

from ldprecover_server.errors import RoundNotFoundError
from ldprecover_server.storage import Storage
from ldprecover_server.storage.schema import rounds, tallies, verdicts
from ldprecover_server.storage.verdicts import (
    CLAIM_SECONDS,
    MIN_REPORTS,
    NEAR_CERTAIN,
    ONCE,
    RENEWAL_SECONDS,
    REPEAT_SECONDS,
)

REPORTS = Submitted(b"reports", (0, 1, 2))


NONE_SEEN = "none_seen"


class Time:
    """A clock that a test moves."""

    now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def storage(open_storage: OpenStorage, fresh: str) -> Storage:
    return open_storage(fresh)


def closed_round(storage: Storage, *submissions: Submitted) -> int:
    seq = open_round(storage)
    commit(storage, seq, *(submissions or (REPORTS,)))
    close_round(storage, seq)
    return seq


def add(storage: Storage, seq: int, recovery: bytes = b"packed") -> None:
    storage.verdicts.add(seq, "closed", "possible", "{}", recovery)


def id_of(storage: Storage, seq: int) -> str:
    return storage.rounds.find(name_of(storage, seq)).id


def verdict_of(storage: Storage, seq: int) -> str | None:
    """Return the verdict of a round; a page of rounds must agree."""
    (of_page,) = [each.verdict for each in storage.rounds.page(100) if each.seq == seq]
    assert storage.rounds.find(name_of(storage, seq)).verdict == of_page
    return of_page


def test_closed_rounds_with_reports_lack_a_verdict(storage: Storage) -> None:
    commit(storage, open_round(storage), REPORTS)
    close_round(storage, open_round(storage))  # without reports
    first, second = (closed_round(storage) for _ in range(2))
    with storage.database.write() as connection:
        earlier = sa.update(rounds).where(rounds.c.seq == second)
        connection.execute(earlier.values(closed_at="2020-01-01T00:00:00+00:00"))
    assert storage.verdicts.missing() == [id_of(storage, first), id_of(storage, second)]
    add(storage, first)
    assert storage.verdicts.missing() == [id_of(storage, second)]


def test_one_process_claims_a_round_for_a_while(open_storage: OpenStorage, fresh: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    storage = open_storage(fresh, clock=lambda: now)
    seq = closed_round(storage)
    assert storage.verdicts.claim(seq, "closed", 3)
    assert not storage.verdicts.claim(seq, "closed", 3)
    assert verdict_of(storage, seq) is None
    assert storage.verdicts.missing() == [id_of(storage, seq)]
    now += timedelta(seconds=CLAIM_SECONDS)
    assert storage.verdicts.claim(seq, "closed", 3)
    add(storage, seq)
    now += timedelta(seconds=CLAIM_SECONDS)
    assert not storage.verdicts.claim(seq, "closed", 3)
    assert verdict_of(storage, seq) == "{}"


def test_released_round_is_free_and_a_verdict_stays(storage: Storage) -> None:
    seq = closed_round(storage)
    claim = storage.verdicts.claim(seq, "closed", 3)
    assert claim is not None
    storage.verdicts.release(seq, claim - 1)  # of another process
    assert not storage.verdicts.claim(seq, "closed", 3)
    storage.verdicts.release(seq, claim)
    assert storage.verdicts.claim(seq, "closed", 3)
    add(storage, seq)
    storage.verdicts.release(seq, claim)
    assert not storage.verdicts.claim(seq, "closed", 3)
    assert verdict_of(storage, seq) == "{}"
    assert storage.verdicts.recovery(seq) == b"packed"


def test_verdict_is_deleted_with_its_round(storage: Storage) -> None:
    seq, other = closed_round(storage), closed_round(storage)
    for each in (seq, other):
        add(storage, each)
    storage.deletion.delete(name_of(storage, seq))
    with storage.database.read() as connection:
        assert connection.scalars(sa.select(verdicts.c.round)).all() == [other]
    with pytest.raises(RoundNotFoundError):
        add(storage, seq)
    with pytest.raises(RoundNotFoundError):
        storage.verdicts.claim(seq, "closed", 3)


def test_check_and_recovery_of_a_large_result(storage: Storage) -> None:
    seq = closed_round(storage)
    packed = bytes(range(256)) * 10_000
    add(storage, seq, packed)
    assert storage.verdicts.recovery(seq) == packed
    assert storage.check() == []


def open_rounds_of(storage: Storage, *numbers: int) -> list[int]:
    """Open rounds with these numbers of reports."""
    seqs = [open_round(storage) for _ in numbers]
    for seq, n in zip(seqs, numbers, strict=True):
        commit(storage, seq, REPORTS)
        grow(storage, seq, n)
    return seqs


def grow(storage: Storage, seq: int, n: int) -> None:
    with storage.database.write() as connection:
        connection.execute(sa.update(tallies).where(tallies.c.round == seq).values(n=n))


def judge(storage: Storage, seq: int, n: int, attack: str) -> tuple[str | None, str] | None:
    assert storage.verdicts.claim(seq, "open", n)
    assert not storage.verdicts.claim(seq, "open", n)
    return storage.verdicts.add(seq, "open", attack, "{}")


def test_open_rounds_are_due_by_growth_and_time(open_storage: OpenStorage, fresh: str) -> None:
    time = Time()
    storage = open_storage(fresh, clock=time)
    few, first, second = open_rounds_of(storage, MIN_REPORTS - 1, MIN_REPORTS, 2 * MIN_REPORTS)
    ids = {seq: id_of(storage, seq) for seq in (few, first, second)}
    assert storage.verdicts.missing() == [ids[second], ids[first]]
    closed = closed_round(storage)
    assert storage.verdicts.missing() == [id_of(storage, closed), ids[second], ids[first]]
    add(storage, closed)
    assert judge(storage, first, MIN_REPORTS, NONE_SEEN) == (None, NONE_SEEN)
    assert judge(storage, second, 2 * MIN_REPORTS, NONE_SEEN) == (None, NONE_SEEN)
    assert verdict_of(storage, first) == "{}"
    grow(storage, first, 10 * MIN_REPORTS)
    grow(storage, second, 2_099)  # less than 5 %
    time.wait(RENEWAL_SECONDS - 1)
    assert storage.verdicts.missing() == []
    time.wait(1)
    assert storage.verdicts.missing() == [ids[first]]
    grow(storage, second, 2_100)
    assert storage.verdicts.missing() == [ids[first], ids[second]]


def test_first_near_certain_verdict_is_repeated(open_storage: OpenStorage, fresh: str) -> None:
    time = Time()
    storage = open_storage(fresh, clock=time)
    (seq,) = open_rounds_of(storage, MIN_REPORTS)
    assert judge(storage, seq, MIN_REPORTS, NEAR_CERTAIN) == (None, ONCE)
    assert storage.verdicts.open_rounds()[ONCE] == 1
    time.wait(REPEAT_SECONDS - 1)
    assert storage.verdicts.missing() == []
    time.wait(1)
    assert storage.verdicts.missing() == [id_of(storage, seq)]
    assert judge(storage, seq, MIN_REPORTS, NEAR_CERTAIN) == (ONCE, NEAR_CERTAIN)
    time.wait(RENEWAL_SECONDS)
    assert storage.verdicts.missing() == []
    assert storage.verdicts.open_rounds() == {
        **dict.fromkeys((NONE_SEEN, "cannot_be_seen", "possible", ONCE), 0),
        NEAR_CERTAIN: 1,
    }
    assert judge(storage, seq, MIN_REPORTS, NONE_SEEN) == (NEAR_CERTAIN, NONE_SEEN)
    time.wait(RENEWAL_SECONDS)
    assert judge(storage, seq, MIN_REPORTS, NEAR_CERTAIN) == (NONE_SEEN, ONCE)


def test_closing_a_round_deletes_its_open_verdict(storage: Storage) -> None:
    judged, claimed = open_rounds_of(storage, MIN_REPORTS, MIN_REPORTS)
    judge(storage, judged, MIN_REPORTS, NEAR_CERTAIN)
    claim = storage.verdicts.claim(claimed, "open", MIN_REPORTS)
    assert claim is not None
    for seq in (judged, claimed):
        close_round(storage, seq)
        assert verdict_of(storage, seq) is None
    assert set(storage.verdicts.missing()) == {id_of(storage, seq) for seq in (judged, claimed)}
    assert sum(storage.verdicts.open_rounds().values()) == 0
    assert storage.verdicts.add(claimed, "open", NONE_SEEN, "{}") is None  # it comes too late
    assert storage.verdicts.claim(claimed, "open", MIN_REPORTS) is None
    assert verdict_of(storage, claimed) is None
    assert storage.verdicts.claim(claimed, "closed", MIN_REPORTS)
    storage.verdicts.release(claimed, claim)
    assert not storage.verdicts.claim(claimed, "closed", MIN_REPORTS)
    assert storage.verdicts.recovery(judged) is None
