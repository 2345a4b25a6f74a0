"""The journal of a crowd: which of its submissions were accepted, on disk, so that an interrupted
run can go on.

The first line says what is sent and holds a random secret, from which every submission's
idempotency key is derived; each further line is the first report of a submission that was accepted.
It is on the disk before anything is sent. Whoever goes on sends what has no line yet, under the
same keys: what had arrived before the interruption is a duplicate to the server, and counts once.
"""

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
    """Return where journals are kept unless told otherwise: in the user's state directory."""
    from platformdirs import user_state_path

    return user_state_path("ldprecover", appauthor=False) / "runs"


class Journal:
    """What one run has sent. `facts` are what its maker must know to make the same reports again,
    as JSON.

    A new journal is written once its reports are known, by `begin`. Raises JournalError for a file
    that cannot be written.
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
        """Return the journal in a file. Raises JournalError for a file that is not one."""
        try:
            head, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            read = json.loads(head)
            if read["form"] != _FORM:
                raise JournalError(f"{path} was written by another version of this program")
            journal = cls(path, read["facts"])
            journal._secret, journal._reports = str(read["secret"]), dict(read["reports"])
        except OSError as error:
            raise JournalError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError):
            raise JournalError(f"{path} is not the journal of a run") from None
        # A crash can cut the last line off; its submission is then sent again, and is a duplicate.
        journal._accepted = {
            int(line) for line in lines if line.endswith("\n") and line.strip().isdecimal()
        }
        return journal

    def begin(self, reports: NDArray[Any], size: int) -> int:
        """Write down what is sent, in submissions of `size` reports; return the size that a run
        begun before has.

        Raises ArgumentError where that run's reports were other ones.
        """
        known = {"n": len(reports), "digest": hashlib.sha256(reports.tobytes()).hexdigest()}
        if self._reports is not None:
            begun = dict(self._reports)
            size = int(begun.pop("size"))
            if begun != known:
                raise ArgumentError("these are not the reports that the run was begun with")
            return size
        self._reports = known | {"size": size}
        head = {
            "form": _FORM,
            "secret": self._secret,
            "reports": self._reports,
            "facts": self.facts,
        }
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(self.path, "x", opener=_private, encoding="utf-8") as file:
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
        """Return whether that submission was accepted."""
        return start in self._accepted

    @property
    def has_accepted(self) -> bool:
        """Whether any submission was."""
        return bool(self._accepted)

    def accept(self, start: int) -> None:
        """Write down that it was."""
        with self._lock:
            self._accepted.add(start)
            try:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(f"{start}\n")
            except OSError as error:
                raise JournalError(f"{self.path} cannot be written: {error.strerror}") from error

    def remove(self) -> None:
        """Remove the file: there is nothing left to send."""
        self.path.unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
