"""JSON responses."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec
import numpy as np
from starlette.responses import Response


def json(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response; floats are written so that they read back exactly."""
    return Response(msgspec.json.encode(body), status, dict(headers or {}), "application/json")


def column(numbers: np.ndarray) -> list[Any]:
    """Return a column of a response as encoded JSON, typed as the list that clients read.

    All columns as Python lists would take several times the memory.
    """
    return cast(list[Any], msgspec.Raw(msgspec.json.encode(numbers.tolist())))
