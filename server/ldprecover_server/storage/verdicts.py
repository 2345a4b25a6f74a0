"""Verdicts on rounds: what their recommended recovery concludes, and the recovery itself.

The verdict on an open round is of the reports that it had, so no recovery is stored with it. It is
computed again when the round has 5 % more reports and RENEWAL_SECONDS have passed. Closing the
round deletes it.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from ldprecover.protocols import PROTOCOLS
from ldprecover_server.storage.database import Repository, read_large_value
from ldprecover_server.storage.rounds import lock_state
from ldprecover_server.storage.schema import rounds, verdicts
from ldprecover_server.storage.tallies import NUMBER_OF_REPORTS

CLAIM_SECONDS = 60
"""How long other processes leave a claimed closed round alone. Of a longer computation a second
process stores an equal result."""

MIN_REPORTS = 1_000
"""The number of reports from which on an open round has a verdict."""
RENEWAL_SECONDS = 600
"""Least seconds between the computations of two verdicts on an open round."""
REPEAT_SECONDS = 300
"""Seconds after which a first near certain verdict is computed again, however many reports came."""

NEAR_CERTAIN = "near_certain"
ONCE = "near_certain_once"
"""In place of a `near_certain` that does not follow another one."""
ATTACKS = ("none_seen", "cannot_be_seen", "possible", ONCE, NEAR_CERTAIN)
"""What the last verdicts on a round say of an attack."""


class VerdictStore(Repository):
    """The verdicts of a database."""

    def missing(self) -> Sequence[str]:
        """Return the ids of the rounds whose verdict is missing or due.

        First the closed rounds without one, the round closed last first, then the open rounds, the
        largest growth first. Rounds without reports, and of protocols that are not loaded, are left
        out.
        """
        due_reports = sa.func.coalesce(verdicts.c.due_reports, MIN_REPORTS)
        is_missing = sa.and_(
            rounds.c.state == "closed", verdicts.c.verdict.is_(None), NUMBER_OF_REPORTS > 0
        )
        is_due = sa.and_(
            rounds.c.state == "open",
            due_reports <= NUMBER_OF_REPORTS,
            sa.func.coalesce(verdicts.c.due_at, 0) <= self._seconds(),
        )
        query = (
            sa.select(rounds.c.id)
            .outerjoin_from(rounds, verdicts, verdicts.c.round == rounds.c.seq)
            .where(rounds.c.protocol.in_(PROTOCOLS), sa.or_(is_missing, is_due))
            .order_by(
                rounds.c.closed_at.desc().nulls_last(),
                (NUMBER_OF_REPORTS * 1.0 / due_reports).desc(),
                rounds.c.seq.desc(),
            )
        )
        with self.database.read() as connection:
            return connection.scalars(query).all()

    def claim(self, seq: int, state: str, n: int) -> int | None:
        """Claim a round in this state with n reports; return what `release` ends.

        None if another process has it, if its verdict is there, or if its state has changed. The
        claim of an open round lasts until its next verdict is due. Raises RoundNotFoundError.
        """
        now = self._seconds()
        is_open = state == "open"
        due_at = now + (RENEWAL_SECONDS if is_open else CLAIM_SECONDS)
        values = {"due_at": due_at, "due_reports": -(-n * 21 // 20)}
        is_free = verdicts.c.due_at <= now
        if not is_open:
            is_free &= verdicts.c.verdict.is_(None)
        with self.database.write() as connection:
            if lock_state(connection, seq) == state and self._write(
                connection, seq, values, is_free
            ):
                return due_at
        return None

    def release(self, seq: int, claim: int) -> None:
        """End the claim of a round, unless another process has it by now."""
        is_claimed = sa.and_(verdicts.c.round == seq, verdicts.c.due_at == claim)
        release = sa.update(verdicts).where(is_claimed).values(due_at=0, due_reports=1)
        with self.database.write() as connection:
            connection.execute(release)

    def add(
        self, seq: int, state: str, attack: str, verdict: str, recovery: bytes | None = None
    ) -> tuple[str | None, str] | None:
        """Store a verdict in JSON with its word for the attack, and the recovery of a closed round.

        Return the words of ATTACKS before and now; None if the round is not in this state any more.
        Raises RoundNotFoundError.
        """
        values: dict[str, Any] = {"verdict": verdict, "recovery": recovery}
        with self.database.write() as connection:
            if lock_state(connection, seq) != state:
                return None
            query = sa.select(verdicts.c.attack).where(verdicts.c.round == seq)
            before: str | None = connection.scalar(query)
            if attack == NEAR_CERTAIN and before not in (ONCE, NEAR_CERTAIN):
                attack = ONCE
                values |= {"due_at": self._seconds() + REPEAT_SECONDS, "due_reports": 1}
            self._write(connection, seq, values | {"attack": attack}, sa.true())
        return before, attack

    def recovery(self, seq: int) -> bytes | None:
        """Return the recovery of a round; None if none is stored."""
        with self.database.read() as connection:
            return read_large_value(connection, verdicts.c.recovery, verdicts.c.round == seq)

    def open_rounds(self) -> dict[str, int]:
        """Return the number of open rounds by each word of ATTACKS."""
        query = (
            sa.select(verdicts.c.attack, sa.func.count())
            .join_from(verdicts, rounds, rounds.c.seq == verdicts.c.round)
            .where(rounds.c.state == "open", verdicts.c.attack.in_(ATTACKS))
            .group_by(verdicts.c.attack)
        )
        with self.database.read() as connection:
            return dict.fromkeys(ATTACKS, 0) | dict(connection.execute(query).all())

    def _seconds(self) -> int:
        return int(self.clock().timestamp())

    def _write(
        self,
        connection: sa.Connection,
        seq: int,
        values: dict[str, Any],
        condition: sa.ColumnElement[bool],
    ) -> bool:
        """Insert or update the row of a round; return False if it exists without `condition`."""
        insert = self.database.insert(verdicts).values(round=seq, **values)
        upsert = insert.on_conflict_do_update(
            index_elements=["round"], set_=values, where=condition
        )
        return connection.scalar(upsert.returning(verdicts.c.round)) is not None
