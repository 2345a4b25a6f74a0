"""Types of the JavaScript client against the OpenAPI document of a server."""

import re
from typing import Any

import pytest
from tests.client_js.conftest import CLIENT
from tests.conftest import ServerProcess

from ldprecover.protocols import PROTOCOLS

ROUNDS = (CLIENT / "src" / "rounds.js").read_text()
DECLARATIONS = (CLIENT / "ldprecover.d.ts").read_text()

OWN = {"d", "own"}
"""Properties of the client's round that are no fields of the interface."""
PARSED = {"thresholds": "Readonly<Record<string, bigint>>"}
"""Properties of the client's round that have another type than the fields."""


def javascript_type(schema: dict[str, Any]) -> str:
    """Return the type of JavaScript for values of a JSON schema."""
    if "anyOf" in schema:
        return " | ".join(map(javascript_type, schema["anyOf"]))
    if schema["type"] == "array":
        return f"{javascript_type(schema['items'])}[]"
    if schema["type"] == "object":
        return f"Object<string, {javascript_type(schema['additionalProperties'])}>"
    return {"integer": "number"}.get(schema["type"], schema["type"])


@pytest.fixture(scope="module")
def fields(server: ServerProcess) -> dict[str, str]:
    """The types of the fields of a round's parameters by name."""
    document = server.http.get("/openapi.json").json()
    properties = document["components"]["schemas"]["Parameters"]["properties"]
    return {name: javascript_type(schema) for name, schema in properties.items()}


def typedef() -> dict[str, str]:
    (comment,) = re.findall(r"/\*\*(?:(?!\*/).)*@typedef.*?\*/", ROUNDS, re.DOTALL)
    return {name: kind for kind, name in re.findall(r"@property \{(.+)\} (\w+)", comment)}


def test_typedef_has_names_and_types_of_openapi(fields: dict[str, str]) -> None:
    types = typedef()
    assert types == {name: fields.get(name) for name in types}


def test_typedef_has_the_fields_that_are_read() -> None:
    names = re.findall(r'\bbody\.(\w+)|field\.\w+\([^"]*body[^"]*, "(\w+)"', ROUNDS)
    lists = re.findall(r'(?:OWN = |^  )\[("\w+", "\w+")\]', ROUNDS, re.MULTILINE)
    read = {name for pair in names for name in pair if name}
    assert read | set(re.findall(r"\w+", " ".join(lists))) == typedef().keys()


def test_declared_round_has_names_and_types_of_openapi(fields: dict[str, str]) -> None:
    (interface,) = re.findall(r"interface Round \{(.*?)\n\}", DECLARATIONS, re.DOTALL)
    types = dict(re.findall(r"^  readonly (\w+): (?:readonly )?(.+);", interface, re.MULTILINE))
    assert types.pop("protocol") == " | ".join(f'"{name}"' for name in PROTOCOLS)
    camel_case = {re.sub(r"_(\w)", lambda part: part[1].upper(), name): name for name in fields}
    expected = {name: fields.get(camel_case.get(name, "")) for name in types.keys() - OWN} | PARSED
    assert {name: kind for name, kind in types.items() if name not in OWN} == expected
