"""An executor whose own failures are told as EngineError, so that nobody takes them for those of
what it was given.
"""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any
from weakref import ref

Translate = Callable[[BaseException], BaseException]
"""Returns the EngineError for what an executor raises where it fails itself, and what a task raised
as it is.
"""

Read = Callable[[Any], Any]
"""Returns a task's result from what the executor returns."""


class Translated(Executor):
    """Hands over to another executor, and passes on what comes back."""

    def __init__(
        self,
        inner: Executor,
        workers: Callable[[], int],
        translate: Translate,
        read: Read = lambda result: result,
    ) -> None:
        self._inner, self._workers, self._translate, self._read = inner, workers, translate, read

    @property
    def _max_workers(self) -> int:
        """As executors of concurrent.futures have it."""
        return self._workers()

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a function called by a worker. Raises EngineError where there is none any more."""
        try:
            inner = self._inner.submit(call, *args, **kwargs)
        except Exception as error:  # noqa: BLE001  as it is, where it is no failure of the executor's
            raise self._told(error)  # noqa: B904  it has its cause
        outer: Future[Any] = Future()
        # Weakly: in a circle, what a worker holds of a result would stay there until this process
        # looks for circles.
        outer.add_done_callback(partial(_cancel, ref(inner)))
        inner.add_done_callback(partial(self._pass_on, outer))
        return outer

    def _pass_on(self, outer: Future[Any], inner: Future[Any]) -> None:
        if not outer.set_running_or_notify_cancel():
            return  # nobody waits for it
        try:
            result = self._read(inner.result())
        except BaseException as error:  # noqa: BLE001  raised where it is waited for
            outer.set_exception(self._told(error))
        else:
            outer.set_result(result)

    def _told(self, error: BaseException) -> BaseException:
        told = self._translate(error)
        if told is not error:
            told.__cause__ = error
        return told


def _cancel(inner: "ref[Future[Any]]", outer: Future[Any]) -> None:
    given = inner()
    if given is not None and outer.cancelled():
        given.cancel()
