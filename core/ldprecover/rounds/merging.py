"""Merged rounds: the parts of an export that was added from several rounds, and its id and name."""

import hashlib
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ldprecover.errors import ParameterError
from ldprecover.rounds.parameters import text_bytes

_CHECKSUM = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, order=True)
class MergedRound:
    """One round of a merged export: id, name, number of reports, checksum of its export.

    Raises ParameterError for a negative number, and for a text that is not a checksum.
    """

    round: str
    name: str
    n: int
    checksum: str

    def __post_init__(self) -> None:
        if type(self.n) is not int or not 0 <= self.n < 1 << 63:
            raise ParameterError("the n of a merged round must be an integer from 0")
        if not _CHECKSUM.fullmatch(self.checksum):
            raise ParameterError("the checksum of a merged round must be 64 hexadecimal digits")


def called_together(rounds: Sequence[MergedRound]) -> tuple[str, str]:
    """Return id and name of the sum of these rounds.

    They do not depend on the order and the steps of the additions. The id is M and the first 24
    hexadecimal digits of SHA-256 over the rounds' checksums, in ASCII, in the order of the rounds'
    ids. The name is that of the rounds; different names are joined by + in alphabetical order.
    """
    digest = hashlib.sha256("".join(each.checksum for each in sorted(rounds)).encode("ascii"))
    return f"M{digest.hexdigest()[:24]}", "+".join(sorted({each.name for each in rounds}))


def check_merged(round: str, name: str, n: int, rounds: Sequence[MergedRound]) -> None:
    """Raise ParameterError unless an export of this id, name and n can be the sum of the rounds."""
    ids = [each.round for each in rounds]
    if len(ids) < 2 or ids != sorted(set(ids)):
        raise ParameterError(
            "merged must be two rounds or more, each once, in the order of their ids"
        )
    if sum(each.n for each in rounds) != n:
        raise ParameterError("the n of the merged rounds do not add up to the n of the export")
    if (round, name) != called_together(rounds):
        raise ParameterError(
            "id and name of a merged export must be those that follow from its rounds"
        )


def bytes_of(rounds: Sequence[MergedRound]) -> bytes:
    """Return the bytes of merged rounds that a checksum covers.

    `merged`, a zero byte, the number of rounds as u4; then for each round its n as u8, its checksum
    in ASCII, id and name, each as a u4 length and its UTF-8 bytes; little-endian.
    """
    packed = b"merged\0" + struct.pack("<I", len(rounds))
    for each in rounds:
        packed += struct.pack("<Q", each.n) + each.checksum.encode("ascii")
        packed += text_bytes(each.round, each.name)
    return packed
