"""Bounds on the memory, time, threads and queues of one server process."""

import asyncio
import math
import random
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Generic, TypeVar

from anyio import CapacityLimiter, to_thread

from ldprecover_server.errors import BusyError
from ldprecover_server.settings import Settings

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

QUEUE_REQUESTS = 2_000
"""Submissions that wait for their commit; beyond it, 503. They take less than a second to commit,
and a quarter of the requests that the proxy of deploy/nginx has in progress."""
GROUP_BYTES = 8 << 20
"""Decoded bytes after which a commit takes no further submission. More would not save time: the
cost of a commit is then its bytes."""
SUBMISSION_CELLS = 1 << 31
"""Reports times items of one submission to a round whose reports hash; beyond it, 413. Also the
number after which a commit takes no further submission. Counting them takes 0.2 seconds with numba
and 2.4 with numpy, and no other submission is counted meanwhile. The client's batches are no
larger."""
BODY_SECONDS = 30.0
"""Time for a request body to arrive; beyond it, 408. The largest body needs 4.5 Mbit/s."""
ANONYMOUS_BODY_SECONDS = 10.0
"""The same for a caller without a key, whose body is small."""
READS = 1_000
"""Calls that wait to read from the database, with and without a key each; beyond it, 503: a lecture
hall that opens a survey. They take milliseconds each, so that more would only wait for a database
that does not answer."""
ANALYSIS_QUEUE = 32
"""Analyses that wait for a worker process, half of them of callers without a key; beyond it, 503.
More would wait for longer than their callers do."""
ANALYSIS_CACHE_BYTES = 16 << 20
"""Memory of cached results, divided among the processes: one of 100,000 items takes 5 MiB."""
ANONYMOUS_BYTES = 1 << 20
"""The largest body of an anonymous caller."""
DECODED_BYTES = 4 * ANONYMOUS_BYTES
"""Bytes of large bodies of anonymous callers that may be in progress in all processes."""
UNWRITTEN_BYTES = 16 << 20
"""Bytes of results that wait for a thread to write them, of anonymous callers."""
REFUSALS = 60
"""Wrong keys and tickets of an address, in each process; beyond it, 429."""
REFUSALS_PER_SECOND = 1.0
"""Those that are added to them."""
RETURNS = 500
"""Callers a second that come back to a busy process: half of what it answers."""
_RETURN_SECONDS = 60.0
"""The longest time until one is told to come back."""
_LARGE_ITEMS = 4096
"""Items of a round from which on its responses are written one at a time."""
_SWEEP_SECONDS = 1.0
"""The longest delay of a timeout."""


class MemoryBudget:
    """At most `limit` bytes reserved at a time. For use from any thread."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.reserved = 0
        self._lock = threading.Lock()

    def reserve(self, n: int) -> bool:
        """Reserve `n` bytes; return False if there is no room."""
        with self._lock:
            if self.reserved + n > self.limit:
                return False
            self.reserved += n
            return True

    def release(self, n: int) -> None:
        """Release reserved bytes."""
        with self._lock:
            self.reserved -= n

    @contextmanager
    def hold(self, n: int) -> Iterator[None]:
        """Reserve `n` bytes inside the `with` block. Raises BusyError if there is no room."""
        if not self.reserve(n):
            raise BusyError(
                f"requests in progress use the {self.limit} bytes of memory for them; retry later, "
                "or send a smaller request"
            )
        try:
            yield
        finally:
            self.release(n)


class ReturnTimes:
    """When callers come back that found the process busy: RETURNS a second, with jitter.

    All that are told the same time would find it busy again. For use in one event loop.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = 0.0

    def seconds(self, least: float) -> float:
        """Return the seconds until the next caller comes back."""
        now = self._clock()
        self._last = min(max(self._last, now) + 1 / RETURNS, now + _RETURN_SECONDS)
        return least + (self._last - now) * random.uniform(0.5, 1.5)


