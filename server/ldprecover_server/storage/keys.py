"""Hashes of access keys, and the secret behind tickets."""

from collections.abc import Collection
from dataclasses import dataclass
from secrets import token_bytes

import sqlalchemy as sa

from ldprecover_server.errors import KeyNotFoundError, NameTakenError
from ldprecover_server.storage.acts import ActStore
from ldprecover_server.storage.database import Repository
from ldprecover_server.storage.schema import access_keys, secrets

_TICKETS = "tickets"
_IS_ACTIVE = access_keys.c.revoked_at.is_(None)


@dataclass(frozen=True)
class AccessKey:
    """A key's metadata; the key itself is shown once, when it is created."""

    name: str
    scope: str
    created_at: str
    revoked_at: str | None


@dataclass(frozen=True)
class HashedKey:
    """The hash of a key that is not revoked."""

    name: str
    scope: str
    hash: bytes


@dataclass(eq=False)
class Keys(Repository):
    """The access keys of a database. Submission keys are elsewhere."""

    acts: ActStore

    def find(self, hashes: Collection[bytes]) -> dict[bytes, HashedKey]:
        """Return the keys with these hashes that are not revoked, by hash."""
        columns = (access_keys.c.name, access_keys.c.scope, access_keys.c.hash)
        query = sa.select(*columns).where(access_keys.c.hash.in_(hashes), _IS_ACTIVE)
        with self.database.read() as connection:
            return {row.hash: HashedKey(*row) for row in connection.execute(query)}

    def has_admin(self) -> bool:
        """Return whether an admin key is not revoked."""
        query = sa.select(access_keys.c.name).where(access_keys.c.scope == "admin", _IS_ACTIVE)
        with self.database.read() as connection:
            return connection.scalar(query.limit(1)) is not None

    def all(self) -> list[AccessKey]:
        """Return all keys by name, revoked keys included."""
        with self.database.read() as connection:
            rows = connection.execute(sa.select(access_keys).order_by(access_keys.c.name))
            return [AccessKey(row.name, row.scope, row.created_at, row.revoked_at) for row in rows]

    def revoke(self, name: str) -> None:
        """Revoke a key for good. Raises KeyNotFoundError if it is unknown or revoked."""
        revocation = sa.update(access_keys).where(access_keys.c.name == name, _IS_ACTIVE)
        with self.database.write() as connection:
            if not connection.execute(revocation.values(revoked_at=self._now())).rowcount:
                raise KeyNotFoundError("no key has this name, or it is revoked")
            self.acts.add(connection, None, "revoke key", name)

    def add(self, name: str, scope: str, hash: bytes) -> None:
        """Store the hash of a key. Raises NameTakenError."""
        row = {"name": name, "scope": scope, "hash": hash, "created_at": self._now()}
        insert = self.database.insert(access_keys).on_conflict_do_nothing(index_elements=["name"])
        with self.database.write() as connection:
            if connection.scalar(insert.returning(access_keys.c.name), row) is None:
                raise NameTakenError(f"a key named {name!r} exists")
            self.acts.add(connection, None, f"create {scope} key", name)

    def ticket_secret(self) -> bytes:
        """Return the secret that tickets are signed with; the first call creates it."""
        query = sa.select(secrets.c.value).where(secrets.c.name == _TICKETS)
        with self.database.read() as connection:
            secret: bytes | None = connection.scalar(query)
        if secret is None:
            row = {"name": _TICKETS, "value": token_bytes(32)}
            insert = self.database.insert(secrets).on_conflict_do_nothing(index_elements=["name"])
            with self.database.write() as connection:
                connection.execute(insert, row)
                secret = connection.scalars(query).one()
        return secret
