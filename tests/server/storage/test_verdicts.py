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
from ldprecover_server.storage.schema import rounds, verdicts
from ldprecover_server.storage.verdicts import CLAIM_SECONDS

REPORTS = Submitted(b"reports", (0, 1, 2))


@pytest.fixture
def storage(open_storage: OpenStorage, fresh: str) -> Storage:
    return open_storage(fresh)


def closed_round(storage: Storage, *submissions: Submitted) -> int:
    seq = open_round(storage)
    commit(storage, seq, *(submissions or (REPORTS,)))
    close_round(storage, seq)
    return seq


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
    storage.verdicts.add(first, "{}", b"packed")
    assert storage.verdicts.missing() == [id_of(storage, second)]


def test_one_process_claims_a_round_for_a_while(open_storage: OpenStorage, fresh: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    storage = open_storage(fresh, clock=lambda: now)
    seq = closed_round(storage)
    assert storage.verdicts.claim(seq)
    assert not storage.verdicts.claim(seq)
    assert verdict_of(storage, seq) is None
    assert storage.verdicts.missing() == [id_of(storage, seq)]
    now += timedelta(seconds=CLAIM_SECONDS)
    assert storage.verdicts.claim(seq)
    storage.verdicts.add(seq, "{}", b"packed")
    now += timedelta(seconds=CLAIM_SECONDS)
    assert not storage.verdicts.claim(seq)
    assert verdict_of(storage, seq) == "{}"


def test_released_round_is_free_and_a_verdict_stays(storage: Storage) -> None:
    seq = closed_round(storage)
    storage.verdicts.release(seq)  # without a claim
    assert storage.verdicts.claim(seq)
    assert not storage.verdicts.claim(seq)
    storage.verdicts.release(seq)
    assert storage.verdicts.claim(seq)
    storage.verdicts.add(seq, "{}", b"packed")
    storage.verdicts.release(seq)
    assert not storage.verdicts.claim(seq)
    assert verdict_of(storage, seq) == "{}"
    assert storage.verdicts.recovery(seq) == b"packed"


def test_verdict_is_deleted_with_its_round(storage: Storage) -> None:
    seq, other = closed_round(storage), closed_round(storage)
    for each in (seq, other):
        storage.verdicts.add(each, "{}", b"packed")
    storage.deletion.delete(name_of(storage, seq))
    with storage.database.read() as connection:
        assert connection.scalars(sa.select(verdicts.c.round)).all() == [other]
    with pytest.raises(RoundNotFoundError):
        storage.verdicts.add(seq, "{}", b"packed")
    with pytest.raises(RoundNotFoundError):
        storage.verdicts.claim(seq)


def test_check_and_recovery_of_a_large_result(storage: Storage) -> None:
    seq = closed_round(storage)
    packed = bytes(range(256)) * 10_000
    storage.verdicts.add(seq, "{}", packed)
    assert storage.verdicts.recovery(seq) == packed
    assert storage.check() == []