class Cache(Generic[K, T]):
    """The values used last, whose sizes are `limit` together at most. For use from any thread."""

    def __init__(self, limit: int, size: Callable[[T], int]) -> None:
        self._free = limit
        self._size = size
        self._values: OrderedDict[K, T] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: K) -> T | None:
        """Return a value and mark it as used; None if it is not cached."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def add(self, key: K, value: T) -> None:
        """Add or replace a value; evict those unused for longest above the limit."""
        with self._lock:
            self.remove(key)
            self._values[key] = value
            self._free -= self._size(value)
            while self._free < 0:
                self._free += self._size(self._values.popitem(last=False)[1])

    def remove(self, key: K) -> None:
        """Remove a value, if it is cached."""
        with self._lock:
            if key in self._values:
                self._free += self._size(self._values.pop(key))


class Timeouts:
    """Calls back for each operation that does not end within `seconds`, at most one second late.

    A timer of the event loop for each request would cost more than reading the request. For use in
    one event loop.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._interval = min(seconds, _SWEEP_SECONDS)
        self._pending: dict[int, tuple[float, Callable[[], None]]] = {}  # by due time
        self._number = 0
        self._is_sweeping = False
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop, cached: `get_running_loop` costs a system call (getpid)."""
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.get_running_loop()
            self._is_sweeping = False
        return self._loop

    def add(self, on_timeout: Callable[[], None]) -> int:
        """Call `on_timeout` after `seconds`, unless `remove` is called with the returned number."""
        loop = self.loop
        self._number += 1
        self._pending[self._number] = (loop.time() + self.seconds, on_timeout)
        if not self._is_sweeping:
            self._is_sweeping = True
            loop.call_later(self._interval, self._sweep)
        return self._number

    def remove(self, number: int) -> None:
        """Remove an operation that has ended."""
        self._pending.pop(number, None)

    def _sweep(self) -> None:
        now = self.loop.time()
        while self._pending:
            number, (due, on_timeout) = next(iter(self._pending.items()))
            if due > now:
                break
            del self._pending[number]
            on_timeout()
        self._is_sweeping = bool(self._pending)
        if self._is_sweeping:
            self.loop.call_later(self._interval, self._sweep)


class ThreadPool:
    """At most `threads` calls run at a time, and at most `waiting` wait, each up to `seconds`.

    So one kind of call cannot delay another kind, and while the database hangs, callers get an
    error after `seconds`. A cancelled caller leaves the queue. A call that runs keeps its thread
    until it returns, even if its caller is cancelled: Python cannot stop a thread, and clients that
    disconnect and retry could otherwise run any number of calls. For use in one event loop.
    """

    def __init__(
        self, threads: int, waiting: int = sys.maxsize, seconds: float | None = None
    ) -> None:
        self._seconds = seconds
        self._limit = threads + waiting
        self._free = asyncio.Semaphore(threads)
        self._waiting = 0
        self._running: set[asyncio.Future[Any]] = set()

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function in a thread and return its result.

        Raises BusyError if the queue is full or no thread is free in time, and any error of the
        function; SystemExit and KeyboardInterrupt, which would end the server, as RuntimeError.
        """
        calls = self._waiting + len(self._running)
        if calls >= self._limit:
            raise BusyError(f"{calls} calls of this kind run or wait, which is the limit")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                await self._free.acquire()
        except TimeoutError:
            raise BusyError(f"no thread was free in {self._seconds:g} seconds") from None
        finally:
            self._waiting -= 1
        # The semaphore bounds the threads. anyio's limiter alone would not: it counts a call as
        # ended when its caller is cancelled.
        call = asyncio.ensure_future(
            to_thread.run_sync(function, *arguments, limiter=CapacityLimiter(1))
        )
        self._running.add(call)
        call.add_done_callback(self._end)
        return await asyncio.shield(call)

    def _end(self, call: asyncio.Future[Any]) -> None:
        self._running.discard(call)
        self._free.release()
        if not call.cancelled():
            call.exception()  # the caller may be gone; asyncio would log it as never retrieved

    async def drain(self, seconds: float) -> None:
        """Wait until no call runs, at most `seconds`."""
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)


class SharedCall(Generic[T]):
    """A blocking call whose result is shared by all who ask meanwhile, or `seconds` after its end.

    So any number of callers take one thread. For use in one event loop.
    """

    def __init__(self, function: Callable[[], T], seconds: float) -> None:
        self.seconds = seconds
        self._function = function
        self._pool = ThreadPool(1)
        self._call: asyncio.Future[T] | None = None
        self._ended_at = 0.0

    async def result(self) -> T:
        """Return the result. Raises what the function raises."""
        loop = asyncio.get_running_loop()
        if self._call is None or (
            self._call.done() and loop.time() >= self._ended_at + self.seconds
        ):
            self._ended_at = math.inf  # callbacks run a turn after the end
            self._call = asyncio.ensure_future(self._pool.run(self._function))
            self._call.add_done_callback(self._end)
        return await asyncio.shield(self._call)

    def _end(self, call: asyncio.Future[T]) -> None:
        self._ended_at = call.get_loop().time()
        if not call.cancelled():
            call.exception()  # the callers may be gone; asyncio would log it as never retrieved

    async def drain(self, seconds: float) -> None:
        """Wait until the call does not run, at most `seconds`."""
        await self._pool.drain(seconds)


class BodyMemory:
    """The memory and time of request bodies, from their first byte until they are decoded.

    A body that does not arrive within BODY_SECONDS, of an anonymous caller within
    ANONYMOUS_BODY_SECONDS, gets a 408.
    """

    def __init__(self, limit: int) -> None:
        self.budget = MemoryBudget(limit)
        self.threads = CapacityLimiter(1)  # decoded JSON takes many times the memory of its text
        self.timeouts = Timeouts(BODY_SECONDS)
        self.anonymous_timeouts = Timeouts(ANONYMOUS_BODY_SECONDS)


class Limits:
    """The thread pools, memory budgets and locks that the requests of one process share."""

    def __init__(self, settings: Settings) -> None:
        self.max_body_bytes = settings.max_body_bytes
        self.verdict_reports = settings.verdict_reports
        self.bodies = BodyMemory(settings.queue_bytes)
        self.decoded = MemoryBudget(max(ANONYMOUS_BYTES, DECODED_BYTES // settings.workers))
        """For large bodies of anonymous callers, from decoding to the response. Decoded they take
        up to 20 times the memory, and an analysis may wait for minutes with them."""
        self.unwritten = MemoryBudget(UNWRITTEN_BYTES // settings.workers)
        """For results of anonymous callers that wait for a thread to write them."""
        self._writing = threading.Lock()
        seconds = settings.request_seconds
        self.submitting = ThreadPool(2, QUEUE_REQUESTS, seconds)
        """For the lookups of submissions."""
        self.reading = ThreadPool(2, READS, seconds)
        """For anonymous callers."""
        self.keyed = ThreadPool(2, READS, seconds)
        """For callers with a key."""

    def write(self, items: int) -> AbstractContextManager[object]:
        """Return the context in which a response with this number of items is written.

        The items, columns and text of a large one take 100 MiB, so one is written at a time.
        """
        return self._writing if items >= _LARGE_ITEMS else nullcontext()

    async def drain(self, seconds: float) -> None:
        """Wait until no thread pool runs a call, at most `seconds`."""
        pools = (self.submitting, self.reading, self.keyed)
        await asyncio.gather(*(pool.drain(seconds) for pool in pools))
