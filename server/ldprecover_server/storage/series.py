"""Series: rounds, or forms, that ask the same thing again under ascending numbers.

At most one round or form of a series is open. All that opens one locks the row of the series first.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ldprecover.errors import ParameterError
from ldprecover.rounds.parameters import TEXTS
from ldprecover_server.errors import NotNextError, SeriesNotFoundError
from ldprecover_server.storage.database import Repository
from ldprecover_server.storage.forms import FormStore
from ldprecover_server.storage.rounds import (
    ROUNDS,
    RoundStore,
    StoredRound,
    new_id,
    read_parameters,
    stored_round,
)
from ldprecover_server.storage.schema import NOT_GONE, forms, rounds, series
from ldprecover_server.storage.tallies import NUMBER_OF_REPORTS

_ENTRIES = (
    sa.select(
        rounds.c.series,
        series.c.last,
        rounds.c.number,
        sa.func.min(rounds.c.form).label("form"),
        sa.func.min(sa.func.coalesce(forms.c.id, rounds.c.id)).label("id"),
        sa.func.min(sa.func.coalesce(forms.c.name, rounds.c.name)).label("name"),
        sa.func.min(rounds.c.state).label("state"),
        sa.func.sum(NUMBER_OF_REPORTS).label("n"),
        sa.func.min(rounds.c.opened_at).label("opened_at"),
        sa.func.min(rounds.c.closes_at).label("closes_at"),
        sa.func.max(rounds.c.closed_at).label("closed_at"),
    )
    .join_from(rounds, series, series.c.name == rounds.c.series)
    .outerjoin(forms, forms.c.id == rounds.c.form)
    .where(NOT_GONE)
    .group_by(rounds.c.series, series.c.last, rounds.c.number)
    .order_by(rounds.c.series, rounds.c.number.desc())
)


@dataclass(frozen=True, kw_only=True)
class SeriesEntry:
    """A round or form of a series; `n` counts the reports of all rounds of a form.

    `last` is the last number of the series, also if that round was deleted. `form` is None for a
    round.
    """

    series: str
    last: int
    number: int
    form: str | None
    id: str
    name: str
    state: str
    n: int
    opened_at: str
    closes_at: str | None
    closed_at: str | None


@dataclass(eq=False)
class SeriesStore(Repository):
    """The series of a database. One without rounds is not found, but keeps its last number."""

    rounds: RoundStore
    forms: FormStore

    def open(
        self,
        name: str,
        new: Sequence[Mapping[str, Any]],
        form: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> list[StoredRound]:
        """Open the next round of a series, or the next form; return its rounds.

        `new` and `form` have the arguments of `RoundStore.open` and `FormStore.open`, with names
        that are None for the default. The first round or form begins the series. Raises
        ParameterError that says how the new one differs, NotNextError while another is open,
        and NameTakenError.
        """
        insert = self.database.insert(series).on_conflict_do_nothing(index_elements=["name"])
        with self.database.write() as connection:
            connection.execute(insert, {"name": name, "last": 0})
            number = _lock(connection, name) + 1
            if newest := _newest(connection, name):
                _check_same(connection, newest, new, is_form=form is not None)
                if newest[0].state == "open":
                    raise NotNextError(
                        f"number {newest[0].number} of the series {name} is open: close it first, "
                        f"or post to /series/{name}/next"
                    )
            return self._open(connection, name, number, new, form, key)

    def next(
        self, name: str, number: int, closes_at: str | None = None, key: str | None = None
    ) -> tuple[list[StoredRound], bool]:
        """Return the rounds of this number, and whether this call opened them.

        It closes what is open, and copies the newest round or form. Raises SeriesNotFoundError,
        ParameterError for a `closes_at` that is not to come, and NotNextError for a number that is
        neither the last nor the next.
        """
        with self.database.write() as connection:
            last = _lock(connection, name)
            newest = _newest(connection, name)
            if not newest:
                raise _not_found(name)
            if number == last == newest[0].number:
                return newest, False
            if number != last + 1:
                raise NotNextError(f"the next number of the series {name} is {last + 1}")
            self._close(connection, newest, key)
            time = self.rounds.closing_time(closes_at)
            new = [_copy(connection, round, time) for round in newest]
            form = None
            if newest[0].form is not None:
                form = {"id": new_id("F"), "name": None, "title": newest[0].form_title}
            return self._open(connection, name, number, new, form, key), True

    def entries(self, name: str | None = None) -> list[SeriesEntry]:
        """Return the rounds or forms of a series, the newest first, or those of all series.

        Raises SeriesNotFoundError.
        """
        query = _ENTRIES if name is None else _ENTRIES.where(rounds.c.series == name)
        with self.database.read() as connection:
            rows = connection.execute(query)
            listed = [SeriesEntry(**{**row._mapping, "n": int(row.n)}) for row in rows]
        if name is not None and not listed:
            raise _not_found(name)
        return listed

    def _open(
        self,
        connection: sa.Connection,
        name: str,
        number: int,
        new: Sequence[Mapping[str, Any]],
        form: Mapping[str, Any] | None,
        key: str | None,
    ) -> list[StoredRound]:
        connection.execute(sa.update(series).where(series.c.name == name).values(last=number))
        default_name = _free_name(connection, name, number, len(new))
        new = [{**each, "series": name, "number": number} for each in new]
        if form is None:
            round = {**new[0], "name": new[0]["name"] or default_name}
            return [self.rounds.add(connection, key, **round)]
        columns = {**form, "name": form["name"] or default_name}
        return self.forms.add(connection, key, **columns, new=new)

    def _close(
        self, connection: sa.Connection, newest: Sequence[StoredRound], key: str | None
    ) -> None:
        are_closed = [self.rounds.end(connection, round) for round in newest]
        if any(are_closed):
            first = newest[0]
            kind, name = ("round", first.name) if first.form is None else ("form", first.form_name)
            self.rounds.acts.add(connection, key, f"close {kind}", str(name))


def _lock(connection: sa.Connection, name: str) -> int:
    """Keep others from opening a round of the series; return its last number, 0 without one."""
    query = sa.select(series.c.last).where(series.c.name == name).with_for_update()
    return connection.scalar(query) or 0


def _newest(connection: sa.Connection, name: str) -> list[StoredRound]:
    """Return the newest round of a series that is left, or the rounds of the newest form."""
    query = ROUNDS.where(rounds.c.series == name)
    number = sa.select(sa.func.max(rounds.c.number)).where(rounds.c.series == name, NOT_GONE)
    query = query.where(rounds.c.number == number.scalar_subquery()).order_by(rounds.c.position)
    return [stored_round(row) for row in connection.execute(query)]


def _check_same(
    connection: sa.Connection,
    newest: Sequence[StoredRound],
    new: Sequence[Mapping[str, Any]],
    *,
    is_form: bool,
) -> None:
    """Raise ParameterError unless the new rounds ask the same as the newest of their series."""
    series = newest[0].series
    if is_form != (newest[0].form is not None):
        kind = "rounds, not of forms" if is_form else "forms, not of rounds"
        raise ParameterError(f"series: {series} is a series of {kind}")
    if len(new) != len(newest):
        raise ParameterError(f"rounds: a form of the series {series} has {len(newest)} of them")
    for i, (old, each) in enumerate(zip(newest, new, strict=True)):
        differences: list[str] = []
        if old.digest != each["parameters"].digest:
            differences = read_parameters(connection, old.seq).differences(each["parameters"])
        if old.question != each["question"]:
            differences.append("question")
        if differences:
            place = f"rounds.{i}: " if is_form else ""
            raise ParameterError(
                f"{place}{' and '.join(differences)} must be as in the series {series}; another "
                "question or other items need a series with another name"
            )


def _copy(connection: sa.Connection, round: StoredRound, closes_at: str | None) -> dict[str, Any]:
    """Return the arguments that open a round like this one."""
    columns = ("access", "read_access", "retention", *TEXTS)
    return {
        "id": new_id("R"),
        "name": None,
        "parameters": read_parameters(connection, round.seq),
        "closes_at": closes_at,
        **{column: getattr(round, column) for column in columns},
    }


def _free_name(connection: sa.Connection, name: str, number: int, size: int) -> str:
    """Return the default name of a round, or of a form whose rounds are named after it."""
    default = f"{name}-{number}"
    names = [default, *(f"{default}-{i + 1}" for i in range(size))]
    queries = (sa.select(table.c.seq).where(table.c.name.in_(names)) for table in (rounds, forms))
    is_taken = connection.execute(sa.union_all(*queries)).first() is not None
    return f"{name}-{secrets.token_hex(4)}" if is_taken else default


def _not_found(name: str) -> SeriesNotFoundError:
    return SeriesNotFoundError(f"no series has the name {name[:80]!r}")
