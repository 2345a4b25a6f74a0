"""Rounds: opened, found and closed."""

import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any

import msgspec
import sqlalchemy as sa

from ldprecover.errors import ParameterError
from ldprecover.protocols import PROTOCOLS, FrequencyOracle, frequency_oracle
from ldprecover.reports.tally import Tally
from ldprecover.rounds.export import RoundExport
from ldprecover.rounds.parameters import TEXTS, RoundParameters
from ldprecover_server.errors import (
    NameTakenError,
    PluginNotLoadedError,
    RoundDamagedError,
    RoundNotFoundError,
)
from ldprecover_server.storage.acts import ActStore
from ldprecover_server.storage.database import Database, Repository, read_large_value
from ldprecover_server.storage.schema import (
    NOT_GONE,
    forms,
    labels,
    rounds,
    tallies,
    verdicts,
)
from ldprecover_server.storage.tallies import NUMBER_OF_REPORTS, sum_tallies

CURRENT = "current"
"""Identifier of the round opened last that belongs to no form."""

ROUNDS = (
    sa.select(
        rounds,
        NUMBER_OF_REPORTS.label("n"),
        verdicts.c.verdict,
        forms.c.name.label("form_name"),
        forms.c.title.label("form_title"),
        forms.c.size.label("form_size"),
    )
    .outerjoin_from(rounds, verdicts, verdicts.c.round == rounds.c.seq)
    .outerjoin(forms, forms.c.id == rounds.c.form)
    .where(NOT_GONE)
)
"""All rounds, with what belongs to them."""

_PLACE = ("series", "number")
_PARAMETERS = ("protocol", "epsilon", "parameter", "practice")


@dataclass(frozen=True, kw_only=True)
class StoredRound:
    """A round without its labels, as it was when it was read.

    `seq` orders rounds by their opening. The labels take `labels_bytes` as ASCII JSON. `form` is
    the id of the form that the round belongs to, `position` its index among the form's rounds, and
    `form_size` their number; all that is of a form is None without one. `number` is that of the
    round, or of its form, in its `series`; both are None without one. None of these changes, but
    `state`, `closed_at`, `n`, `verdict`, which is in JSON, and `seed`, which splits the reports of
    a closed round for certificates, do.
    """

    seq: int
    id: str
    name: str
    protocol: str
    epsilon: float
    parameter: int | None
    p: float
    q: float
    domain_size: int
    labels_bytes: int
    practice: bool
    digest: str
    question: str | None
    title: str | None
    thanks: str | None
    language: str | None
    access: str
    read_access: str
    retention: str
    form: str | None
    form_name: str | None
    form_title: str | None
    form_size: int | None
    position: int | None
    series: str | None
    number: int | None
    opened_at: str
    closes_at: str | None
    state: str
    closed_at: str | None
    seed: str | None
    n: int
    verdict: str | None

    @cached_property
    def oracle(self) -> FrequencyOracle:
        """The round's frequency oracle. Raises PluginNotLoadedError."""
        return oracle_of(self)

    def export(self, parameters: RoundParameters, tally: Tally) -> RoundExport:
        """Return the round with this tally, to estimate and recover without the server."""
        columns = {name: getattr(self, name) for name in ("name", "seed", *TEXTS, *_PLACE)}
        return RoundExport(round=self.id, parameters=parameters, tally=tally, **columns)


