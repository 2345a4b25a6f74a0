"""Rounds: opened, found, read by callers with read access, closed and deleted.

Their immutable metadata is cached in memory.
"""

import re
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

from ldprecover import ParameterError, Tally
from ldprecover.items import label_key
from ldprecover.rounds.export import RoundExport
from ldprecover.rounds.parameters import TEXTS, RoundParameters, check_texts
from ldprecover.sentences import counted
from ldprecover_interface.base import ROUND_NAME
from ldprecover_interface.forms import NewForm
from ldprecover_interface.rounds import NewRound, RoundSettings
from ldprecover_server.access.access import Access
from ldprecover_server.errors import (
    BusyError,
    NotComparableError,
    RoundOfFormError,
)
from ldprecover_server.limits import Cache
from ldprecover_server.storage import (
    CURRENT,
    Member,
    Storage,
    StoredRound,
    decode_labels,
    new_id,
)

_CACHE_SIZE = 256  # rounds, without their labels
Window = tuple[StoredRound, ...]
"""A round, which is the last, and rounds before it in its series: one, or several counted together.

Their tallies are summed, and their reports are read one after the other.
"""
LABELS_BYTES = 16 << 20
"""Bytes of cached labels of all processes; those of a round may be megabytes."""


def _check_name(name: str | None) -> None:
    if name is not None and not re.fullmatch(ROUND_NAME, name):
        raise ParameterError("name must be 1 to 64 of a-z 0-9 . _ -, a letter or digit first")
    if name == CURRENT:
        raise ParameterError(f"name: {CURRENT!r} is reserved for the round opened last")


