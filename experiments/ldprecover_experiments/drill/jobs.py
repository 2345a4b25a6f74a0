"""One piece of work at a time, in a thread, that can be watched and cancelled."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ldprecover import ContractError, LDPRecoverError
from ldprecover_client import ClientError
from ldprecover_experiments.errors import ExperimentError

_OURS = (ClientError, ContractError, ExperimentError, LDPRecoverError)
"""Errors whose message says all."""

_END_SECONDS = 10.0


class BusyError(Exception):
    """Another run is under way."""


class CancelledError(Exception):
    """The run was cancelled; raised in its own thread."""


class Job:
    """A piece of work: what it is, how far it is, and what came of it.

    `kind` and `settings` say what was asked for. The work calls `stage`, `pause` and `check`, each
    of which raises CancelledError once `cancel` has been called; anyone may call `as_json`.
    """

    def __init__(self, kind: str, settings: dict[str, Any]) -> None:
        self.kind = kind
        self.settings = settings
        self.over = threading.Event()
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._shown: dict[str, Any] = {
            "state": "running",
            "stage": "it begins",
            "done": 0,
            "total": 0,
            "round": None,
            "result": None,
            "error": None,
        }

    def say(self, **known: Any) -> None:
        """Show this of the run from now on."""
        with self._lock:
            self._shown |= known

    def check(self) -> None:
        """Raise CancelledError if it was cancelled."""
        if self._cancelled.is_set():
            raise CancelledError

    def pause(self, seconds: float) -> None:
        """Wait so long, or until it is cancelled; raises CancelledError then."""
        self._cancelled.wait(seconds)
        self.check()

    @contextmanager
    def stage(self, title: str) -> Iterator[Callable[[int, int], None]]:
        """Begin another stage, and yield what is called with "done, of all"."""
        self.check()
        self.say(stage=title, done=0, total=0)

        def move(done: int, total: int) -> None:
            self.check()
            self.say(done=done, total=total)

        yield move
        self.check()

    def cancel(self) -> None:
        """Have it end as soon as the step under way is over; what has ended stays as it is."""
        self._cancelled.set()
        with self._lock:
            if self._shown["state"] == "running":
                self._shown["state"] = "cancelling"

    def as_json(self) -> dict[str, Any]:
        """Return what is known of it now."""
        with self._lock:
            return {"kind": self.kind, "settings": self.settings, **self._shown}

    def work(self, make: Callable[["Job"], dict[str, Any]]) -> None:
        """Do the work in this thread; whatever comes of it is shown."""
        try:
            result = make(self)
            self.check()
        except CancelledError:
            self.say(state="cancelled")
        except _OURS as error:
            self.say(state="failed", error=" ".join(str(error).split()))
        except MemoryError:
            self.say(
                state="failed", error="There is too little memory for so many users and items."
            )
        except Exception as error:
            self.say(
                state="failed",
                error=f"A fault of the drill itself: {type(error).__name__}: {error!s:.200}",
            )
            raise  # to be seen where the drill runs
        else:
            self.say(state="done", result=result)
        finally:
            self.over.set()


class Jobs:
    """The last run; another begins once it is over."""

    def __init__(self) -> None:
        self.last: Job | None = None
        self._lock = threading.Lock()

    def begin(self, run: Job, make: Callable[[Job], dict[str, Any]]) -> None:
        """Do the work of a run in a thread of its own. Raises BusyError while the last one is under
        way.
        """
        with self._lock:
            if self.last is not None and not self.last.over.is_set():
                raise BusyError
            self.last = run
        # As a daemon: a step that takes long, such as the search for seeds, does not hold up the
        # end.
        threading.Thread(target=run.work, args=(make,), name="drill", daemon=True).start()

    def end(self) -> None:
        """Cancel the last run, and wait some seconds until it is over."""
        if self.last is not None:
            self.last.cancel()
            self.last.over.wait(_END_SECONDS)
