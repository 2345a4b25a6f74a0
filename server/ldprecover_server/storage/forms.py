"""Forms: rounds that open and close together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ldprecover_server.errors import FormNotFoundError, NameTakenError
from ldprecover_server.storage.database import Repository
from ldprecover_server.storage.rounds import (
    ROUNDS,
    RoundStore,
    StoredRound,
    find_named,
    stored_round,
)
from ldprecover_server.storage.schema import forms, rounds


@dataclass(eq=False)
class FormStore(Repository):
    """The forms of a database."""

    rounds: RoundStore

    def open(
        self,
        form: Mapping[str, Any],
        new: Sequence[Mapping[str, Any]],
        key: str | None = None,
    ) -> list[StoredRound]:
        """Open a form with all of its rounds, or nothing; return the rounds.

        `form` has its id, name and title, and `new` the arguments of `RoundStore.open` for each
        round, whose name may be None: then it is that of the form with the round's number. Raises
        NameTakenError.
        """
        with self.database.write() as connection:
            return self.add(connection, key, form, new)

    def add(
        self,
        connection: sa.Connection,
        key: str | None,
        form: Mapping[str, Any],
        new: Sequence[Mapping[str, Any]],
    ) -> list[StoredRound]:
        """Open a form, as `open`, in this transaction."""
        name = form["name"]
        insert = self.database.insert(forms).on_conflict_do_nothing(index_elements=["name"])
        # One form at a time: two that wait for names of each other would be a deadlock. The lock is
        # that of no round, as each has a `seq` above 0.
        self.database.block_commits(connection, 0)
        if connection.scalar(insert.returning(forms.c.seq), {**form, "size": len(new)}) is None:
            raise NameTakenError(f"a form named {name!r} exists")
        for i, each in enumerate(new):
            columns = {**each, "name": each["name"] or f"{name}-{i + 1}"}
            self.rounds.insert(connection, **columns, form=form["id"], position=i)
        self.rounds.acts.add(connection, key, "open form", name)
        return find_form(connection, form["id"])

    def find(self, identifier: str) -> list[StoredRound]:
        """Return the rounds of a form in order. Raises FormNotFoundError."""
        with self.database.read() as connection:
            return find_form(connection, identifier)

    def page(self, limit: int, before: str | None) -> list[StoredRound]:
        """Return the rounds of forms, the latest form first. Raises FormNotFoundError."""
        ids = sa.select(forms.c.id).order_by(forms.c.seq.desc()).limit(limit)
        with self.database.read() as connection:
            if before is not None:
                form = find_form(connection, before)[0].form
                seq = sa.select(forms.c.seq).where(forms.c.id == form).scalar_subquery()
                ids = ids.where(forms.c.seq < seq)
            query = ROUNDS.where(rounds.c.form.in_(ids))
            query = query.order_by(forms.c.seq.desc(), rounds.c.seq)
            return [stored_round(row) for row in connection.execute(query)]

    def close(self, identifier: str, key: str | None = None) -> list[StoredRound]:
        """Close all rounds of a form; return them. Raises FormNotFoundError."""
        with self.database.write() as connection:
            form = find_form(connection, identifier)
            self.rounds.end(connection, form, key)
            return find_form(connection, identifier)


def find_form(connection: sa.Connection, identifier: str) -> list[StoredRound]:
    """Return the rounds of a form by its id or name, in order, which is also that of `seq`.

    Raises FormNotFoundError.
    """
    if form := find_named(connection, forms, identifier):
        return form
    raise FormNotFoundError(f"no form has the id or name {identifier[:80]!r}")