@dataclass(eq=False)
class RoundStore(Repository):
    """The rounds of a database. A change by a caller has the name of the caller's `key`."""

    acts: ActStore

    def open(
        self,
        id: str,
        name: str,
        parameters: RoundParameters,
        *,
        key: str | None = None,
        **columns: Any,
    ) -> StoredRound:
        """Open a round; `columns` are its access, read access, retention, texts and `closes_at`.

        Raises NameTakenError.
        """
        with self.database.write() as connection:
            return self.add(connection, key, id=id, name=name, parameters=parameters, **columns)

    def add(self, connection: sa.Connection, key: str | None, **new: Any) -> StoredRound:
        """Open a round, as `open`, in this transaction."""
        self.insert(connection, **new)
        self.acts.add(connection, key, "open round", new["name"])
        return find_round(connection, new["id"])

    def insert(
        self,
        connection: sa.Connection,
        id: str,
        name: str,
        parameters: RoundParameters,
        **columns: Any,
    ) -> None:
        """Insert a round, as `open`, in this transaction, without an act."""
        items, oracle = msgspec.json.encode(parameters.items), parameters.oracle
        row: dict[str, Any] = {
            "id": id,
            "name": name,
            **{column: getattr(parameters, column) for column in _PARAMETERS},
            "p": oracle.p,
            "q": oracle.q,
            "domain_size": oracle.domain_size,
            "labels_bytes": len(json.dumps(parameters.items)),
            "digest": parameters.digest,
            "access": "open",
            "read_access": "public",
            "retention": "forever",
            "state": "open",
            "opened_at": self._now(),
            **columns,
        }
        insert = self.database.insert(rounds).on_conflict_do_nothing(index_elements=["name"])
        seq = connection.scalar(insert.returning(rounds.c.seq), row)
        if seq is None:
            raise NameTakenError(f"a round named {name!r} exists")
        connection.execute(sa.insert(labels), {"round": seq, "items": items})

    def find(self, identifier: str) -> StoredRound:
        """Return the round with an id or name, or the `current` one. Raises RoundNotFoundError."""
        with self.database.read() as connection:
            return find_round(connection, identifier)

    def page(self, limit: int, before: str | None = None) -> list[StoredRound]:
        """Return rounds, the latest first; the page starts after the round with the id `before`."""
        query = ROUNDS.order_by(rounds.c.seq.desc()).limit(limit)
        with self.database.read() as connection:
            if before is not None:
                query = query.where(rounds.c.seq < find_round(connection, before).seq)
            return [stored_round(row) for row in connection.execute(query)]

    def labels(self, seq: int) -> bytes:
        """Return a round's labels as a JSON array in UTF-8. Raises as `parameters` does."""
        return msgspec.json.encode(self.parameters(seq).items)

    def parameters(self, seq: int) -> RoundParameters:
        """Return a round's parameters.

        Raises RoundNotFoundError, PluginNotLoadedError and RoundDamagedError.
        """
        with self.database.read() as connection:
            return read_parameters(connection, seq)

    def in_series(self, round: StoredRound, numbers: range) -> list[StoredRound]:
        """Return the rounds of a round's series with these numbers that exist, in order.

        Of forms they are the rounds at the round's position.
        """
        query = ROUNDS.where(
            rounds.c.series == round.series,
            rounds.c.number.between(numbers.start, numbers.stop - 1),
            rounds.c.position.is_not_distinct_from(round.position),
        )
        with self.database.read() as connection:
            rows = connection.execute(query.order_by(rounds.c.number))
            return [stored_round(row) for row in rows]

    def have_same_items(self, seq: int, other: int) -> bool:
        """Return whether two rounds have the same items; False if one was deleted."""
        ours, theirs = labels.alias(), labels.alias()
        query = sa.select(ours.c.round).where(
            ours.c.round == seq, theirs.c.round == other, ours.c["items"] == theirs.c["items"]
        )
        with self.database.read() as connection:
            return connection.scalar(query) is not None

    def close(self, identifier: str, key: str | None = None) -> StoredRound:
        """Close a round: no later commit adds a report to it."""
        with self.database.write() as connection:
            round = find_round(connection, identifier)
            self.end(connection, [round], key)
            return find_round(connection, round.id)

    def end(self, connection: sa.Connection, ended: Sequence[StoredRound], key: str | None) -> None:
        """Close a round, or those of a form, in this transaction."""
        are_closed = [self._end(connection, round) for round in ended]
        if any(are_closed):
            act, subject = "close round", ended[0].name
            if ended[0].form_name is not None:
                act, subject = "close form", ended[0].form_name
            self.acts.add(connection, key, act, subject)

    def closing_time(self, closes_at: str | None) -> str | None:
        """Return a time to close in UTC, as it is stored.

        Raises ParameterError unless it is a time to come, with an offset.
        """
        if closes_at is None:
            return None
        with suppress(ValueError, OverflowError):
            time = datetime.fromisoformat(closes_at.upper())
            if time.tzinfo is not None and time > self.clock():
                return time.astimezone(UTC).isoformat(timespec="seconds")
        raise ParameterError(
            "closes_at must be a time to come, with an offset, such as 2030-01-31T18:00:00+01:00; "
            f"not {closes_at[:40]!r}"
        )

    def close_due(self) -> None:
        """Close the rounds whose time to close has come, those of a form together."""
        is_due = (rounds.c.state == "open") & (rounds.c.closes_at <= self._now())
        with self.database.write() as connection:
            for row in connection.execute(ROUNDS.where(is_due).order_by(rounds.c.seq)).all():
                self._end(connection, stored_round(row))

    def _end(self, connection: sa.Connection, round: StoredRound) -> bool:
        """Close a round, without an act; return False if it is closed."""
        if round.state != "open":
            return False
        # After the last report: nobody may choose reports by the split.
        seed = secrets.token_hex(16)
        values = {"state": "closed", "closed_at": self._now(), "seed": seed}
        is_open = rounds.c.state == "open"
        is_closed = end_round(self.database, connection, round.seq, is_open, values)
        # The verdict on the open round is not that of all its reports.
        if is_closed:
            reset = sa.update(verdicts).where(verdicts.c.round == round.seq)
            connection.execute(reset.values(due_at=0, verdict=None))
        return is_closed

    def tally(self, seqs: Sequence[int], size: int) -> Tally:
        """Return the tally of rounds over all processes; its summary has `size` counts.

        Raises RoundNotFoundError.
        """
        with self.database.read() as connection:
            return sum_tallies(connection, seqs, size)


def new_id(kind: str) -> str:
    """Return a new id that begins with R for a round and F for a form.

    An id starts with a capital and a name cannot, so neither is mistaken for the other.
    """
    return f"{kind}{secrets.token_hex(12)}"


