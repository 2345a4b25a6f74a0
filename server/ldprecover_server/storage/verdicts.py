"""Verdicts on closed rounds: what their recommended recovery concludes, and the recovery itself."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from ldprecover.protocols import PROTOCOLS
from ldprecover_server.storage.database import Repository, read_large_value
from ldprecover_server.storage.rounds import lock_round
from ldprecover_server.storage.schema import rounds, verdicts
from ldprecover_server.storage.tallies import NUMBER_OF_REPORTS

CLAIM_SECONDS = 60
"""How long other processes leave a claimed round alone. Of a longer computation a second process
stores an equal result."""


class VerdictStore(Repository):
    """The verdicts of a database."""

    def missing(self) -> Sequence[str]:
        """Return the ids of the closed rounds without a verdict, the round closed last first.

        Rounds without reports, and of protocols that are not loaded, are left out.
        """
        has_verdict = sa.exists().where(
            verdicts.c.round == rounds.c.seq, verdicts.c.verdict.is_not(None)
        )
        query = sa.select(rounds.c.id).where(
            rounds.c.state == "closed",
            rounds.c.protocol.in_(PROTOCOLS),
            NUMBER_OF_REPORTS > 0,
            ~has_verdict,
        )
        with self.database.read() as connection:
            return connection.scalars(
                query.order_by(rounds.c.closed_at.desc(), rounds.c.seq.desc())
            ).all()

    def claim(self, seq: int) -> bool:
        """Claim a round for CLAIM_SECONDS; return False if another process has it.

        Also if its verdict is there. Raises RoundNotFoundError.
        """
        now = int(self.clock().timestamp())
        values = {"claimed_until": now + CLAIM_SECONDS}
        is_free = sa.and_(verdicts.c.verdict.is_(None), verdicts.c.claimed_until <= now)
        return self._write(seq, values, is_free)

    def release(self, seq: int) -> None:
        """End the claim of a round; a verdict that is there stays."""
        is_claimed = sa.and_(verdicts.c.round == seq, verdicts.c.verdict.is_(None))
        with self.database.write() as connection:
            connection.execute(sa.update(verdicts).where(is_claimed).values(claimed_until=0))

    def add(self, seq: int, verdict: str, recovery: bytes) -> None:
        """Store a verdict in JSON, and the recovery. Raises RoundNotFoundError."""
        values = {"claimed_until": 0, "verdict": verdict, "recovery": recovery}
        self._write(seq, values, sa.true())

    def recovery(self, seq: int) -> bytes | None:
        """Return the recovery of a round; None if none is stored."""
        with self.database.read() as connection:
            return read_large_value(connection, verdicts.c.recovery, verdicts.c.round == seq)

    def _write(self, seq: int, values: dict[str, Any], condition: sa.ColumnElement[bool]) -> bool:
        """Insert or update the row of a round; return False if it exists without `condition`."""
        insert = self.database.insert(verdicts).values(round=seq, **values)
        upsert = insert.on_conflict_do_update(
            index_elements=["round"], set_=values, where=condition
        )
        with self.database.write() as connection:
            lock_round(connection, seq)
            return connection.scalar(upsert.returning(verdicts.c.round)) is not None
