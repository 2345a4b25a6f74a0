"""Jobs of a drill: one at a time, in a thread, with progress and cancellation."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ldprecover import ContractError, LDPRecoverError
from ldprecover_client import ClientError
from ldprecover_experiments.errors import ExperimentError

_EXPECTED_ERRORS = (ClientError, ContractError, ExperimentError, LDPRecoverError)
"""Errors whose message suffices for the page."""

_END_SECONDS = 10.0


class BusyError(Exception):
    """Another job is running."""


class CancelledError(Exception):
    """The job was cancelled; raised in its thread."""


class Job:
    """A job with its kind, settings, progress and result.

    `steps` are the titles of all stages, in order. The work calls `stage`, `pause` and `check`;
    each raises CancelledError once `cancel` has been called. Any thread may call `as_json`.
    """

    def __init__(self, kind: str, settings: dict[str, Any], steps: Sequence[str]) -> None:
        self.kind = kind
        self.settings = settings
        self.steps = steps
        self.over = threading.Event()
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._state: dict[str, Any] = {
            "state": "running",
            "step": 0,
            "done": 0,
            "total": 0,
            "round": None,
            "result": None,
            "error": None,
        }

    def update(self, **fields: Any) -> None:
        """Change fields of the JSON."""
        with self._lock:
            self._state |= fields

    def check(self) -> None:
        """Raise CancelledError if the job was cancelled."""
        if self._cancelled.is_set():
            raise CancelledError

    def pause(self, seconds: float) -> None:
        """Wait; raise CancelledError as soon as the job is cancelled."""
        self._cancelled.wait(seconds)
        self.check()

    @contextmanager
    def stage(self, title: str) -> Iterator[Callable[[int, int], None]]:
        """Begin the step of this title; yield a function that reports progress (done, total)."""
        self.check()
        self.update(step=self.steps.index(title), done=0, total=0)

        def report_progress(done: int, total: int) -> None:
            self.check()
            self.update(done=done, total=total)

        yield report_progress
        self.check()

    def cancel(self) -> None:
        """Cancel a running job; it ends after its current step."""
        self._cancelled.set()
        with self._lock:
            if self._state["state"] == "running":
                self._state["state"] = "cancelling"

    def as_json(self) -> dict[str, Any]:
        """Return kind, settings, steps, progress and result."""
        with self._lock:
            common = {"kind": self.kind, "settings": self.settings, "steps": list(self.steps)}
            return common | self._state

    def work(self, function: Callable[["Job"], dict[str, Any]]) -> None:
        """Call the function in this thread, and keep its result or its error."""
        try:
            result = function(self)
            self.check()
        except CancelledError:
            self.update(state="cancelled")
        except _EXPECTED_ERRORS as error:
            self.update(state="failed", error=" ".join(str(error).split()))
        except MemoryError:
            self.update(
                state="failed", error="There is too little memory for these users and items."
            )
        except Exception as error:
            message = f"A fault of the drill itself: {type(error).__name__}: {error!s:.200}"
            self.update(state="failed", error=message)
            raise  # the terminal of the drill shows the traceback
        else:
            self.update(state="done", result=result)
        finally:
            self.over.set()


class Jobs:
    """The last job; the next one begins after its end."""

    def __init__(self) -> None:
        self.last: Job | None = None
        self._lock = threading.Lock()

    def begin(self, job: Job, function: Callable[[Job], dict[str, Any]]) -> None:
        """Start a job in a new thread. Raises BusyError while the last one is running."""
        with self._lock:
            if self.last is not None and not self.last.over.is_set():
                raise BusyError
            self.last = job
        # A daemon thread, because some steps, such as the seed search, cannot be interrupted.
        threading.Thread(target=job.work, args=(function,), name="drill", daemon=True).start()

    def end(self) -> None:
        """Cancel the last job, and wait up to _END_SECONDS for its end."""
        if self.last is not None:
            self.last.cancel()
            self.last.over.wait(_END_SECONDS)
