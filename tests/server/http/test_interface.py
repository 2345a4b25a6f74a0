"""Every response is a message of the interface, and the message has all of its fields."""

import pytest
from tests.server.conftest import InProcess

pytestmark = pytest.mark.sqlite


def test_schemas_of_optional_bodies_allow_null(in_process: InProcess) -> None:
    paths = in_process.get("/openapi.json").json()["paths"]
    optional = {
        path: operation["requestBody"]["content"]["application/json"]["schema"]
        for path, operations in paths.items()
        for operation in operations.values()
        if "requestBody" in operation and not operation["requestBody"].get("required")
    }
    assert optional.keys() == {
        "/recover",
        "/rounds/{round}/recover",
        "/rounds/{round}/changes",
    }
    assert all({"type": "null"} in schema["anyOf"] for schema in optional.values())
