"""An analysis that runs on the server as a job."""

from __future__ import annotations

from collections.abc import Callable

from ldprecover_client.answers import JobStatus, JsonObject
from ldprecover_client.errors import RefusedError

_FIRST_PAUSE = 0.25  # seconds before the first poll; each further pause is twice as long
_LONGEST_PAUSE = 5.0


class Job:
    """A recovery or a certificate in progress, which `Client.start_recovery` or
    `Client.start_certificate` returns.

    `id` names it at the server, and is empty if the server returned the result immediately.
    `analysis` is "recovery" or "certificate". `state` is "queued", "running", "done", "failed" or
    "cancelled", and `progress` a number from 0 to 1, both as of the last poll. Its methods raise
    the errors of `Client`.

        job = client.start_recovery("cities", method="unmix")
        job.wait(print)["recovered"]
    """

    def __init__(
        self,
        status: JobStatus,
        *,
        poll: Callable[[], JobStatus],
        cancel: Callable[[], None],
        sleep: Callable[[float], object],
    ) -> None:
        self._status = status
        self._poll = poll
        self._cancel = cancel
        self._sleep = sleep

    @property
    def id(self) -> str:
        """The id that `Client.job` takes."""
        return self._status.id

    @property
    def analysis(self) -> str:
        """What the job computes."""
        return self._status.analysis

    @property
    def state(self) -> str:
        """State at the last poll."""
        return self._status.state

    @property
    def progress(self) -> float:
        """Share of the work done at the last poll, from 0 to 1."""
        return self._status.progress

    @property
    def is_over(self) -> bool:
        """Whether the job is done, failed or cancelled. That is final."""
        return self.state in ("done", "failed", "cancelled")

    def refresh(self) -> None:
        """Poll the server, unless the job is over."""
        if not self.is_over:
            self._status = self._poll()

    def wait(self, on_progress: Callable[[float], object] | None = None) -> JsonObject:
        """Wait until the job is over, and return what `Client.recover` or `Client.certify` does.

        `on_progress` is called with the progress after each poll. Interrupting the wait does not
        stop the job. Raises RefusedError for a job that failed, with the server's reason, or was
        cancelled.
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
            raise RefusedError(410, f"The {self.analysis} was cancelled")
        return self._status.result

    def cancel(self) -> None:
        """Cancel the job. A job that is over stays as it is, even if it ended meanwhile."""
        if not self.is_over:
            self._cancel()
            self.refresh()