def lock_state(connection: sa.Connection, seq: int) -> str:
    """Keep a round in its state until the transaction ends; return it.

    Raises RoundNotFoundError.
    """
    query = sa.select(rounds.c.state).where(rounds.c.seq == seq, NOT_GONE)
    state: str | None = connection.scalar(query.with_for_update(read=True))
    if state is None:
        raise RoundNotFoundError("the round was deleted")
    return state


def end_round(
    database: Database,
    connection: sa.Connection,
    seq: int,
    condition: sa.ColumnElement[bool],
    values: Mapping[str, Any],
) -> bool:
    """Apply `values` to the round if `condition` holds; return whether it did.

    Once the transaction commits, no later commit adds to the round, if `values` change its state:

    - A commit in one statement does not lock the round's row, because Postgres writes a MultiXact
      for every set of lockers. It requires this process's token in the tally row; clearing the
      tokens here makes it fail. Those under way are waited for, and new ones are blocked.
    - A commit in several statements locks the round's row, which the update waits for.
    """
    database.block_commits(connection, seq)
    update = sa.update(rounds).where(rounds.c.seq == seq, condition).values(values)
    is_applied = connection.execute(update).rowcount == 1
    connection.execute(sa.update(tallies).where(tallies.c.round == seq).values(token=None))
    return is_applied


def oracle_of(round: Any) -> FrequencyOracle:
    """Return the oracle of a StoredRound or a row of `rounds`.

    Raises PluginNotLoadedError and RoundDamagedError.
    """
    kind = PROTOCOLS.get(round.protocol)
    if kind is None:
        raise PluginNotLoadedError(
            f"this server has not loaded the plugin {round.protocol!r}, the protocol of the round"
        )
    parameters = (round.protocol, round.epsilon, round.domain_size, round.parameter)
    try:
        oracle = _shared_oracle(kind, *parameters)
    except ParameterError as error:
        raise RoundDamagedError(
            f"the stored parameters of the round cannot be used: {error}"
        ) from None
    if (oracle.p, oracle.q) != (round.p, round.q):
        raise RoundDamagedError("the stored parameters of the round do not have its p and q")
    return oracle


@lru_cache(maxsize=256)
def _shared_oracle(kind: type[FrequencyOracle], *parameters: Any) -> FrequencyOracle:
    """Return an oracle of this class, whose cached properties take milliseconds to compute."""
    return frequency_oracle(*parameters)


def decode_labels(items: bytes) -> list[str]:
    """Return the labels of a JSON array."""
    return msgspec.json.decode(items, type=list[str])


def read_parameters(connection: sa.Connection, seq: int) -> RoundParameters:
    """Return a round's parameters. Raises as `RoundStore.parameters` does."""
    row = connection.execute(sa.select(rounds).where(rounds.c.seq == seq, NOT_GONE)).one_or_none()
    if row is None:
        raise RoundNotFoundError("the round was deleted")
    items = read_large_value(connection, labels.c["items"], labels.c.round == seq)
    return parameters_of(row, items)


def parameters_of(round: Any, items: bytes | None) -> RoundParameters:
    """Return the parameters of a row of `rounds` and its labels in JSON, checked by its digest.

    Raises PluginNotLoadedError and RoundDamagedError.
    """
    oracle = oracle_of(round)
    try:
        parameters = RoundParameters(
            round.protocol,
            round.epsilon,
            tuple(decode_labels(items or b"")),
            parameter=round.parameter,
            stored=True,
            practice=round.practice,
        )
    except (ParameterError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RoundDamagedError(f"the stored labels of the round cannot be used: {error}") from None
    if parameters.digest != round.digest or parameters.oracle != oracle:
        raise RoundDamagedError("the stored parameters of the round do not have its digest")
    return parameters


def find_round(connection: sa.Connection, identifier: str) -> StoredRound:
    """Return the round with an id or name, or the current one, which belongs to no form.

    Raises RoundNotFoundError.
    """
    if identifier == CURRENT:
        latest = ROUNDS.where(rounds.c.form.is_(None)).order_by(rounds.c.seq.desc()).limit(1)
        row = connection.execute(latest).one_or_none()
        if row is None:
            raise RoundNotFoundError("no round has been opened")
        return stored_round(row)
    if named := find_named(connection, rounds, identifier):
        return named[0]
    raise RoundNotFoundError(f"no round has the id or name {identifier[:80]!r}")


def find_named(connection: sa.Connection, table: sa.Table, identifier: str) -> list[StoredRound]:
    """Return the rounds of the row in `table` with this id or name, in the order of `seq`."""
    if "\0" in identifier:  # Postgres accepts no text with it, and no identifier has it
        return []
    matches = sa.or_(table.c.id == identifier, table.c.name == identifier)
    rows = connection.execute(ROUNDS.where(matches).order_by(rounds.c.seq))
    return [stored_round(row) for row in rows]


def stored_round(row: Any) -> StoredRound:
    """Return the round of a row of ROUNDS."""
    names = [name for name in StoredRound.__dataclass_fields__ if name != "n"]
    return StoredRound(**{name: getattr(row, name) for name in names}, n=int(row.n))
