"""Connections on which a whole request ends in time, however slowly its answer trickles in."""

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from ssl import SSLContext
from typing import Any, TypeVar

import httpcore

_PIECE = 1 << 18  # written in one step

T = TypeVar("T")


class Deadline(httpcore.NetworkBackend):
    """The network, with an end to each request: HTTP libraries bound each step alone, and steps can
    be many.

    Each thread has its own; connections may go from one thread to another.
    """

    def __init__(self) -> None:
        self._network = httpcore.SyncBackend()
        self._thread = threading.local()

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Fail what this thread still waits for after so many seconds, with a timeout of
        httpcore's.
        """
        self._thread.seconds, self._thread.end = seconds, time.monotonic() + seconds
        try:
            yield
        finally:
            del self._thread.end

    def left(self, timeout: float | None) -> float | None:
        """Return how long the next step may take. Raises httpcore.ReadTimeout when there is no time
        left.
        """
        end: float | None = getattr(self._thread, "end", None)
        if end is None:
            return timeout
        left = end - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout(f"no whole answer in {self._thread.seconds:g} seconds")
        return left if timeout is None else min(timeout, left)

    def step(self, act: Callable[[float | None], T], timeout: float | None) -> T:
        """Do one step, given how long it may take. Raises as `left` does, also when the time ends
        within the step.
        """
        try:
            return act(self.left(timeout))
        except httpcore.TimeoutException:
            self.left(timeout)
            raise

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        network = self._network
        stream = self.step(
            lambda left: network.connect_tcp(host, port, left, local_address, socket_options),
            timeout,
        )
        return _Stream(stream, self)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._deadline.step(lambda left: self._stream.read(max_bytes, left), timeout)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE):
            if start and self._has_answer():
                # A server that refuses a body reads no more of it. The HTTP library takes this
                # error for a reason to read the answer; what is still written would bring a reset,
                # and the answer would be lost.
                raise httpcore.WriteError("the server answered before it had the whole body")
            piece = buffer[start : start + _PIECE]
            try:
                self._deadline.step(functools.partial(self._stream.write, piece), timeout)
            except httpcore.WriteTimeout:
                if self._has_answer():
                    raise httpcore.WriteError(
                        "the server answered and reads no more of the body"
                    ) from None
                raise

    def _has_answer(self) -> bool:
        # Under TLS there may be something to read other than the answer, such as a session's
        # ticket.
        return self.get_extra_info("ssl_object") is None and bool(
            self.get_extra_info("is_readable")
        )

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        stream = self._deadline.step(
            lambda left: self._stream.start_tls(ssl_context, server_hostname, left), timeout
        )
        return _Stream(stream, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
