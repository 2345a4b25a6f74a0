"""Equal questions are answered once: while they are worked on, and as long as the answer is
kept.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any

from ldprecover_server.analysis.worker_pool import OnProgress

Work = Callable[[OnProgress], Coroutine[Any, Any, bytes]]
"""Works an answer out, saying how far it is."""


class _Run:
    """One working out, and those who wait for it."""

    def __init__(self, work: Work) -> None:
        self._listeners: list[OnProgress] = []
        self._progress: float | None = None
        self.waiting = 0
        self.task = asyncio.ensure_future(work(self._tell))

    def add(self, listener: OnProgress | None) -> None:
        self.waiting += 1
        if listener is not None:
            self._listeners.append(listener)
            if self._progress is not None:
                listener(self._progress)

    def remove(self, listener: OnProgress | None) -> None:
        self.waiting -= 1
        if listener is not None:
            self._listeners.remove(listener)

    def _tell(self, progress: float) -> None:
        self._progress = progress
        for listener in self._listeners:
            listener(progress)


class ResultCache:
    """Packed answers by what was asked, at most `max_bytes` of them, those used last; for one event
    loop.

    A key must name all that the answer depends on, so that no answer is ever out of date. Failures
    are not kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()
        self._runs: dict[tuple[bytes, bool], _Run] = {}

    async def get(
        self, key: bytes, work: Work, *, keyed: bool, on_progress: OnProgress | None = None
    ) -> bytes:
        """Return the answer that is kept, or that others wait for, or else what `work` gives; raise
        what it raises.

        When the last who waits is cancelled, the work is. A caller with a key does not wait for
        work that was begun for callers without one, who have less time.
        """
        if (found := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return found
        run = self._runs.get((key, True)) or self._runs.get((key, keyed))
        if run is None:
            run = self._runs[key, keyed] = _Run(work)
            run.task.add_done_callback(lambda task: self._end((key, keyed), task))
        run.add(on_progress)
        try:
            return await asyncio.shield(run.task)
        finally:
            run.remove(on_progress)
            if not run.waiting and not run.task.done():
                run.task.cancel()
                # Whoever asks from now on does not get what is ending.
                self._runs = {name: other for name, other in self._runs.items() if other is not run}

    def _end(self, name: tuple[bytes, bool], task: "asyncio.Future[bytes]") -> None:
        if (run := self._runs.get(name)) is not None and run.task is task:
            del self._runs[name]
        if task.cancelled() or task.exception() is not None:
            return
        key, answer = name[0], task.result()
        self._bytes += len(answer) - len(self._kept.pop(key, b""))
        self._kept[key] = answer
        while self._bytes > self._max_bytes:
            self._bytes -= len(self._kept.popitem(last=False)[1])
