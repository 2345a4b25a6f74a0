"""The immutable parameters of a round: what clients and server must agree on."""

import hashlib
import struct
from dataclasses import dataclass
from functools import cached_property

from ldprecover.errors import ParameterError
from ldprecover.protocols import OLH, FrequencyOracle, frequency_oracle

__all__ = ["RoundParameters"]


@dataclass(frozen=True)
class RoundParameters:
    """Protocol, epsilon, item labels and, for OLH, the hash range of one round.

    `items` are 2 to 100,000 distinct non-empty labels; item i is the i-th. `hash_range` is stored,
    so that neither side recomputes it; None takes OLH's default when the round is opened.
    Raises ParameterError.
    """

    protocol: str
    epsilon: float
    items: tuple[str, ...]
    hash_range: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", tuple(self.items))
        for i, label in enumerate(self.items):
            if not isinstance(label, str) or not label:
                raise ParameterError(f"every item must be a non-empty string; item {i} is not")
            try:
                label.encode()
            except UnicodeEncodeError:
                raise ParameterError(f"item {i} holds half a surrogate pair, which UTF-8 cannot write") from None
        if len(set(self.items)) != len(self.items):
            raise ParameterError("items must be distinct")
        oracle = frequency_oracle(self.protocol, self.epsilon, len(self.items), self.hash_range)
        object.__setattr__(self, "epsilon", oracle.epsilon)
        if isinstance(oracle, OLH):
            object.__setattr__(self, "hash_range", oracle.hash_range)

    @cached_property
    def oracle(self) -> FrequencyOracle:
        """The frequency oracle with these parameters."""
        return frequency_oracle(self.protocol, self.epsilon, len(self.items), self.hash_range)

    @cached_property
    def digest(self) -> str:
        """SHA-256 in hex over the parameters in a form any language can write.

        Protocol name in ASCII, a zero byte, epsilon as an IEEE double, hash range (0 for none) and
        number of items as u4, then each label as a u4 length and its UTF-8 bytes; little-endian.
        """
        sha = hashlib.sha256(self.protocol.encode("ascii") + b"\0")
        sha.update(struct.pack("<dII", self.epsilon, self.hash_range or 0, len(self.items)))
        for label in self.items:
            utf8 = label.encode()
            sha.update(struct.pack("<I", len(utf8)) + utf8)
        return sha.hexdigest()
