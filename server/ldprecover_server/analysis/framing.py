"""Messages between the server and a child process: a kind, a length and as many bytes, over
pipes.
"""

import struct
from typing import BinaryIO

# To the child.
QUESTION = b"Q"
"""A pickle of the question and the Limits of its answer. The server is trusted, the child is not.
"""
REPORTS = b"R"
"""Packed reports, a piece of them."""
ENOUGH = b"E"
"""That was all of them."""

# From the child.
WANTED = b"W"
"""The reports are needed: sent at most once for a question, and not for one that is refused before.
"""
PROGRESS = b"P"
"""How much is done, a double from 0 to 1."""
ANSWER = b"A"
"""The packed answer; the child is ready for another question."""
REFUSED = b"N"
"""A ParameterError, its text."""
TOO_LARGE = b"L"
"""The memory or the disk that it may use does not suffice: which, in words."""
FAILED = b"F"
"""Another exception: a line for the caller, which is empty where there is nothing to tell, and the
traceback.
"""

LAST = (ANSWER, REFUSED, TOO_LARGE, FAILED)
"""One of these ends the answer to a question."""

MAX_BYTES = 1 << 28
"""Of one message."""

_HEAD = struct.Struct("<cI")


def write(stream: BinaryIO, kind: bytes, body: bytes | memoryview = b"") -> None:
    """Send one message. Raises OSError when nobody reads."""
    stream.write(_HEAD.pack(kind, len(body)))
    stream.write(body)
    stream.flush()


def read(stream: BinaryIO) -> tuple[bytes, bytes]:
    """Return kind and body of the next message. Raises EOFError when there is none, or not all of
    it.
    """
    kind, length = _HEAD.unpack(_exactly(stream, _HEAD.size))
    if length > MAX_BYTES:
        raise EOFError(f"a message of {length} bytes")
    return kind, _exactly(stream, length)


def _exactly(stream: BinaryIO, length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data
