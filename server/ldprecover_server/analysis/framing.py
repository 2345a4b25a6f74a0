"""Messages between the server and a worker over pipes: a kind, a length, and that many bytes."""

import errno
import struct
from typing import BinaryIO

# To the worker.
TASK = b"Q"
"""A pickle of the task and its TaskLimits. The worker trusts the server, not vice versa."""
REPORTS = b"R"
"""A piece of the packed reports."""
END_OF_REPORTS = b"E"

# From the worker.
SEND_REPORTS = b"W"
"""Requests the reports, at most once per task; not for a task that is rejected before."""
RESULT = b"A"
"""The packed result; the worker is ready for the next task."""
REJECTED = b"N"
"""The message of a ParameterError."""
TOO_LARGE = b"L"
"""A message: the limit of disk was exceeded."""
FAILED = b"F"
"""Another error: a line for the caller, which may be empty, and the traceback."""

FINAL = (RESULT, REJECTED, TOO_LARGE, FAILED)
"""Each task ends with one of these, or with the worker's process."""

OUT_OF_MEMORY = errno.ENOMEM
"""The exit status of a worker that exceeds its limit of memory. It may happen in a message."""

MAX_BYTES = 1 << 28
"""The longest message in bytes."""

_HEADER = struct.Struct("<cI")


def write(stream: BinaryIO, kind: bytes, body: bytes | memoryview = b"") -> None:
    """Write one message. Raises OSError if the other side has closed the pipe."""
    stream.write(_HEADER.pack(kind, len(body)))
    stream.write(body)
    stream.flush()


def read(stream: BinaryIO) -> tuple[bytes, bytes]:
    """Return kind and body of the next message. Raises EOFError at the end of the stream."""
    kind, length = _HEADER.unpack(_read_exactly(stream, _HEADER.size))
    if length > MAX_BYTES:
        raise EOFError(f"a message of {length} bytes; at most {MAX_BYTES} are allowed")
    return kind, _read_exactly(stream, length)


def _read_exactly(stream: BinaryIO, length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data