class Rounds:
    """The rounds of a storage."""

    def __init__(
        self,
        storage: Storage,
        access: Access,
        max_domain_size: int,
        labels_bytes: int = LABELS_BYTES,
        practice: bool = False,
    ) -> None:
        self._storage = storage
        self._access = access
        self._max_domain_size = max_domain_size
        self._practice = practice
        self._cache: Cache[str, StoredRound] = Cache(2 * _CACHE_SIZE, lambda round: 1)
        """Rounds by id, and by name as last looked up."""
        self._labels: Cache[int, bytes] = Cache(labels_bytes, len)

    def open(self, new: NewRound, key: str | None = None) -> StoredRound:
        """Open a round. `key` is the name of the caller's key.

        Its default name has its number in its series, or else the protocol. Raises NameTakenError,
        NotNextError and ParameterError.
        """
        checked = self._checked(new, self._storage.rounds.closing_time(new.closes_at))
        if new.series is not None:
            return self._remembered(*self._storage.series.open(new.series, [checked], key=key))
        checked["name"] = new.name or f"{new.protocol}-{secrets.token_hex(4)}"
        return self._remembered(self._storage.rounds.open(**checked, key=key))

    def _checked(self, new: RoundSettings, closes_at: str | None) -> dict[str, Any]:
        """Return what the storage opens a round with. Raises ParameterError."""
        _check_name(new.name)
        parameters = new.parameters
        if len(parameters.items) > self._max_domain_size:
            raise ParameterError(
                f"items: this server takes at most {self._max_domain_size} of a round"
            )
        self._check_practice(parameters)
        columns = {name: getattr(new, name) for name in ("access", "read_access", "retention")}
        texts = {name: getattr(new, name) for name in TEXTS}
        check_texts(texts)
        head = {"id": new_id("R"), "name": new.name, "closes_at": closes_at}
        return {**head, "parameters": parameters, **columns, **texts}

    def _check_practice(self, round: RoundParameters | StoredRound) -> None:
        if round.practice and not self._practice:
            raise ParameterError(
                "practice: only the server of `ldprecover class` takes practice rounds; open the "
                "round without it"
            )

    def open_form(self, new: NewForm, key: str | None = None) -> list[StoredRound]:
        """Open a form; return its rounds.

        Raises NameTakenError, NotNextError and ParameterError.
        """
        _check_name(new.name)
        check_texts({"title": new.title})
        if len({label_key(each.question) for each in new.rounds}) < len(new.rounds):
            raise ParameterError("rounds must have different questions: clients answer by question")
        closes_at, checked = self._storage.rounds.closing_time(new.closes_at), []
        for i, each in enumerate(new.rounds):
            if new.assign == "ticket" and "access" not in each.model_fields_set:
                each.access = "ticket"
            try:
                checked.append(self._checked(each, closes_at))
                if (each.access == "ticket") != (new.assign == "ticket"):
                    raise ParameterError("access must be ticket if tickets assign, and only then")
            except ParameterError as error:
                raise ParameterError(f"rounds.{i}: {error}") from None
        form = {"id": new_id("F"), "name": new.name, "title": new.title}
        if new.series is not None:
            return self._storage.series.open(new.series, checked, form, key)
        form["name"] = new.name or f"form-{secrets.token_hex(4)}"
        return self._storage.forms.open(form, checked, key)

    def open_next(
        self, series: str, number: int, closes_at: str | None, key: str | None = None
    ) -> tuple[list[StoredRound], bool]:
        """Return the rounds of this number of a series, and whether this call opened them.

        Raises SeriesNotFoundError, NotNextError, ParameterError, PluginNotLoadedError and
        RoundDamagedError.
        """
        opened, is_new = self._storage.series.next(
            series, number, closes_at, key, self._check_practice
        )
        return [self._remembered(round) for round in opened], is_new

    def series(self, limit: int, after: str | None) -> list[Member]:
        """Return the rounds of series in the order of their names, the newest of each first."""
        return self._storage.series.page(limit, after)

    def members(self, series: str) -> list[Member]:
        """Return the rounds of a series, the newest first. Raises SeriesNotFoundError."""
        return self._storage.series.members(series)

    def close(self, identifier: str, key: str | None = None) -> StoredRound:
        """Close a round to reports.

        Raises RoundNotFoundError, RoundOfFormError, PluginNotLoadedError and
        RoundDamagedError.
        """
        # First, so that a call with an error changes nothing.
        round = self._remembered(self._single(identifier))
        return self._storage.rounds.close(round.id, key)

    def delete(self, identifier: str, key: str | None = None) -> None:
        """Delete a round and all its reports. Raises RoundNotFoundError and RoundOfFormError."""
        round = self._single(identifier)
        self._storage.deletion.delete(round.id, key)
        self.evict(round)

    def mint(self, identifier: str, count: int, key: str | None = None) -> Iterator[str]:
        """Return new tickets of a round. Raises as `close` does, and ParameterError."""
        round = self._remembered(self._single(identifier))
        tickets = self._access.mint(round.id, round.access, count)
        self._storage.acts.write(key, f"make {counted(count, 'ticket')}", round.name)
        return tickets

    def mint_for_form(self, identifier: str, count: int, key: str | None = None) -> Iterator[str]:
        """Return new tickets of a form. Raises FormNotFoundError and ParameterError."""
        round = self._remembered(self.form(identifier)[0])
        tickets = self._access.mint(str(round.form), round.access, count)
        self._storage.acts.write(key, f"make {counted(count, 'ticket')}", str(round.form_name))
        return tickets

    def _single(self, identifier: str) -> StoredRound:
        """Return a round that belongs to no form. Raises RoundNotFoundError, RoundOfFormError."""
        stored = self._storage.rounds.find(identifier)
        if stored.form is not None:
            raise RoundOfFormError(f"the round belongs to the form {stored.form_name}")
        return stored

    def find(self, identifier: str) -> StoredRound:
        """Return the round with an id or name, or the `current` one.

        Raises RoundNotFoundError, PluginNotLoadedError and RoundDamagedError.
        """
        return self._remembered(self._storage.rounds.find(identifier))

    def readable(self, identifier: str, key: str | None) -> StoredRound:
        """Return a round that this key, or none, may read.

        Raises as `find` does, UnauthorizedError and ForbiddenError.
        """
        round = self.find(identifier)
        if round.read_access == "key":
            self._access.require(key, "analyst")
        return round

    def verdicts(self, rounds: Sequence[StoredRound], key: str | None) -> list[str | None]:
        """Return the verdicts in JSON; None for rounds that this key, or none, may not read.

        Raises StoreUnavailableError.
        """
        has_key = None
        verdicts = []
        for stored in rounds:
            verdict = stored.verdict
            if verdict is not None and stored.read_access == "key":
                if has_key is None:  # once for all: it reads the database
                    has_key = self._access.has(key, "analyst")
                verdict = verdict if has_key else None
            verdicts.append(verdict)
        return verdicts

    def window(self, round: StoredRound, size: int, key: str | None) -> Window:
        """Return a round and those of the `size` - 1 before it in its series that exist.

        Raises ParameterError for a round without a series, UnauthorizedError and ForbiddenError.
        """
        if size == 1:
            return (round,)
        if round.series is None or round.number is None:
            raise ParameterError("window must be 1 for a round that belongs to no series")
        numbers = range(round.number - size + 1, round.number)
        window = (*self._storage.rounds.in_series(round, numbers), round)
        if any(each.read_access == "key" for each in window):
            self._access.require(key, "analyst")
        return window

    def window_before(self, round: StoredRound, size: int, key: str | None) -> Window:
        """Return the latest window of its series that ends before the round's window begins.

        It is empty where the series has no earlier round. Raises as `readable` does.
        """
        if round.series is None or round.number is None:
            return ()
        earlier = self._storage.rounds.in_series(round, range(1, round.number - size + 1))
        return self.window(self.readable(earlier[-1].id, key), size, key) if earlier else ()

    def since(self, after: Window, since: str | None, size: int, key: str | None) -> Window:
        """Return the window to compare the window `after` with: the one before without `since`.

        Raises NotComparableError, and as `readable` and `window` do.
        """
        round = after[-1]
        if since is None:
            before = self.window_before(round, size, key)
            if not before:
                raise NotComparableError(f"no round or window of its series is before {round.name}")
            return before
        before = self.window(self.readable(since, key), size, key)
        first = before[-1]
        parameters = [self._storage.rounds.parameters(each.seq) for each in (first, round)]
        differences = parameters[0].differences(parameters[1])
        if first.question != round.question:
            differences.append("question")
        if differences:
            raise NotComparableError(
                f"{first.name} and {round.name} differ in {', '.join(differences)}"
            )
        if first.seq >= after[0].seq:
            raise NotComparableError(
                f"{first.name} was not opened before {after[0].name}, the first round compared"
            )
        return before

    def tally(self, *rounds: StoredRound) -> Tally:
        """Return the sum of the tallies of a window, with every report answered before.

        Raises RoundNotFoundError for a round that is deleted meanwhile.
        """
        seqs = [each.seq for each in rounds]
        return self._storage.rounds.tally(seqs, rounds[0].oracle.summary_size)

    def export(self, identifier: str, key: str | None) -> RoundExport:
        """Return a round with its tally, to estimate and recover without the server.

        Raises as `readable` does.
        """
        # Before the tally: with a seed the round is closed, and the tally is final.
        round = self.readable(identifier, key)
        tally = self.tally(round)
        parameters = self._storage.rounds.parameters(round.seq)
        return round.export(parameters, tally)

    def cached(self, identifier: str) -> StoredRound | None:
        """Return a round by id or name from the cache alone.

        Its state may have changed, and another process may have deleted it: only a commit proves
        that it is still open.
        """
        return self._cache.get(identifier)

    def require_current(self, identifier: str, round: StoredRound) -> None:
        """Raise BusyError if the name of a cached round is another's by now.

        An error about a submission then concerns the earlier round. Raises RoundNotFoundError too.
        """
        if self.find(identifier).id != round.id:
            raise BusyError("another round has the name since a moment ago")

    def evict(self, round: StoredRound) -> None:
        """Remove a deleted round from the cache."""
        self._cache.remove(round.id)
        self._cache.remove(round.name)

    def page(self, limit: int, before: str | None) -> list[StoredRound]:
        """Return rounds, the latest first, of protocols that are not loaded too."""
        return self._storage.rounds.page(limit, before)

    def forms(self, limit: int, before: str | None) -> list[StoredRound]:
        """Return the rounds of forms, the latest form first. Raises FormNotFoundError."""
        return self._storage.forms.page(limit, before)

    def form(self, identifier: str) -> list[StoredRound]:
        """Return the rounds of a form in order. Raises FormNotFoundError."""
        return self._storage.forms.find(identifier)

    def close_form(self, identifier: str, key: str | None = None) -> list[StoredRound]:
        """Close the rounds of a form to reports; return them. Raises FormNotFoundError."""
        return self._storage.forms.close(identifier, key)

    def delete_form(self, identifier: str, key: str | None = None) -> None:
        """Delete a form, its rounds and all their reports. Raises FormNotFoundError."""
        rounds = self.form(identifier)
        self._storage.deletion.delete_form(str(rounds[0].form), key)
        for round in rounds:
            self.evict(round)

    def labels(self, round: StoredRound) -> bytes:
        """Return a round's labels as a JSON array in UTF-8. Raises RoundNotFoundError."""
        labels = self._labels.get(round.seq)
        if labels is None:
            labels = self._storage.rounds.labels(round.seq)
            self._labels.add(round.seq, labels)
        return labels

    def items(self, round: StoredRound) -> list[str]:
        """Return a round's labels. Raises RoundNotFoundError."""
        return decode_labels(self.labels(round))

    def _remembered(self, round: StoredRound) -> StoredRound:
        """Add a round to the cache; return it. Raises PluginNotLoadedError, RoundDamagedError."""
        _ = round.oracle
        cached = self._cache.get(round.id)
        if cached is None:
            cached = round
            self._cache.add(round.id, round)
        if self._cache.get(round.name) is not cached:
            self._cache.add(round.name, cached)
        return round
