"""The data that describe a protocol: traits, own parameters and the forms of its reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Traits:
    """Properties of every report of a protocol, for all its parameters.

    - `one_item`: it supports exactly one item.
    - `independent_bits`: the items that it supports are independent given the user's item; for a
      protocol that hashes, under an ideal hash.
    - `seeded`: it carries a hash seed of 32 uniform bits that its user draws.
    - `extremal`: it is e^epsilon times as likely under an item that it supports as under any other
      (an extremal mechanism: Kairouz et al., NIPS 2014); given its seed, if it has one.
    - `histogram`: it is an integer, and entry z of a summary is the number of the reports z. A
      tally then determines the reports but for their order.
    """

    one_item: bool = False
    independent_bits: bool = False
    seeded: bool = False
    extremal: bool = False
    histogram: bool = False


@dataclass(frozen=True)
class OwnParameter:
    """A protocol's own integer parameter, which is the third field of its class.

    `name` is the name of that field, `meaning` describes it in one line. The value is from `low` to
    `high`; `default(epsilon, domain_size)` is the value if none is stated.
    """

    name: str
    low: int
    high: int
    meaning: str
    default: Callable[[float, int], int]


@dataclass(frozen=True)
class Column:
    """An array of the JSON form: one value for each report.

    Integers are from 0 to `limit` - 1. Strings have `limit` characters 0 or 1; if `ones` is given,
    that many are 1. `noun` names one value in messages.
    """

    name: str
    kind: type[int] | type[str]
    limit: int
    noun: str
    ones: int | None = None

    @property
    def reason(self) -> str:
        """The message for a value outside the range."""
        if self.kind is int:
            return f"the {self.noun} must be an integer from 0 to {self.limit - 1}"
        exactly = "" if self.ones is None else f", {self.ones} of them 1"
        return f"the {self.noun} must be a string of {self.limit} characters 0 or 1{exactly}"

    @property
    def pattern(self) -> str:
        """A regular expression that strings must match."""
        bits = rf"[01]{{{self.limit}}}(?!\n)$"
        return f"^{bits}" if self.ones is None else rf"^(?={bits})(?:0*1){{{self.ones}}}0*$"

    @property
    def longest(self) -> int:
        """The maximum number of characters of one value, with the comma and the space behind it."""
        return self.limit + 2 + 2 if self.kind is str else len(str(self.limit - 1)) + 2


@dataclass(frozen=True)
class ReportForms:
    """The forms of a protocol's reports, described and by example, for authors of clients.

    `json` and `packed` are one sentence each. `values` is the JSON schema of one value of each
    column, `example` a JSON body.
    """

    json: str
    packed: str
    values: Mapping[str, Mapping[str, Any]]
    example: Mapping[str, Any]


def integer_forms(json: str, packed: str, example: list[int]) -> ReportForms:
    """Return the description of reports that are one integer each."""
    values = {"reports": {"type": "integer", "minimum": 0}}
    return ReportForms(json, packed, values, {"reports": example})
