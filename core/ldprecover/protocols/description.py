"""What a protocol says of itself as data: its traits, and the forms in which its reports travel."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Traits:
    """What holds of every report of a protocol, whatever its parameters.

    - `one_item`: it supports exactly one item.
    - `independent_bits`: which items it supports is independent item by item, given the item its
      user holds; for a protocol that hashes, under an ideal hash.
    - `seeded`: it carries a hash seed of 32 uniform bits that its user draws.
    - `pure`: each of p and q is one number for all items, so that an item's count alone gives its
      estimate.
    - `extremal`: it is e^epsilon times as likely under an item that it supports as under any other
      (an extremal mechanism: Kairouz et al., NIPS 2014); given its seed, where it has one.
    """

    one_item: bool = False
    independent_bits: bool = False
    seeded: bool = False
    pure: bool = True
    extremal: bool = False


@dataclass(frozen=True)
class OwnParameter:
    """An integer parameter of a round that is a protocol's own: its name, least and greatest value,
    a line on it.
    """

    name: str
    low: int
    high: int
    meaning: str


@dataclass(frozen=True)
class Column:
    """An array of the JSON form: one value a report.

    Integers are from 0 to `limit` - 1. Strings are of `limit` characters 0 or 1, `ones` of them 1
    where that is given. `noun` is what one value is called; `reason` says what a bad one is told.
    """

    name: str
    kind: type[int] | type[str]
    limit: int
    noun: str
    ones: int | None = None

    @property
    def reason(self) -> str:
        """What a bad value is told."""
        if self.kind is int:
            return f"the {self.noun} must be an integer from 0 to {self.limit - 1}"
        exactly = "" if self.ones is None else f", {self.ones} of them 1"
        return f"the {self.noun} must be a string of {self.limit} characters 0 or 1{exactly}"

    @property
    def pattern(self) -> str:
        """A regular expression that a string must match."""
        bits = rf"[01]{{{self.limit}}}(?!\n)$"
        return f"^{bits}" if self.ones is None else rf"^(?={bits})(?:0*1){{{self.ones}}}0*$"

    def takes(self, value: object) -> bool:
        """Tell whether a value is of this column's kind and in its range."""
        if self.kind is int:
            return type(value) is int and 0 <= value < self.limit
        if not isinstance(value, str) or len(value) != self.limit or not set(value) <= {"0", "1"}:
            return False
        return self.ones is None or value.count("1") == self.ones

    @property
    def longest(self) -> int:
        """The most characters that one value takes, with the comma and the space behind it."""
        return self.limit + 2 + 2 if self.kind is str else len(str(self.limit - 1)) + 2


@dataclass(frozen=True)
class ReportForms:
    """The forms of a protocol's reports in words and by example, for whoever writes a client.

    `json` and `packed` are a sentence each, `values` the JSON schema of one value of each column,
    `example` a JSON body.
    """

    json: str
    packed: str
    values: Mapping[str, Mapping[str, Any]]
    example: Mapping[str, Any]
