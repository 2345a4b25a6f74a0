"""Ends a server process that a plugin's endless loop holds, with the stack of every thread.

Python cannot stop a thread. A loop in the event loop stops every request and SIGTERM; one in
another thread stops every submission, or all reads. The event loop restarts a timer of the
process's processor time each second, unless a thread has been in a plugin's code for too long. So
neither a suspended machine nor a debugger ends the process.
"""

import asyncio
import contextlib
import ctypes
import faulthandler
import signal
import time
from collections.abc import Iterator

_TURN_SECONDS = 1.0
_calls: dict[object, float] = {}
"""The start of each call of `watched` in progress."""


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Watch the block, which may run a plugin's code, in a thread that is not the event loop's."""
    call = object()
    _calls[call] = time.monotonic()
    try:
        yield
    finally:
        del _calls[call]


async def run_watchdog(seconds: float) -> None:
    """End the process after these seconds of processor time in a loop. Runs until cancelled."""
    # The default action of a signal does not end the first process of a container, and a handler in
    # Python waits for the loop. `_exit` as handler does neither; faulthandler calls it at the end.
    libc = ctypes.CDLL(None)
    libc.signal(signal.SIGPROF, libc._exit)
    faulthandler.register(signal.SIGPROF, chain=True)
    try:
        while True:
            longest = time.monotonic() - seconds
            if all(start > longest for start in list(_calls.values())):
                signal.setitimer(signal.ITIMER_PROF, seconds)
            await asyncio.sleep(_TURN_SECONDS)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
