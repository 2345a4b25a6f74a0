"""Submissions on their way into the store, and batches of them: counted, shuffled and sealed."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ldprecover import FrequencyOracle, Tally
from ldprecover.evidence.quarantine import split_by_size
from ldprecover.types import BoolArray, Reports
from ldprecover_server.shuffle import shuffled
from ldprecover_server.storage import SealedBatch

_KEY_BYTES = 16
_LONG = (
    1 << 19
)  # items to hash, which take numba 0.05 to 0.15 ms: a change of thread is a fraction of it
_TALLY_SHARE = (
    8  # a tally that waits takes at most an eighth of what its reports take, which is bounded
)


class Submission:
    """One submission on its way: `packed` reports, checked; the answer awaited.

    Stored are the first bytes of SHA-256 of the submission key, and of a digest of the packed
    reports that is salted with the key itself: without the key, neither tells anything of the
    report. With `quarantine` the round sets reports of impossible sizes aside.
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
        "quarantine",
        "seq",
    )

    def __init__(
        self,
        seq: int,
        oracle: FrequencyOracle,
        submission_key: str,
        packed: bytes | bytearray,
        *,
        quarantine: bool = False,
    ) -> None:
        key = submission_key.encode("ascii")
        self.seq = seq
        self.oracle = oracle
        self.packed = packed
        self.quarantine = quarantine
        self.cells = len(packed) // oracle.report_size * oracle.hash_tests
        self.key = hashlib.sha256(key).digest()[:_KEY_BYTES]
        self._salt = key + b"\0"
        self.digest = b""
        self.future: asyncio.Future[bool] | None = None
        self.counted: _Counted | None = None

    @property
    def takes_long(self) -> bool:
        """Whether it is to be counted ahead of its group: for long, and with a tally that is small
        beside its bytes.
        """
        return self.cells >= _LONG and _TALLY_SHARE * 8 * self.oracle.summary_size <= len(
            self.packed
        )

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.future is not None and self.future.done()

    def hash(self) -> None:
        """Take the digest, which of megabytes takes milliseconds: the event loop leaves it to the
        writer.
        """
        digest = hashlib.sha256(self._salt)
        digest.update(self.packed)
        self.digest = digest.digest()[:_KEY_BYTES]

    def count(self) -> None:
        """Count its reports ahead of its group."""
        reports = np.frombuffer(self.packed, dtype=self.oracle.report_dtype)
        self.counted = _Counted.of(self.oracle, reports, self.quarantine)


@dataclass(frozen=True)
class _Counted:
    """The tally of some reports, and which of them are set aside and not in it; None where none can
    be.
    """

    tally: Tally
    bad: BoolArray | None

    @classmethod
    def of(cls, oracle: FrequencyOracle, reports: Reports, quarantine: bool) -> "_Counted":
        if not quarantine:
            return cls(Tally.of(oracle, reports), None)
        bad, tally = split_by_size(oracle, reports)
        return cls(tally, bad)


@dataclass
class Batch:
    """The submissions of one group for one round, hashed and counted before the transaction
    begins.
    """

    seq: int
    submissions: list[Submission] = field(default_factory=list)
    whole: SealedBatch | None = None
    aside: int = 0
    """Reports that were set aside of what was sealed last."""

    def count(self) -> None:
        """Take the digests of all submissions, and count, shuffle and seal them."""
        for submission in self.submissions:
            submission.hash()
        self.whole = self._sealed(self.submissions)

    def seal(self, fresh: Sequence[int]) -> SealedBatch:
        assert self.whole is not None
        all_of_it = len(fresh) == len(self.submissions)
        sealed = self.whole if all_of_it else self._sealed([self.submissions[i] for i in fresh])
        self.aside = sealed.n_quarantined
        return sealed

    @staticmethod
    def _sealed(submissions: list[Submission]) -> SealedBatch:
        oracle, quarantine = submissions[0].oracle, submissions[0].quarantine
        ahead = [submission for submission in submissions if submission.counted is not None]
        others = [submission for submission in submissions if submission.counted is None]
        pieces = [np.frombuffer(submission.packed, oracle.report_dtype) for submission in ahead]
        counted = [submission.counted for submission in ahead if submission.counted is not None]
        if others:
            # Joined as bytes: numpy takes far longer to join many small arrays.
            packed = (
                b"".join([submission.packed for submission in others])
                if len(others) > 1
                else others[0].packed
            )
            pieces.append(np.frombuffer(packed, oracle.report_dtype))
            counted.append(_Counted.of(oracle, pieces[-1], quarantine))
        tally = counted[0].tally
        if len(counted) > 1:
            summary = np.sum([part.tally.summary for part in counted], axis=0)
            tally = Tally(summary, sum(part.tally.n for part in counted))
        # Shuffled, so that a stored report's place says nothing of the submission it came in.
        if not quarantine:
            return SealedBatch(shuffled(pieces), tally)
        bad = [part.bad for part in counted if part.bad is not None]
        kept = [piece[~of] for piece, of in zip(pieces, bad, strict=True)]
        aside = [piece[of] for piece, of in zip(pieces, bad, strict=True)]
        return SealedBatch(shuffled(kept), tally, shuffled(aside), sum(map(len, aside)))
