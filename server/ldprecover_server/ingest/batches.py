"""Submissions on their way into the storage, and batches: counted, shuffled and sealed."""

import asyncio
import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldprecover import FrequencyOracle, Tally
from ldprecover_server.storage import Batch, SealedBatch

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


def make_batch(seq: int, submissions: Sequence[Submission]) -> Batch:
    """Return submissions to one round, hashed and counted before the transaction."""
    for submission in submissions:
        submission.hash()
    whole = _seal(submissions)

    def seal(positions: Sequence[int]) -> SealedBatch:
        if len(positions) < len(submissions):
            return _seal([submissions[i] for i in positions])
        return whole

    return Batch(seq, [(each.key, each.digest) for each in submissions], seal)


def _seal(submissions: Sequence[Submission]) -> SealedBatch:
    oracle = submissions[0].oracle
    ahead = [submission for submission in submissions if submission.counted is not None]
    others = [submission for submission in submissions if submission.counted is None]
    pieces = [np.frombuffer(submission.packed, oracle.wire.dtype) for submission in ahead]
    counted = [submission.counted for submission in ahead if submission.counted is not None]
    if others:
        # Joined as bytes, because numpy takes far longer for many small arrays.
        packed = (
            b"".join([submission.packed for submission in others])
            if len(others) > 1
            else others[0].packed
        )
        pieces.append(np.frombuffer(packed, oracle.wire.dtype))
        counted.append(Tally(oracle.summarise(pieces[-1]), len(pieces[-1])))
    tally = counted[0]
    if len(counted) > 1:
        summary = np.sum([part.summary for part in counted], axis=0)
        tally = Tally(summary, sum(part.n for part in counted))
    # Shuffled, so that a report's position reveals nothing about its submission.
    return SealedBatch(shuffled(pieces), tally)


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
