"""The OpenAPI document: FastAPI's, with the submission described and paths completed by hand."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from ldprecover import FrequencyOracle
from ldprecover.protocols import PROTOCOLS, wire
from ldprecover_interface import paths
from ldprecover_server import errors
from ldprecover_server.http import messages
from ldprecover_server.http.dependencies import KEY, OPTIONAL_KEY, described
from ldprecover_server.http.messages import Accepted, NewRound, NewTickets, RecoverRequest
from ldprecover_server.http.routes.rounds import BODY

_DESCRIPTION = """\
Collects locally differentially private frequency reports, estimates item frequencies
from them, and recovers them from poisoning with LDPRecover (ICDE 2024).

`/reports`, `/frequencies` and `/recover` at the root mean the current round,
the one opened last."""

_REFUSALS = (
    *(refusal for refusal in BODY if refusal is not errors.InvalidRequestError),
    errors.BusyError,
    errors.DatabaseGoneError,
    errors.ForbiddenError,
    errors.HeaderError,
    errors.InvalidReportError,
    errors.InvalidTicketError,
    errors.KeyReusedError,
    errors.NoCurrentRoundError,
    errors.RateLimitedError,
    errors.ReportKeyNeededError,
    errors.RoundClosedError,
    errors.RoundNotFoundError,
    errors.StorageFullError,
    errors.StoreUnavailableError,
    errors.TooManyReportsError,
    errors.UnauthorizedError,
    errors.WrongTriesError,
)
_EXAMPLES: dict[str, Any] = {
    NewRound.__name__: {
        "name": "cities",
        "protocol": "olh",
        "epsilon": 0.5,
        "items": ["New York, NY", "Chicago, IL"],
    },
    NewTickets.__name__: {"count": 100},
    RecoverRequest.__name__: {"eta": 0.2, "targets": ["New York, NY", 5]},
}
_FORMS = {f"{protocol.title()}Reports": oracle for protocol, oracle in PROTOCOLS.items()}
_PACKED = "Little-endian, no header. " + " ".join(
    f"{protocol.upper()}: {oracle.forms.packed}" for protocol, oracle in PROTOCOLS.items()
)
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[!-~]+$"},
    "description": "Names the submission: sent again with the same bytes it is counted once. Use "
    "128 random bits; "
    "without a key no retry is safe.",
}


def install(app: FastAPI) -> None:
    """Make the app describe every form it takes."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _complete(
                get_openapi(
                    title=app.title,
                    version=app.version,
                    description=_DESCRIPTION,
                    routes=app.routes,
                )
            )
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _complete(document: dict[str, Any]) -> dict[str, Any]:
    for prefix, what in (("", "the current round"), (paths.ROUND, "a round")):
        document["paths"][f"{prefix}{paths.REPORTS}"] = {"post": _submission(what)}
    document["components"]["schemas"] = _schemas() | {
        name: _form(oracle) for name, oracle in _FORMS.items()
    }
    document["components"]["securitySchemes"] = {
        KEY: document["components"]["securitySchemes"][KEY],
        "Ticket": {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Ticket TICKET`: a ticket of the round.",
        },
    }
    for path, operations in document["paths"].items():
        at_root = path in (paths.REPORTS, paths.FREQUENCIES, paths.RECOVER)
        for operation in operations.values():
            operation["operationId"] += "_of_current_round" if at_root else ""
            if "application/json" in operation["responses"].get("422", {}).get("content", {}):
                del operation["responses"][
                    "422"
                ]  # the framework's own; a round's identifier may be any text
            if {OPTIONAL_KEY: []} in operation.get("security", []):
                operation["security"] = [
                    {},
                    {KEY: []},
                ]  # a key where the round's read_access wants one
            if "{round}" in path and not any(
                p["in"] == "path" for p in operation.get("parameters", [])
            ):
                operation["parameters"] = [_ROUND_PARAMETER, *operation.get("parameters", [])]
    return document


_ROUND_PARAMETER = {
    "name": "round",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "An id, a name, or `current`.",
}


def _schemas() -> dict[str, Any]:
    """Return the schema of every request and answer, requests with an example."""
    found = messages.schemas(
        *(getattr(messages, name) for name in messages.__all__ if name[0].isupper())
    )
    for name, example in _EXAMPLES.items():
        found[name]["examples"] = [example]
    return found


def _form(oracle: type[FrequencyOracle]) -> dict[str, Any]:
    """Return the schema of a protocol's reports as JSON."""
    columns = {
        name: {"type": "array", "minItems": 1, "items": value}
        for name, value in oracle.forms.values.items()
    }
    return {
        "type": "object",
        "required": list(columns),
        "additionalProperties": False,
        "properties": columns,
        "description": f"{oracle.protocol.upper()}: {oracle.forms.json}",
        "example": oracle.forms.example,
    }


def _submission(what: str) -> dict[str, Any]:
    forms = {"oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in _FORMS]}
    responses = described(Accepted, *_REFUSALS, status=202)["responses"]
    responses[202]["description"] = "Stored and counted"
    return {
        "tags": ["reports"],
        "summary": f"Submit reports to {what}",
        "description": "One submission of one or more reports: stored whole or not at all, "
        "counted exactly once. "
        "Answered once it is on disk. Content-Encoding gzip is taken. An open round takes one "
        "report a submission from "
        "anyone, and more with a report key, whose rate may be limited.",
        "operationId": "submit_reports",
        "parameters": [_KEY],
        # Without a key, one report a submission; with a report key more; with a ticket the one it
        # admits.
        "security": [{}, {KEY: []}, {"Ticket": []}],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": forms},
                wire.MEDIA_TYPE: {
                    "schema": {"type": "string", "format": "binary", "description": _PACKED}
                },
            },
        },
        "responses": {str(status): answer for status, answer in responses.items()},
    }
