"""One child process, and the conversation with it."""

import contextlib
import logging
import math
import os
import pickle
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import BinaryIO, cast

from ldprecover import plugins
from ldprecover.errors import ParameterError
from ldprecover_server.analysis import __name__ as package
from ldprecover_server.analysis import framing
from ldprecover_server.analysis.tasks import Task
from ldprecover_server.analysis.worker import BETWEEN, FETCHED, Limits
from ldprecover_server.errors import AnalysisFailedError, AnalysisTooLargeError

_log = logging.getLogger(package)

_PIECE = 1 << 20  # bytes of reports in one message

_INHERITED = ("HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "PYTHONHOME", "PYTHONPATH", "TMPDIR")

# One thread a child.
_SET = {
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Return what a child's environment holds: nothing of the server's settings, keys and
    database.
    """
    # numpy counts to the same bits as numba, whose import takes a second and 90 MB of a child: it
    # has it once it is asked of many reports, unless the server is to do without.
    kernels = "numpy" if ours.get("LDPRECOVER_KERNELS") == "numpy" else "late"
    return (
        {name: ours[name] for name in _INHERITED if name in ours}
        | _SET
        | {"LDPRECOVER_KERNELS": kernels}
    )


class WorkerProcess:
    """A process that answers questions, one at a time. `kill` may be called from any thread."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603  nothing of it comes from a caller
            [
                sys.executable,
                "-P",
                str(Path(__file__).with_name("__main__.py")),
                *plugins.loaded(plugins.GROUPS[:2]),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(os.environ),
            process_group=0,  # Ctrl-C is for the server
        )
        self._in = cast(BinaryIO, self._process.stdin)
        self._out = cast(BinaryIO, self._process.stdout)
        self._killed = False
        self._over = False
        """Killed, or at a loss: nothing more is asked of it."""

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid

    @property
    def is_over(self) -> bool:
        """Whether it can be asked no more: it was killed, died by itself, or left a question
        without an answer.
        """
        return self._over or self._process.poll() is not None

    def ask(
        self,
        question: Task,
        limits: Limits,
        pieces: Iterable[bytes] | None,
        on_progress: Callable[[float], None],
    ) -> bytes:
        """Return the packed answer, sending the packed reports in `pieces` if they are needed.

        Raises ParameterError; and AnalysisTooLargeError, AnalysisFailedError and what `pieces`
        raises, after which the process is over.
        """
        ready, self._over = not self._over, True
        if not ready:
            raise AnalysisFailedError("the process that was to work on it has ended")
        try:
            framing.write(self._in, framing.QUESTION, pickle.dumps((question, limits)))
            whole = question.tally.n * question.oracle.report_size
            kind, body = self._listen(pieces or (), whole, on_progress)
        except (EOFError, BrokenPipeError) as error:
            raise AnalysisFailedError("the process that worked on it has ended") from error
        if kind == framing.TOO_LARGE:
            raise AnalysisTooLargeError(body.decode())
        if kind == framing.FAILED:
            said, _, trace = body.decode().partition("\n")
            _log.error("an analysis failed:\n%s", trace)
            raise AnalysisFailedError(said or "the server's log says why")
        self._over = self._killed
        if kind == framing.REFUSED:
            raise ParameterError(body.decode())
        return body

    def _listen(
        self, pieces: Iterable[bytes], whole: int, on_progress: Callable[[float], None]
    ) -> tuple[bytes, bytes]:
        """Return the message that ends the conversation."""
        while True:
            kind, body = framing.read(self._out)
            if kind == framing.PROGRESS:
                on_progress(struct.unpack("<d", body)[0])
            elif kind == framing.WANTED:
                self._send(pieces, whole, on_progress)
            elif kind in framing.LAST:
                return kind, body
            else:
                raise EOFError(f"a message of an unknown kind, {kind!r}")

    def _send(
        self, pieces: Iterable[bytes], whole: int, on_progress: Callable[[float], None]
    ) -> None:
        # The pipe holds 64 KiB, and the child reads no faster than it writes: no more than a piece
        # waits here.
        sent, told = 0, -math.inf
        for piece in pieces:
            view = memoryview(piece)
            for start in range(0, len(view), _PIECE):
                framing.write(self._in, framing.REPORTS, view[start : start + _PIECE])
            sent += len(view)
            if (now := time.monotonic()) - told >= BETWEEN:
                told = now
                on_progress(FETCHED * min(1.0, sent / whole))
        framing.write(self._in, framing.ENOUGH)

    def kill(self) -> None:
        """End it now, whatever it does; whoever waits for its answer gets AnalysisFailedError."""
        self._killed = self._over = True
        self._process.kill()

    def close(self) -> None:
        """Kill it, wait for its end, which is at once, and close what led to it; for when nobody
        asks any more.
        """
        self.kill()
        self._process.wait()
        for stream in (self._in, self._out):
            with contextlib.suppress(OSError):  # what was not sent has nobody to go to
                stream.close()
