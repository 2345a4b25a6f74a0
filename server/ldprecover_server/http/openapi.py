"""The OpenAPI document: FastAPI's, with the submission described and paths completed by hand."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from ldprecover import wire
from ldprecover_server.http.models import Accepted, ProblemDetails
from ldprecover_server.http.routes.common import problems

__all__ = ["install"]

_DESCRIPTION = """Collects locally differentially private frequency reports, estimates item frequencies
from them, and recovers them from poisoning with LDPRecover (ICDE 2024).

`/reports`, `/frequencies` and `/recover` at the root mean the current round, the one opened last."""

_REFUSALS = (401, 403, 404, 408, 409, 413, 415, 422, 429, 501, 503, 507)
_UINT32 = {"type": "integer", "minimum": 0, "maximum": (1 << 32) - 1}
_FORMS: dict[str, Any] = {
    "GrrReports": {
        "type": "object",
        "required": ["reports"],
        "additionalProperties": False,
        "properties": {"reports": {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}}},
        "description": "GRR: one item index a report.",
        "example": {"reports": [17, 3, 17]},
    },
    "OueReports": {
        "type": "object",
        "required": ["reports"],
        "additionalProperties": False,
        "properties": {"reports": {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": "^[01]+$"}}},
        "description": "OUE: d characters a report, position i is item i.",
        "example": {"reports": ["0100"]},
    },
    "OlhReports": {
        "type": "object",
        "required": ["seeds", "buckets"],
        "additionalProperties": False,
        "properties": {
            "seeds": {"type": "array", "minItems": 1, "items": _UINT32},
            "buckets": {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0, "maximum": 65535}},
        },
        "description": "OLH: columns of equal length. bucket = (xxHash32(item as 4 bytes LE, seed) * g) >> 32.",
        "example": {"seeds": [2882400001, 5], "buckets": [2, 0]},
    },
}
_PACKED = (
    "Little-endian, no header. GRR: u4 an item. OUE: ceil(d/8) bytes a report, item i is bit i%8 of byte i//8 "
    "(bit 0 the least significant), padding bits zero. OLH: u4 seed, then u2 bucket (6 bytes)."
)
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[!-~]+$"},
    "description": "Names the submission: sent again with the same bytes it is counted once. Use 128 random bits; "
    "without a key no retry is safe.",
}
_ROUND = {
    "name": "round",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "An id, a name, or `current`.",
}


def install(app: FastAPI) -> None:
    """Make the app describe every form it takes."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _complete(
                get_openapi(title=app.title, version=app.version, description=_DESCRIPTION, routes=app.routes)
            )
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _complete(document: dict[str, Any]) -> dict[str, Any]:
    schemas = document["components"]["schemas"]
    for model in (Accepted, ProblemDetails):
        schemas[model.__name__] = model.model_json_schema()
    schemas |= _FORMS
    document["components"]["securitySchemes"]["Ticket"] = {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "`Ticket TICKET`: a ticket of the round.",
    }
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for prefix, what in (("", "the current round"), ("/rounds/{round}", "a round")):
        document["paths"][f"{prefix}/reports"] = {"post": _submission(what, prefix)}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            if path.endswith(("/frequencies", "/recover", "/stats", "/export")):
                operation["security"] = [{}, {"HTTPBearer": []}]  # a key where the round's read_access wants one
            # Every validation error is a problem.
            if "422" in operation["responses"]:
                operation["responses"]["422"] = problems(422)[422]
            if "{round}" in path:
                operation["parameters"] = [_ROUND, *operation.get("parameters", [])]
    return document


def _submission(what: str, prefix: str) -> dict[str, Any]:
    forms = {"oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in _FORMS]}
    return {
        "tags": ["reports"],
        "summary": f"Submit reports to {what}",
        "description": "One submission of one or more reports: stored whole or not at all, counted exactly once. "
        "Answered once it is on disk. Content-Encoding gzip is taken. An open round takes one report a submission from "
        "anyone, and more with a report key, whose rate may be limited.",
        "operationId": f"submit_{'round' if prefix else 'current'}",
        "parameters": [_KEY],
        # Without a key, one report a submission; with a report key more; with a ticket the one it admits.
        "security": [{}, {"HTTPBearer": []}, {"Ticket": []}],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": forms},
                wire.MEDIA_TYPE: {"schema": {"type": "string", "format": "binary", "description": _PACKED}},
            },
        },
        "responses": {
            "202": {
                "description": "Stored and counted",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Accepted"}}},
            },
            **{str(status): answer for status, answer in problems(*_REFUSALS).items()},
        },
    }
