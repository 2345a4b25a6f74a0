"""The journal of a bulk submission, from which an interrupted run is resumed.

The first line of the file describes the reports and holds a random secret, from which the
idempotency key of every submission is derived. Each further line is the index of the first report
of an accepted submission. The first line is on disk before anything is sent. A resumed run sends
the submissions without a line under the same keys: the server recognises those that it has as
duplicates, so each report counts once.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray

from ldprecover_client.errors import ArgumentError, JournalError

_FORM = 1


def runs_folder() -> Path:
    """Return the default folder of journals, in the user's state directory."""
    from platformdirs import user_state_path

    return user_state_path("ldprecover", appauthor=False) / "runs"


class Journal:
    """The submissions of one run. `facts` is JSON from which the caller makes the reports again.

    `begin` writes the file. Raises JournalError for a file that cannot be written.

        journal = Journal(Path("run.journal"), {"seed": 1})
        users.report_to(url, "cities", key=key, journal=journal)
    """

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        self.path = path
        self.facts = dict(facts)
        self._secret = secrets.token_hex(32)
        self._reports: dict[str, Any] | None = None
        self._accepted: set[int] = set()
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: Path) -> Self:
        """Return the journal in a file. Raises JournalError for any other file."""
        try:
            first_line, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            head = json.loads(first_line)
            if head["form"] != _FORM:
                raise JournalError(f"{path} was written by another version of this program")
            journal = cls(path, head["facts"])
            journal._secret, journal._reports = str(head["secret"]), dict(head["reports"])
        except OSError as error:
            raise JournalError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError):
            raise JournalError(f"{path} is not the journal of a run") from None
        # A crash can truncate the last line. Its submission is sent again, as a duplicate.
        journal._accepted = {
            int(line) for line in lines if line.endswith("\n") and line.strip().isdecimal()
        }
        return journal

    def begin(self, reports: NDArray[Any], size: int) -> int:
        """Write the file for submissions of `size` reports; return the size of a resumed run.

        Raises ArgumentError if a resumed run had other reports.
        """
        description = {"n": len(reports), "digest": hashlib.sha256(reports.tobytes()).hexdigest()}
        if self._reports is not None:
            resumed = dict(self._reports)
            size = int(resumed.pop("size"))
            if resumed != description:
                raise ArgumentError("these are not the reports that the run was begun with")
            return size
        self._reports = description | {"size": size}
        head = {
            "form": _FORM,
            "secret": self._secret,
            "reports": self._reports,
            "facts": self.facts,
        }
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(self.path, "x", opener=_open_private, encoding="utf-8") as file:
                file.write(json.dumps(head, ensure_ascii=False) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise JournalError(f"{self.path} cannot be written: {error.strerror}") from error
        return size

    def key(self, start: int) -> str:
        """Return the idempotency key of the submission whose first report has this index."""
        return hmac.digest(self._secret.encode(), str(start).encode(), "sha256").hex()[:32]

    def was_accepted(self, start: int) -> bool:
        """Return whether the submission whose first report has this index was accepted."""
        return start in self._accepted

    @property
    def has_accepted(self) -> bool:
        """Whether any submission was accepted."""
        return bool(self._accepted)

    def accept(self, start: int) -> None:
        """Append that a submission was accepted."""
        with self._lock:
            self._accepted.add(start)
            try:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(f"{start}\n")
            except OSError as error:
                raise JournalError(f"{self.path} cannot be written: {error.strerror}") from error

    def remove(self) -> None:
        """Remove the file after the last submission."""
        self.path.unlink(missing_ok=True)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
