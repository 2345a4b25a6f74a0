"""JSON responses."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec
import numpy as np
from starlette.responses import Response


def json(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON answer; floats are written so that they read back exactly."""
    return Response(msgspec.json.encode(body), status, dict(headers or {}), "application/json")


def column(numbers: np.ndarray) -> list[Any]:
    """Return a column of an answer as JSON already, declared as the list that clients read.

    With all its columns as lists an answer would take several times more memory.
    """
    return cast(list[Any], msgspec.Raw(msgspec.json.encode(numbers.tolist())))
