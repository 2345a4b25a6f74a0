"""A network backend for httpcore that limits the time of whole requests.

HTTP libraries limit each read and write alone. A server that sends one byte a second would keep
such a client busy for ever.
"""

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from ssl import SSLContext
from typing import Any, TypeVar

import httpcore

_WRITE_BYTES = 1 << 18
"""Bytes written before the connection is checked for an early response."""

T = TypeVar("T")


class TimeoutBackend(httpcore.NetworkBackend):
    """The network, with a limit for the request that each thread has in progress.

    A connection may be used by several threads, one after the other.
    """

    def __init__(self) -> None:
        self._network = httpcore.SyncBackend()
        self._thread = threading.local()

    @contextlib.contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """Let network steps of this thread time out after `seconds` in total."""
        self._thread.seconds, self._thread.end = seconds, time.monotonic() + seconds
        try:
            yield
        finally:
            del self._thread.end

    def step_timeout(self, timeout: float | None) -> float | None:
        """Return the seconds that the next step may take.

        Raises httpcore.ReadTimeout if the request has no time left.
        """
        end: float | None = getattr(self._thread, "end", None)
        if end is None:
            return timeout
        remaining = end - time.monotonic()
        if remaining <= 0:
            raise httpcore.ReadTimeout(f"no whole answer in {self._thread.seconds:g} seconds")
        return remaining if timeout is None else min(timeout, remaining)

    def run_step(self, step: Callable[[float | None], T], timeout: float | None) -> T:
        """Run a step with the seconds that it may take. Raises as `step_timeout` does."""
        try:
            return step(self.step_timeout(timeout))
        except httpcore.TimeoutException:
            self.step_timeout(timeout)  # raises if the request's time is over, not the step's
            raise

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        stream = self.run_step(
            lambda seconds: self._network.connect_tcp(
                host, port, seconds, local_address, socket_options
            ),
            timeout,
        )
        return _Stream(stream, self)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, backend: TimeoutBackend) -> None:
        self._stream = stream
        self._backend = backend

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._backend.run_step(functools.partial(self._stream.read, max_bytes), timeout)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _WRITE_BYTES):
            if start and self._has_response():
                # A server that rejects a body stops reading it. Writing on would cause a reset,
                # and the response would be lost. httpcore reads the response after a WriteError.
                raise httpcore.WriteError("the server answered before it had the whole body")
            piece = buffer[start : start + _WRITE_BYTES]
            try:
                self._backend.run_step(functools.partial(self._stream.write, piece), timeout)
            except httpcore.WriteTimeout:
                if self._has_response():
                    raise httpcore.WriteError(
                        "the server answered and reads no more of the body"
                    ) from None
                raise

    def _has_response(self) -> bool:
        # Under TLS the readable bytes may be a session ticket instead of a response.
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
        stream = self._backend.run_step(
            lambda seconds: self._stream.start_tls(ssl_context, server_hostname, seconds), timeout
        )
        return _Stream(stream, self._backend)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
