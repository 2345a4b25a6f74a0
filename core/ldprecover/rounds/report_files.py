"""The files of a report dataset, as an export states them."""

import hashlib
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ldprecover.errors import ParameterError
from ldprecover.rounds.parameters import text_bytes

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, order=True)
class ReportPart:
    """One file of reports: hour of its folder since the epoch, name, number of reports, SHA-256.

    Raises ParameterError for an hour outside 0 to 2^31 - 1, for a name that is not 1 to 128
    letters, digits, dots, underscores and hyphens beginning with a letter or digit, for fewer than
    one report, and for a digest that is not 64 small hexadecimal digits.
    """

    hour: int
    name: str
    n: int
    sha256: str

    def __post_init__(self) -> None:
        if type(self.hour) is not int or not 0 <= self.hour < 1 << 31:
            raise ParameterError("a part's hour must be an integer from 0, and below 2^31")
        if type(self.name) is not str or not _NAME.fullmatch(self.name):
            raise ParameterError(
                "a part's name must be a plain file name of letters, digits, dots, _ and -"
            )
        if type(self.n) is not int or not 1 <= self.n < 1 << 63:
            raise ParameterError("a part's n must be an integer of at least 1, and below 2^63")
        if type(self.sha256) is not str or not _SHA256.fullmatch(self.sha256):
            raise ParameterError("a part's sha256 must be 64 small hexadecimal digits")

    def to_bytes(self) -> bytes:
        """Return the bytes that checksums cover.

        Hour and n as u8, the SHA-256, then the name as a u4 length and ASCII.
        """
        numbers = struct.pack("<QQ", self.hour, self.n)
        return numbers + bytes.fromhex(self.sha256) + text_bytes(self.name)


def check_parts(parts: Sequence[ReportPart], n: int) -> None:
    """Raise ParameterError if a file is listed twice, or all files have more than n reports."""
    if len({(part.hour, part.name) for part in parts}) != len(parts):
        raise ParameterError("the export's reports list a part twice")
    if sum(part.n for part in parts) > n:
        raise ParameterError(
            f"the export's parts have more reports together than the {n} of its tally"
        )


def digest_of_parts(parts: Sequence[ReportPart]) -> bytes:
    """Return SHA-256 over the parts in order, each in the form of `ReportPart.to_bytes`."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part.to_bytes())
    return sha.digest()
