"""Responses as CSV."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from fastapi import Query
from starlette.responses import Response

from ldprecover_interface.csv import to_csv

MEDIA_TYPE = "text/csv"

AS_CSV: dict[str, Any] = {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}
"""The entry of a route's `responses` for a 200 that may also be CSV."""

Format = Annotated[
    Literal["json", "csv", "csv-bom"],
    Query(
        alias="format",
        description="json, or csv: the columns alone, with a header line; csv-bom begins with a "
        "byte order mark, for spreadsheets.",
    ),
]
"""The query parameter that chooses the form of a response."""


def csv(name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], form: str) -> Response:
    """Return a CSV response in this form that browsers save under this name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    body = (b"\xef\xbb\xbf" if form == "csv-bom" else b"") + to_csv(columns, rows)
    return Response(body, 200, headers, f"{MEDIA_TYPE}; charset=utf-8; header=present")
