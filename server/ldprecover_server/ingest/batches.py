"""Submissions on their way into the storage, and batches of them: counted and shuffled."""

import asyncio
import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldprecover import FrequencyOracle, Tally
from ldprecover_server.storage import Batch

_KEY_BYTES = 16
_MANY_CELLS = 1 << 19  # hashed in 0.05 to 0.15 ms; a thread switch takes a fraction of it
_TALLY_SHARE = 8  # a waiting tally takes at most 1/8 of its reports' memory, which is limited
GROUP_TALLY_BYTES = 8 << 20
"""Bytes of the tallies of a group's rounds: ten of 100,000 items. The commit has about three copies
of each, and all submissions of the group wait until all are written."""


class Submission:
    """A submission of checked, `packed` reports that waits for its commit.

    The storage keeps the first bytes of the key's SHA-256, and of a digest of the reports that is
    salted with the key: without the key neither reveals anything about the reports.
    """

    __slots__ = (
        "_salt",
        "cells",
        "counted",
        "digest",
        "future",
        "key",
        "oracle",
        "packed",
        "seq",
        "tally_bytes",
    )

    def __init__(
        self,
        seq: int,
        oracle: FrequencyOracle,
        submission_key: str,
        packed: bytes | bytearray,
    ) -> None:
        key = submission_key.encode("ascii")
        self.seq = seq
        self.oracle = oracle
        self.packed = packed
        self.tally_bytes = 8 * oracle.summary_size
        """The memory of a tally of its round."""
        self.cells = len(packed) // oracle.wire.size * oracle.hash_tests
        self.key = hashlib.sha256(key).digest()[:_KEY_BYTES]
        self._salt = key + b"\0"
        self.digest = b""
        self.future: asyncio.Future[bool] | None = None
        self.counted: Tally | None = None

    @property
    def takes_long(self) -> bool:
        """Whether it is counted before its group: many cells, and a comparatively small tally."""
        return self.cells >= _MANY_CELLS and _TALLY_SHARE * self.tally_bytes <= len(self.packed)

    @property
    def is_over(self) -> bool:
        """Whether it has been answered."""
        return self.future is not None and self.future.done()

    def hash(self) -> None:
        """Compute the digest, in the writer's thread: megabytes take milliseconds."""
        digest = hashlib.sha256(self._salt)
        digest.update(self.packed)
        self.digest = digest.digest()[:_KEY_BYTES]

    def count(self) -> None:
        """Count its reports before its group does."""
        reports = np.frombuffer(self.packed, dtype=self.oracle.wire.dtype)
        self.counted = Tally(self.oracle.summarise(reports), len(reports))


class SubmissionBatch(Batch):
    """Submissions to one round, hashed, counted and shuffled before the transaction."""

    def __init__(self, submissions: Sequence[Submission]) -> None:
        for submission in submissions:
            submission.hash()
        self.seq = submissions[0].seq
        self.hashes = [(each.key, each.digest) for each in submissions]
        self._submissions = submissions
        self._rows = _rows_of(submissions)

    def rows(self, positions: Sequence[int]) -> tuple[bytes, Tally]:
        if len(positions) == len(self._submissions):
            return self._rows
        return _rows_of([self._submissions[i] for i in positions])


def _rows_of(submissions: Sequence[Submission]) -> tuple[bytes, Tally]:
    """Return the shuffled reports of submissions to one round, and their tally."""
    oracle = submissions[0].oracle
    pieces, tallies, others = [], [], []
    for submission in submissions:
        if submission.counted is None:
            others.append(submission.packed)
        else:
            pieces.append(np.frombuffer(submission.packed, oracle.wire.dtype))
            tallies.append(submission.counted)
    if others:
        # Joined as bytes, because numpy takes far longer for many small arrays.
        packed = others[0] if len(others) == 1 else b"".join(others)
        pieces.append(np.frombuffer(packed, oracle.wire.dtype))
        tallies.append(Tally(oracle.summarise(pieces[-1]), len(pieces[-1])))
    tally = tallies[0]
    if len(tallies) > 1:
        summary = np.sum([each.summary for each in tallies], axis=0)
        tally = Tally(summary, sum(each.n for each in tallies))
    # Shuffled, so that a report's position reveals nothing about its submission.
    return shuffled(pieces), tally


def shuffled(pieces: Sequence[NDArray[Any]]) -> bytes:
    """Return the bytes of all rows of arrays of one dtype, in random order.

    Each call takes a new 128-bit key for Philox from the operating system and forgets it. So
    nobody outside the process can predict the order, and the order of one segment says nothing
    about that of another. No attack is known that recovers a key of Philox from its output, and of
    that the stored order shows only a part.
    """
    rows = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    if len(rows) > 1:
        generator = np.random.Generator(np.random.Philox(key=secrets.randbits(128)))
        # Six times as fast as rows[...] for rows of several bytes.
        rows = rows.take(generator.permutation(len(rows)), axis=0)
    return rows.tobytes()
