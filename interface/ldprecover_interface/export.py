"""Exports: a round with its tally, to estimate and recover from without the server."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from ldprecover.rounds.parameters import TEXTS
from ldprecover_interface.base import Count, Text, optional
from ldprecover_interface.rounds import Items, OwnParametersMixin, Practice, ShownTexts


class Export(ShownTexts, OwnParametersMixin):
    """A round with its parameters, tally and checksum."""

    model_config = ConfigDict(
        json_schema_extra=optional("seed", "practice", *TEXTS, "series", "number")
    )

    own_required = False

    format: Literal["ldprecover-export-1"]
    round: Text
    name: Text
    protocol: Text
    epsilon: float
    items: Items
    hash_range: int | None
    practice: Practice = False
    n: Count
    counts: Annotated[list[Count], Field(fail_fast=True)]
    seed: Text | None = Field(
        default=None,
        description="128 random bits in hex, drawn when the round was closed: they split the "
        "reports for certificates. Only of closed rounds.",
    )
    series: Text | None = None
    number: int | None = Field(default=None, description="Of the round in its series.")
    digest: Text = Field(description="As in GET /rounds/{id}/parameters.")
    checksum: Text = Field(
        description="SHA-256 in hex of digest, n (u8), counts (i8), then round and name, each as "
        "a length (u4) and UTF-8; for a closed round then `seed` in ASCII and the 16 bytes of the "
        "seed; then for each of `question`, `title` and `thanks` that is there the field's name "
        "and the text, each as a length and UTF-8, and so for `series` and the digits of `number`; "
        "little-endian."
    )
