"""A recovery that a server works out on its own, however long it takes."""

from collections.abc import Callable
from typing import Any

from ldprecover_client.answers import JobStatus
from ldprecover_client.errors import RefusedError

_FIRST_PAUSE = 0.25  # seconds between the first two questions; each next one is twice as long
_LONGEST_PAUSE = 5.0


class Job:
    """A recovery under way, as `Client.start_recovery` gives it.

    `id` names it at the server, and is empty where the server answered at once. `state` is
    "queued", "running", "done", "failed" or "cancelled", and `progress` a number from 0 to 1, both
    as of the last question. Its methods raise what the calls of `Client` raise.
    """

    def __init__(
        self,
        status: JobStatus,
        *,
        ask: Callable[[], JobStatus],
        cancel: Callable[[], None],
        sleep: Callable[[float], object],
    ) -> None:
        self._status = status
        self._ask = ask
        self._cancel = cancel
        self._sleep = sleep

    @property
    def id(self) -> str:
        """What `Client.job` finds it by."""
        return self._status.id

    @property
    def state(self) -> str:
        """What it was when the server was last asked."""
        return self._status.state

    @property
    def progress(self) -> float:
        """How much of it was done then, from 0 to 1."""
        return self._status.progress

    @property
    def is_over(self) -> bool:
        """Whether it is done, failed or cancelled: that stays so."""
        return self.state in ("done", "failed", "cancelled")

    def refresh(self) -> None:
        """Ask the server how it stands."""
        if not self.is_over:
            self._status = self._ask()

    def wait(self, on_progress: Callable[[float], object] | None = None) -> dict[str, Any]:
        """Wait until it is over and return the recovery, as `Client.recover` does.

        `on_progress` is called with the progress after each question. Raises RefusedError with the
        server's reason for a job that failed, and for one that was cancelled. To give up waiting,
        interrupt it: the job goes on.
        """
        pause = _FIRST_PAUSE
        while not self.is_over:
            self._sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            self.refresh()
            if on_progress is not None:
                on_progress(self.progress)
        if self._status.problem is not None:
            raise self._status.problem
        if self._status.result is None:
            raise RefusedError(410, "The recovery was cancelled")
        return self._status.result

    def cancel(self) -> None:
        """Have the server drop it. One that is over stays as it is, also if it ended in the
        meantime.
        """
        if not self.is_over:
            self._cancel()
            self.refresh()
