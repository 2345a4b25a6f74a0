"""An executor that raises its own failures as EngineError, apart from those of its tasks."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any
from weakref import ref

Translate = Callable[[BaseException], BaseException]
"""Returns EngineError for a failure of the executor, and any error of a task unchanged."""

Decode = Callable[[Any], Any]
"""Returns a task's result from what the other executor returns."""


class TranslatingExecutor(Executor):
    """Passes tasks to the `submit` of another executor, and translates its failures."""

    def __init__(
        self,
        submit: Callable[..., Future[Any]],
        workers: Callable[[], int],
        translate: Translate,
        decode: Decode = lambda result: result,
        submit_sum: Callable[..., Future[Any]] | None = None,
    ) -> None:
        self._submit, self._workers = submit, workers
        self._translate_error, self._decode = translate, decode
        self.submit_sum = None if submit_sum is None else partial(self._outer, submit_sum)
        """Submits a function and calls whose results it adds in order; None if no worker adds."""

    @property
    def _max_workers(self) -> int:
        """The number of workers, under the name that executors of concurrent.futures use."""
        return self._workers()

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a call to a worker. Raises EngineError if there is no worker any more."""
        return self._outer(self._submit, call, *args, **kwargs)

    def _outer(self, submit: Callable[..., Future[Any]], *args: Any, **kwargs: Any) -> Future[Any]:
        try:
            inner = submit(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  translated, or raised unchanged
            raise self._translated(error)  # noqa: B904  it has its cause
        outer: Future[Any] = Future()
        # A weak reference: in a cycle, a result would stay in the worker's memory until this
        # process collects garbage.
        outer.add_done_callback(partial(_cancel, ref(inner)))
        inner.add_done_callback(partial(self._forward, outer))
        return outer

    def _forward(self, outer: Future[Any], inner: Future[Any]) -> None:
        if not outer.set_running_or_notify_cancel():
            return  # cancelled
        try:
            result = self._decode(inner.result())
        except BaseException as error:  # noqa: BLE001  raised by outer.result()
            outer.set_exception(self._translated(error))
        else:
            outer.set_result(result)

    def _translated(self, error: BaseException) -> BaseException:
        translated = self._translate_error(error)
        if translated is not error:
            translated.__cause__ = error
        return translated


def _cancel(reference: "ref[Future[Any]]", outer: Future[Any]) -> None:
    inner = reference()
    if inner is not None and outer.cancelled():
        inner.cancel()
