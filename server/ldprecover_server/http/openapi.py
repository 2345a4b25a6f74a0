"""The OpenAPI document: FastAPI's, the submissions, and what FastAPI cannot declare."""

from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Header, Security
from fastapi.openapi.utils import get_openapi
from fastapi.security import APIKeyHeader

from ldprecover.protocols import PROTOCOLS, ReportForms, frequency_oracle, wire
from ldprecover_interface import paths
from ldprecover_interface.certificates import CertificateRequest
from ldprecover_interface.changes import ChangesRequest
from ldprecover_interface.forms import NewForm
from ldprecover_interface.problems import Problem
from ldprecover_interface.results import RecoveryQuery
from ldprecover_interface.rounds import NewRound, NewTickets
from ldprecover_interface.series import NextNumber
from ldprecover_interface.submissions import Accepted
from ldprecover_server import errors
from ldprecover_server.http.dependencies import KEY_IF_NEEDED, Reader
from ldprecover_server.http.problems import BODY, problems

_DESCRIPTION = """\
Collects locally differentially private frequency reports, estimates item frequencies
from them, and recovers them from poisoning with LDPRecover (ICDE 2024).

`/reports`, `/frequencies` and `/recover` at the root mean the current round,
the one opened last that belongs to no form."""

_MODELS = (
    Problem,
    NewRound,
    NewForm,
    NewTickets,
    NextNumber,
    RecoveryQuery,
    CertificateRequest,
    ChangesRequest,
)
"""Messages of errors, and of bodies that endpoints read."""

_AT_ROOT = (paths.REPORTS, paths.FREQUENCIES, paths.RECOVER)
_ROUND_PARAMETER = {
    "name": "round",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "An id, a name, or `current`.",
}

_ticket = APIKeyHeader(
    name="Authorization",
    scheme_name="Ticket",
    auto_error=False,
    description="`Ticket TICKET`: a ticket of the round, or of its form.",
)
_submissions = APIRouter(tags=["reports"])


@_submissions.post(
    paths.REPORTS,
    status_code=202,
    response_description="Stored and counted",
    dependencies=[Security(_ticket)],
    responses=problems(
        *(error for error in BODY if error is not errors.InvalidRequestError),
        errors.BusyError,
        errors.DatabaseGoneError,
        errors.ForbiddenError,
        errors.InvalidParameterError,
        errors.InvalidReportError,
        errors.InvalidTicketError,
        errors.KeyReusedError,
        errors.RateLimitedError,
        errors.ReportKeyNeededError,
        errors.RoundClosedError,
        errors.RoundNotFoundError,
        errors.StorageFullError,
        errors.StoreUnavailableError,
        errors.TooManyReportsError,
        errors.UnauthorizedError,
    ),
    openapi_extra=KEY_IF_NEEDED,
)
async def submit_reports(
    caller: Reader,
    idempotency_key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            min_length=1,
            max_length=64,
            pattern="^[!-~]+$",
            description="Identifies the submission: sent again with the same bytes it is counted "
            "once. Use 128 random bits: a shorter key may be taken. Without one no retry is safe.",
        ),
    ] = None,
) -> Accepted:
    """Submit reports: stored and counted as a whole or not at all, and exactly once.

    The response follows when they are on disk. Content-Encoding may be gzip.
    """
    raise AssertionError("SubmissionEndpoint answers these paths")


def install(app: FastAPI) -> None:
    """Serve the document of the application with its submissions."""
    documented = APIRouter(generate_unique_id_function=operation_id)
    documented.include_router(_submissions)
    documented.include_router(_submissions, prefix=paths.ROUND)

    def openapi() -> dict[str, Any]:
        document = get_openapi(
            title=app.title,
            version=app.version,
            description=_DESCRIPTION,
            routes=[*app.routes, *documented.routes],
            servers=[{"url": "."}],  # the folder of the document
        )
        _complete(document)
        return document

    app.openapi = openapi  # type: ignore[method-assign]


def operation_id(route: Any) -> str:
    """Return the operation id of a route; calls on the current round have their own."""
    return f"{route.name}_of_current_round" if route.path in _AT_ROOT else str(route.name)


def _complete(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for model in _MODELS:
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(schema.pop("$defs", {}))
        schemas[model.__name__] = schema
    forms = {protocol: frequency_oracle(protocol, 1.0, 2).wire.forms for protocol in PROTOCOLS}
    for protocol, each in forms.items():
        schemas[_schema_name(protocol)] = _form(protocol, each)
    for path, operations in document["paths"].items():
        for operation in operations.values():
            if path.endswith(paths.REPORTS):
                operation["requestBody"] = _submission(forms)
            # FastAPI adds its own 422 to calls that declare none.
            if "application/json" in operation["responses"].get("422", {}).get("content", {}):
                operation["responses"]["422"] = problems(errors.InvalidRequestError)[422]
            # Calls that also exist at the root take the round from a dependency.
            parameters = operation.get("parameters", [])
            if "{round}" in path and not any(each["in"] == "path" for each in parameters):
                operation["parameters"] = [_ROUND_PARAMETER, *parameters]


def _submission(forms: dict[str, ReportForms]) -> dict[str, Any]:
    """Return the body of a submission in its two forms."""
    packed = "Little-endian, no header. " + " ".join(
        f"{protocol.upper()}: {each.packed}" for protocol, each in forms.items()
    )
    references = [{"$ref": f"#/components/schemas/{_schema_name(each)}"} for each in forms]
    return {
        "required": True,
        "content": {
            "application/json": {"schema": {"oneOf": references}},
            wire.MEDIA_TYPE: {
                "schema": {"type": "string", "format": "binary", "description": packed}
            },
        },
    }


def _schema_name(protocol: str) -> str:
    return f"{protocol.title()}Reports"


def _form(protocol: str, forms: ReportForms) -> dict[str, Any]:
    """Return the schema of a protocol's reports as JSON."""
    columns = {
        name: {"type": "array", "minItems": 1, "items": value}
        for name, value in forms.values.items()
    }
    return {
        "type": "object",
        "required": list(columns),
        "additionalProperties": False,
        "properties": columns,
        "description": f"{protocol.upper()}: {forms.json}",
        "example": forms.example,
    }
