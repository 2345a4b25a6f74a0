"""Rounds that were added into one: what is known of each, and what all are called together."""

import hashlib
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ldprecover.errors import ParameterError

_FIELDS = {"round": str, "name": str, "n": int, "checksum": str}
_CHECKSUM = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, order=True)
class MergedRound:
    """One of the rounds in a merged export: id, name, number of reports, and the checksum of its
    own export.

    Raises ParameterError for a number that is not from 0, and for what is no checksum.
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
    """Return id and name of what these rounds give together, the same in whatever order and steps
    they are added.

    The id is M and the first 24 hexadecimal digits of SHA-256 over the rounds' checksums, in ASCII,
    in the order of the rounds' ids. The name is theirs; of rounds of several names, each once, in
    alphabetical order, with + between them.
    """
    digest = hashlib.sha256("".join(each.checksum for each in sorted(rounds)).encode("ascii"))
    return f"M{digest.hexdigest()[:24]}", "+".join(sorted({each.name for each in rounds}))


def check_merged(round: str, name: str, n: int, rounds: Sequence[MergedRound]) -> None:
    """Raise ParameterError unless an export of this id, name and n can have been merged of these
    rounds.
    """
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
    """Return what a checksum covers of merged rounds: `merged`, a zero byte, their number as u4,
    and each.

    Of each its n as u8, its checksum in ASCII, then id and name, each as a u4 length and its UTF-8
    bytes; little-endian.
    """
    packed = b"merged\0" + struct.pack("<I", len(rounds))
    for each in rounds:
        packed += struct.pack("<Q", each.n) + each.checksum.encode("ascii")
        for text in (each.round, each.name):
            utf8 = text.encode()
            packed += struct.pack("<I", len(utf8)) + utf8
    return packed


def read_merged(given: object) -> tuple[MergedRound, ...]:
    """Read the field `merged` of a file. Raises ParameterError."""
    if not isinstance(given, list):
        raise ParameterError("the export's merged is of another type")
    for each in given:
        if not isinstance(each, dict) or each.keys() != _FIELDS.keys():
            raise ParameterError(
                "each of the export's merged must have the fields round, name, n and checksum"
            )
        if any(type(each[field]) is not kind for field, kind in _FIELDS.items()):
            raise ParameterError("the export's merged has a field of another type")
    return tuple(MergedRound(**each) for each in given)
