"""A real server against its OpenAPI document: no 5xx, and every response as declared."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import given
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from tests.conftest import ADMIN_KEY, ServerProcess, StartServer
from tests.fuzzing import SECONDS, property_settings, repeat, tried
from tests.liveness import WatchedProcess, assert_live

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    allow_header_conformance,
    unsupported_method,
]
ROUNDS: list[dict[str, Any]] = [
    {"protocol": "grr"},
    {"protocol": "oue", "access": "key"},
    {"protocol": "olh", "read_access": "key"},
    {"protocol": "olh", "access": "ticket", "retention": "none"},
    {"protocol": "oue"},
]
CHANGED = {"POST /rounds/{round}/close", "DELETE /rounds/{round}"}


def operations(server: ServerProcess) -> Iterator[Any]:
    schema: Any = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    for operation in schema.get_all_operations():
        yield operation.ok()


@pytest.mark.timeout(300 + 2 * SECONDS)
@pytest.mark.parametrize("mode", GenerationMode)
def test_every_response_matches_openapi(
    start_server: StartServer, mode: GenerationMode, tmp_path: Path
) -> None:
    """With valid and invalid requests; with a key, a wrong key, or none."""
    watched = WatchedProcess(tmp_path)
    server = start_server(first=watched.first)
    round_ids = [server.open_round(**round)["id"] for round in ROUNDS]
    server.http.post(f"/rounds/{round_ids[-1]}/close", headers=server.admin)
    keys = st.sampled_from(
        [f"Bearer {ADMIN_KEY}", f"Bearer {ADMIN_KEY}", f"Bearer {ADMIN_KEY}x", "Ticket x.y", None]
    )

    def check_operation(operation: Any) -> None:
        @property_settings(8)
        @given(
            operation.as_strategy(generation_mode=mode),
            st.sampled_from([*round_ids, "current", None]),
            keys,
        )
        def check(case: Case[Any], round: str | None, key: str | None) -> None:
            if round is not None and "round" in (case.path_parameters or {}):
                case.path_parameters["round"] = (
                    server.open_round()["id"] if operation.label in CHANGED else round
                )
            case.headers.pop("Authorization", None)

            def call() -> Any:
                return case.call(headers={"Authorization": key} if key else None, timeout=60)

            response, cost = watched.measure(server.pid, call)
            assert_live(cost, lambda: watched.measure(server.pid, call)[1])
            tried[f"schemathesis, {mode.value}"][f"{operation.label} {response.status_code}"] += 1
            case.validate_response(response, checks=CHECKS)

        check()

    def check_all() -> None:
        for operation in operations(server):
            # What only has a path, whose rounds are replaced, cannot be called wrongly.
            if (
                mode is GenerationMode.POSITIVE
                or operation.query
                or operation.headers
                or operation.body
            ):
                check_operation(operation)
                checked.add(operation.label)

    checked: set[str] = set()
    repeat(check_all)
    assert len(checked) >= (24 if mode is GenerationMode.POSITIVE else 14)
    assert "Traceback" not in server.log.read_text()
