"""The immutable parameters of a round, on which clients and server must agree."""

from __future__ import annotations

import hashlib
import struct
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from functools import cached_property
from os.path import commonprefix
from typing import Any, Self

from ldprecover.errors import ParameterError
from ldprecover.estimation import means
from ldprecover.items import label_key, quoted
from ldprecover.protocols import FrequencyOracle, frequency_oracle, own_parameter

MAX_LABEL = 300
"""Code points of a label."""
TEXTS = {"question": 300, "title": 120, "thanks": 300, "language": 35}
"""The texts that a round shows and their language, a BCP 47 tag, with their most code points. They
are optional, and its digest does not have them."""


@dataclass(frozen=True)
class RoundParameters:
    """Protocol, epsilon, item labels and the protocol's own parameters of one round.

    `items` are 2 to 100,000 labels of at most 300 characters, none blank or with a control
    character, no two with one `label_key`; item i is the i-th. With `stored`, for rounds that an
    earlier version opened, they may be longer and look the same. `parameter` is the protocol's own
    integer parameter, such as OLH's hash range; `own` has it by name. It is stored, so neither side
    recomputes it; None takes the protocol's default when the round is opened. A `practice` round
    may be answered over plain http.

    Raises ParameterError.

        RoundParameters("olh", 1.0, ("soup", "salad", "sandwich")).own  # {'hash_range': 4}
    """

    protocol: str
    epsilon: float
    items: tuple[str, ...]
    _: KW_ONLY
    parameter: int | None = None
    stored: InitVar[bool] = False
    practice: bool = False

    def __post_init__(self, stored: bool) -> None:
        object.__setattr__(self, "items", in_order(self.items))
        if (fault := labels_fault(self.items, stored)) is not None:
            raise ParameterError(fault)
        if len(self.items) < 2:
            raise ParameterError(f"items must be at least two, not {len(self.items)}")
        oracle = self.oracle
        object.__setattr__(self, "epsilon", oracle.epsilon)
        parameter = None if oracle.parameter is None else oracle.own[oracle.parameter.name]
        object.__setattr__(self, "parameter", parameter)

    def __repr__(self) -> str:
        own = "".join(f", {name} {value}" for name, value in self.own.items())
        return (
            f"RoundParameters({self.protocol}, epsilon {self.epsilon:g}{own}, "
            f"{len(self.items):,} items{', practice' if self.practice else ''})"
        )

    @classmethod
    def named(
        cls,
        protocol: str,
        epsilon: float,
        items: Iterable[str],
        own: Mapping[str, int | None],
        stored: bool = False,
        practice: bool = False,
    ) -> Self:
        """Return the parameters of a round from the protocol's own parameters by name.

        Raises ParameterError also for a parameter of another protocol.
        """
        return cls(
            protocol,
            epsilon,
            tuple(items),
            parameter=own_parameter(protocol, own),
            stored=stored,
            practice=practice,
        )

    @property
    def own(self) -> dict[str, Any]:
        """The values of the protocol's own parameters by name."""
        return self.oracle.own

    @property
    def is_for_numbers(self) -> bool:
        """Whether users report numbers from -1 to 1: reports of one item, over -1 and 1."""
        return self.items == means.ITEMS and self.oracle.traits.one_item

    @cached_property
    def oracle(self) -> FrequencyOracle:
        """The frequency oracle with these parameters."""
        return frequency_oracle(
            self.protocol,
            self.epsilon,
            len(self.items),
            self.parameter,
        )

    def differences(self, other: RoundParameters) -> list[str]:
        """Return the fields in which the parameters of another round differ."""
        own = sorted({*self.own, *other.own})
        different = [name for name in own if self.own.get(name) != other.own.get(name)]
        fields = ("protocol", "epsilon", "items", "practice")
        return [name for name in fields if getattr(self, name) != getattr(other, name)] + different

    @cached_property
    def digest(self) -> str:
        """SHA-256 in hex over the parameters, in a form that any language can write.

        Little-endian: the protocol's name in ASCII, a zero byte, epsilon as an IEEE double, hash
        range or subset size (0 for none) and the number of items as u4, then each label by
        `text_bytes`; for a practice round then "practice" in ASCII.
        """
        sha = hashlib.sha256(self.protocol.encode("ascii") + b"\0")
        sha.update(struct.pack("<dII", self.epsilon, self.parameter or 0, len(self.items)))
        sha.update(text_bytes(*self.items))
        if self.practice:
            sha.update(b"practice")
        return sha.hexdigest()


def text_bytes(*texts: str) -> bytes:
    """Return each text as a u4 length, little-endian, and its UTF-8 bytes."""
    encoded = [text.encode() for text in texts]
    return b"".join(struct.pack("<I", len(utf8)) + utf8 for utf8 in encoded)


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Return labels as a tuple. Raises ParameterError for a set, which has no order, and a text."""
    if isinstance(labels, str | set | frozenset) or not isinstance(labels, Iterable):
        raise ParameterError(f"items must be a list of labels, not {labels!r:.40}")
    return tuple(labels)


def label_fault(label: str, key: str) -> str | None:
    """Return why a text is not a label, as the end of a sentence about the item; None if it is one.

    A label can be written in UTF-8, has no control character, and its `key` is not empty.
    """
    if not label.isprintable():
        kinds = [unicodedata.category(character) for character in label]
        if "Cs" in kinds:
            return "holds half a surrogate pair, which UTF-8 cannot write"
        if "Cc" in kinds:
            return f"holds a control character, U+{ord(label[kinds.index('Cc')]):04X}"
    if not key:
        return "is blank: it has nothing but white space and characters without width"
    return None


def check_texts(texts: Mapping[str, object]) -> None:
    """Raise ParameterError unless each value is None or plain text as TEXTS allows."""
    for name, text in texts.items():
        if text is None:
            continue
        if not isinstance(text, str) or not 1 <= len(text) <= TEXTS[name]:
            raise ParameterError(f"{name} must be a text of 1 to {TEXTS[name]} characters")
        if (fault := label_fault(text, label_key(text))) is not None:
            raise ParameterError(f"{name} {fault}")


def labels_fault(labels: Sequence[str], stored: bool = False) -> str | None:
    """Return why texts are not the labels of items, naming the first that is not one or looks the
    same as an earlier one; None if they are. `stored` ones may be longer or look the same.
    """
    first: dict[str, int] = {}
    for i, label in enumerate(labels):
        if not isinstance(label, str) or not label:
            return f"every item must be a non-empty string; item {i} is not"
        if len(label) > MAX_LABEL and not stored:
            return f"item {i} has {len(label)} characters, and a label has at most {MAX_LABEL}"
        key = label if stored else label_key(label)
        if (fault := label_fault(label, key)) is not None:
            return f"item {i} {fault}"
        if (before := first.setdefault(key, i)) != i:
            return (
                f"items must be distinct, and {quoted(label)} is item {before} and item {i}"
                f"{look_alikes(labels[before], label)}"
            )
    return None


def look_alikes(*labels: str) -> str:
    """Return the code points in which two labels of one key differ, as the end of a sentence."""
    if labels[0] == labels[1]:
        return ""
    start = len(commonprefix(labels))  # noqa: RUF071
    codes = [
        " ".join(f"U+{ord(character):04X}" for character in label[start : start + 8]) or "nothing"
        for label in labels
    ]
    return f", which look the same: {' and '.join(codes)} from character {start} on"
