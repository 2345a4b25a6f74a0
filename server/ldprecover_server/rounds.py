"""Rounds: opened, found, closed and deleted; what of them never changes is kept in memory."""

import contextlib
import functools
import json
import re
import secrets
from collections import OrderedDict
from dataclasses import dataclass

from ldprecover import FrequencyOracle, ParameterError, RoundParameters
from ldprecover_interface.base import ROUND_NAME
from ldprecover_server.errors import PluginNotLoadedError, RoundNotFoundError
from ldprecover_server.storage import CURRENT, Store, StoredRound, Unread

_KNOWN = 256  # those used last


@dataclass(frozen=True)
class KnownRound:
    """The part of a round that never changes."""

    seq: int
    id: str
    name: str
    parameters: RoundParameters
    oracle: FrequencyOracle
    access: str
    read_access: str
    series: str | None

    @functools.cached_property
    def labels_bytes(self) -> int:
        """Bytes that all the labels take as a JSON array in ASCII."""
        return len(json.dumps(self.parameters.items))


class Rounds:
    """The rounds of a store."""

    def __init__(self, store: Store, max_domain_size: int) -> None:
        self._store = store
        self._max_domain_size = max_domain_size
        self._known: OrderedDict[str, KnownRound] = OrderedDict()
        self._ids: OrderedDict[str, str] = OrderedDict()  # of the names that were asked for last
        self._unread: OrderedDict[str, Unread] = OrderedDict()

    def open(
        self,
        name: str | None,
        parameters: RoundParameters,
        *,
        access: str = "open",
        read_access: str = "public",
        retention: int | None = None,
        series: str | None = None,
    ) -> tuple[StoredRound, KnownRound]:
        """Open a round; without a name it is called after its protocol. `retention` is in hours,
        None for ever.

        Raises NameTakenError, SeriesMismatchError or ParameterError.
        """
        for what, given in (("name", name), ("series", series)):
            if given is not None and not re.fullmatch(ROUND_NAME, given):
                raise ParameterError(
                    f"{what} must be 1 to 64 of a-z 0-9 . _ -, a letter or digit first"
                )
        if name == CURRENT:
            raise ParameterError(
                f"name: {CURRENT!r} means the round opened last and cannot be a name"
            )
        if parameters.given_seeds is not None and access != "ticket":
            raise ParameterError(
                f"given_seeds: tickets pick the seeds, so access must be 'ticket', not {access!r}"
            )
        if len(parameters.items) > self._max_domain_size:
            raise ParameterError(
                f"items: this server takes at most {self._max_domain_size} of a round"
            )
        # Ids begin with a capital and names cannot, so the two are never taken for each other.
        id = f"R{secrets.token_hex(12)}"
        name = name or f"{parameters.protocol}-{secrets.token_hex(4)}"
        stored = self._store.open_round(
            id,
            name,
            parameters,
            access=access,
            read_access=read_access,
            retention=retention,
            series=series,
        )
        return stored, self.known(stored)

    def close(self, identifier: str) -> tuple[StoredRound, KnownRound]:
        """Close a round: no report enters it any more. Raises RoundNotFoundError and
        PluginNotLoadedError.
        """
        known = self.find(identifier)  # first: what is refused must not have been done
        return self._store.close_round(known.id), known

    def delete(self, identifier: str) -> None:
        """Delete a round and all its reports. Raises RoundNotFoundError."""
        self._known.pop(self._store.delete_round(identifier).id, None)

    def get(self, identifier: str) -> tuple[StoredRound, KnownRound]:
        """Return a round by id, name or `current`, with its state.

        Raises RoundNotFoundError, and PluginNotLoadedError for one whose protocol is not loaded.
        """
        stored = self._store.round(identifier)
        return stored, self.known(stored)

    def find(self, identifier: str) -> KnownRound:
        """Return what never changes of a round by id, name or `current`. Raises as `get` does."""
        return self.get(identifier)[1]

    def remembered(self, identifier: str) -> KnownRound | None:
        """Return a round by its id from memory alone; whether it is there still, its next use in
        the store says.
        """
        try:
            self._known.move_to_end(
                identifier
            )  # whoever asks for many rounds drops none that is in use
            return self._known[identifier]
        except KeyError:  # another thread may also have dropped it in between
            return None

    def named(self, name: str) -> KnownRound | None:
        """Return the round that had this name when it was last looked up, from memory alone.

        It is the name's as long as it is there, which a commit to it says. Whatever else comes of
        it may be about a round that another process has deleted, and the name may be another's by
        now.
        """
        id = self._ids.get(name)
        return None if id is None else self.remembered(id)

    def forget(self, round: KnownRound) -> None:
        """Remember a round no more: it was deleted."""
        self._known.pop(round.id, None)

    def page(self, limit: int, before: str | None) -> list[tuple[StoredRound, KnownRound | Unread]]:
        """Return rounds, the one opened last first; one that is deleted meanwhile is left out."""
        found: list[tuple[StoredRound, KnownRound | Unread]] = []
        for stored in self._store.rounds(limit, before):
            with contextlib.suppress(RoundNotFoundError):
                try:
                    found.append((stored, self.known(stored)))
                except PluginNotLoadedError:
                    found.append((stored, self._unread_round(stored)))
        return found

    def _unread_round(self, stored: StoredRound) -> Unread:
        found = self._unread.get(stored.id)
        if found is None:
            found = self._unread[stored.id] = self._store.unread(stored.seq)
            if len(self._unread) > _KNOWN:
                with contextlib.suppress(KeyError):  # another thread has just done it
                    self._unread.popitem(last=False)
        return found

    def known(self, stored: StoredRound) -> KnownRound:
        """Return what never changes of a stored round.

        Raises PluginNotLoadedError, and RoundNotFoundError where it is deleted meanwhile.
        """
        found = self.remembered(stored.id)
        if found is None:
            parameters = self._store.parameters(stored.seq)
            found = KnownRound(
                stored.seq,
                stored.id,
                stored.name,
                parameters,
                parameters.oracle,
                stored.access,
                stored.read_access,
                stored.series,
            )
            self._known[stored.id] = found
            if len(self._known) > _KNOWN:
                with contextlib.suppress(KeyError):  # another thread has just done it
                    self._known.popitem(last=False)
        if self._ids.get(stored.name) != stored.id:
            self._ids[stored.name] = stored.id
            if len(self._ids) > _KNOWN:
                with contextlib.suppress(KeyError):
                    self._ids.popitem(last=False)
        return found
