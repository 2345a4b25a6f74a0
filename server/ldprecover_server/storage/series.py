"""Series: rounds, or forms, that ask the same thing again under ascending numbers.

At most one round or form of a series is open. All that opens one locks the row of the series first.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ldprecover.errors import ParameterError
from ldprecover.rounds.parameters import TEXTS
from ldprecover.sentences import counted
from ldprecover_server.errors import NameTakenError, NotNextError, SeriesNotFoundError
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

_MEMBERS = (
    sa.select(
        *(rounds.c[name] for name in ("series", "number", "state", "form")),
        *(rounds.c[name] for name in ("opened_at", "closes_at", "closed_at")),
        sa.func.coalesce(rounds.c.form, rounds.c.id).label("id"),
        sa.func.coalesce(forms.c.name, rounds.c.name).label("name"),
        NUMBER_OF_REPORTS.label("n"),
        series.c.last,
    )
    .join_from(rounds, series, series.c.name == rounds.c.series)
    .outerjoin(forms, forms.c.id == rounds.c.form)
    .where(NOT_GONE)
    .order_by(rounds.c.series, rounds.c.number.desc(), rounds.c.position)
)
"""All members, the newest of each series first."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """A round of a series whose last number is `last`; one of a form has its id and name."""

    series: str
    last: int
    id: str
    name: str
    number: int
    state: str
    n: int
    opened_at: str
    closes_at: str | None
    closed_at: str | None
    form: str | None


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
            last, newest = _lock(connection, name)
            if newest:
                _check_same(connection, newest, new, form)
                if newest[0].state == "open":
                    raise NotNextError(
                        f"number {last} of the series {name} is open: close it, or open the next"
                    )
            return self._open(connection, name, last + 1, new, form, key)

    def next(
        self,
        name: str,
        number: int,
        closes_at: str | None,
        key: str | None,
        check: Callable[[StoredRound], None],
    ) -> tuple[list[StoredRound], bool]:
        """Return the rounds of this number, and whether this call opened them.

        It closes what is open, and copies the newest round or form, unless `check` of the newest
        round raises. Raises SeriesNotFoundError, ParameterError for a `closes_at` that is not to
        come, and NotNextError for a number that is neither the last nor the next.
        """
        with self.database.write() as connection:
            last, newest = _lock(connection, name)
            if not newest:
                raise _not_found(name)
            check(newest[0])
            if number == last == newest[0].number:
                return newest, False
            if number != last + 1:
                raise NotNextError(f"the next number of the series {name} is {last + 1}")
            self.rounds.end(connection, newest, key)
            time = self.rounds.closing_time(closes_at)
            new = [_copy(connection, round, time) for round in newest]
            form = None
            if newest[0].form is not None:
                form = {"id": new_id("F"), "name": None, "title": newest[0].form_title}
            return self._open(connection, name, number, new, form, key), True

    def page(self, limit: int, after: str | None = None) -> list[Member]:
        """Return the members of at most `limit` series in the order of their names."""
        names = sa.select(rounds.c.series).where(rounds.c.series > (after or ""), NOT_GONE)
        return self._members(names.distinct().order_by(rounds.c.series).limit(limit))

    def members(self, name: str) -> list[Member]:
        """Return the members of a series, the newest first. Raises SeriesNotFoundError."""
        members = self._members([name])
        if not members:
            raise _not_found(name)
        return members

    def _members(self, names: Sequence[str] | sa.Select[Any]) -> list[Member]:
        with self.database.read() as connection:
            rows = connection.execute(_MEMBERS.where(rounds.c.series.in_(names)))
            return [Member(**{**row._mapping, "n": int(row.n)}) for row in rows]

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
        new = [{**each, "series": name, "number": number} for each in new]

        def add(default_name: str) -> list[StoredRound]:
            if form is None:
                round = {**new[0], "name": new[0]["name"] or default_name}
                return [self.rounds.add(connection, key, **round)]
            named = {**form, "name": form["name"] or default_name}
            return self.forms.add(connection, key, named, new)

        try:
            with connection.begin_nested():
                return add(f"{name}-{number}")
        except NameTakenError:
            return add(f"{name}-{secrets.token_hex(4)}")


def _lock(connection: sa.Connection, name: str) -> tuple[int, list[StoredRound]]:
    """Keep others from opening a round of the series; return its last number and newest rounds.

    The rounds are those of a form if it is of forms. It is 0, and there are no rounds, without it.
    """
    query = sa.select(series.c.last).where(series.c.name == name).with_for_update()
    last = connection.scalar(query) or 0
    number = sa.select(sa.func.max(rounds.c.number)).where(rounds.c.series == name, NOT_GONE)
    query = ROUNDS.where(rounds.c.series == name, rounds.c.number == number.scalar_subquery())
    rows = connection.execute(query.order_by(rounds.c.position))
    return last, [stored_round(row) for row in rows]


def _check_same(
    connection: sa.Connection,
    newest: Sequence[StoredRound],
    new: Sequence[Mapping[str, Any]],
    form: Mapping[str, Any] | None,
) -> None:
    """Raise ParameterError unless the new rounds ask the same as the newest of their series."""
    name = newest[0].series
    if (len(new), form is None) != (len(newest), newest[0].form is None):
        kind = "rounds" if newest[0].form is None else f"forms of {counted(len(newest), 'round')}"
        raise ParameterError(f"the series {name} is one of {kind}")
    for i, (old, each) in enumerate(zip(newest, new, strict=True)):
        differences = read_parameters(connection, old.seq).differences(each["parameters"])
        if old.question != each["question"]:
            differences.append("question")
        if differences:
            place = f"rounds.{i}: " if old.form else ""
            raise ParameterError(
                f"{place}{' and '.join(differences)} must be as in the series {name}; for others "
                "begin another series"
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


def _not_found(name: str) -> SeriesNotFoundError:
    return SeriesNotFoundError(f"no series has the name {name[:80]!r}")
