"""The API reference: it describes every call and form, and what it shows works."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.openapi.models import OpenAPI
from tests.conftest import ServerProcess

from ldprecover.protocols import PROTOCOLS, wire

pytestmark = pytest.mark.sqlite


CALLS = {
    ("post", "/rounds"),
    ("post", "/forms"),
    ("get", "/forms"),
    ("get", "/forms/{form}"),
    ("post", "/forms/{form}/close"),
    ("post", "/forms/{form}/tickets"),
    ("delete", "/forms/{form}"),
    ("get", "/series"),
    ("get", "/series/{series}"),
    ("post", "/series/{series}/next"),
    ("get", "/rounds"),
    ("get", "/rounds/{round}"),
    ("get", "/rounds/{round}/parameters"),
    ("post", "/rounds/{round}/close"),
    ("post", "/rounds/{round}/tickets"),
    ("delete", "/rounds/{round}"),
    ("post", "/rounds/{round}/reports"),
    ("get", "/rounds/{round}/frequencies"),
    ("post", "/rounds/{round}/recover"),
    ("get", "/rounds/{round}/recover"),
    ("post", "/rounds/{round}/certificate"),
    ("post", "/rounds/{round}/changes"),
    ("post", "/reports"),
    ("get", "/frequencies"),
    ("post", "/recover"),
    ("get", "/plan"),
    ("get", "/healthz"),
    ("get", "/readyz"),
    ("get", "/version"),
    ("get", "/key"),
    ("get", "/metrics"),
    ("get", "/rounds/{round}/stats"),
    ("get", "/rounds/{round}/export"),
    ("get", "/rounds/{round}/methods"),
    ("get", "/rounds/{round}/alarms"),
}


@pytest.fixture(scope="module")
def document(server: ServerProcess) -> dict[str, Any]:
    return server.get("/openapi.json").json()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_the_document_describes_every_call_and_no_other(document: dict[str, Any]) -> None:
    OpenAPI.model_validate(document)
    assert document["openapi"].startswith("3.1")
    assert {(method, path) for method, path, _ in operations(document)} == CALLS
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(ids)) == len(ids)
    assert all(operation.get("summary") for _, _, operation in operations(document))


def test_every_reference_leads_somewhere_and_every_schema_is_used(document: dict[str, Any]) -> None:
    linked = set(references(document))
    schemas = document["components"]["schemas"]
    assert linked == {f"#/components/schemas/{name}" for name in schemas}


def test_every_error_is_described_as_a_problem(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        for status, answer in operation["responses"].items():
            if int(status) >= 400:
                assert list(answer["content"]) == ["application/problem+json"], (
                    method,
                    path,
                    status,
                )
        assert any(int(status) < 300 for status in operation["responses"]), (method, path)


def test_calls_that_check_their_query_declare_its_error(document: dict[str, Any]) -> None:
    unchecked = {path for _, path, each in operations(document) if "422" not in each["responses"]}
    assert unchecked == {"/healthz", "/readyz", "/metrics", "/version"}


def test_paths_describe_the_identifier_of_a_round(document: dict[str, Any]) -> None:
    for _, path, operation in operations(document):
        named = [p for p in operation.get("parameters", []) if p["in"] == "path"]
        assert [p["name"] for p in named] == re.findall(r"\{(\w+)\}", path)
        assert all(p["required"] and p["description"] for p in named)
        assert all("current" in p["description"] for p in named if p["name"] == "round")


def test_which_calls_need_a_key_and_which_may(document: dict[str, Any]) -> None:
    asks = {
        (method, path): operation.get("security", [])
        for method, path, operation in operations(document)
    }
    guarded = {call for call, security in asks.items() if security and {} not in security}
    of_rounds = {
        ("post", "/rounds"),
        ("post", "/rounds/{round}/close"),
        ("post", "/rounds/{round}/tickets"),
        ("delete", "/rounds/{round}"),
    }
    of_forms = {(method, path.replace("round", "form")) for method, path in of_rounds}
    others = {("get", "/key"), ("post", "/series/{series}/next")}
    assert guarded == of_rounds | of_forms | others
    may = {(path.rpartition("/")[2]) for (_, path), security in asks.items() if {} in security}
    results = {
        *("frequencies", "recover", "certificate", "changes"),
        *("methods", "alarms", "stats", "export"),
    }
    with_verdicts = {
        "rounds",
        "{round}",
        "forms",
        "{form}",
    }  # which only a key may show; no key is an error
    assert may == {"reports", *results, *with_verdicts}
    for method, path, operation in operations(document):
        rejects = bool(asks[method, path]) and not (
            method == "get" and path.rpartition("/")[2] in with_verdicts
        )
        assert ("401" in operation["responses"]) == rejects
        # Every key may ask for its scope.
        assert ("403" in operation["responses"]) == (rejects and path != "/key")
    schemes = document["components"]["securitySchemes"]
    assert set(schemes) == {"Key", "Ticket"}
    assert (schemes["Key"]["type"], schemes["Key"]["scheme"]) == ("http", "bearer")


def test_a_submission_is_described_in_every_form(document: dict[str, Any]) -> None:
    for path in ("/reports", "/rounds/{round}/reports"):
        operation = document["paths"][path]["post"]
        assert set(operation["requestBody"]["content"]) == {"application/json", wire.MEDIA_TYPE}
        packed = operation["requestBody"]["content"][wire.MEDIA_TYPE]["schema"]
        assert packed["format"] == "binary"
        for words in ("ittle-endian", *map(str.upper, PROTOCOLS), "padding"):
            assert words in packed["description"]
        assert len(
            operation["requestBody"]["content"]["application/json"]["schema"]["oneOf"]
        ) == len(PROTOCOLS)
        (key,) = (p for p in operation["parameters"] if p["in"] == "header")
        assert (key["name"], key["required"], key["schema"]["anyOf"][0]["maxLength"]) == (
            "Idempotency-Key",
            False,
            64,
        )
        assert "gzip" in operation["description"]


@pytest.mark.parametrize(
    ("schema", "round_"),
    [
        ("GrrReports", {"protocol": "grr", "domain_size": 18}),
        ("OueReports", {"protocol": "oue", "domain_size": 4}),
        ("OlhReports", {"protocol": "olh", "domain_size": 4, "hash_range": 3}),
        ("SueReports", {"protocol": "sue", "domain_size": 4}),
        ("SsReports", {"protocol": "ss", "domain_size": 4, "subset_size": 1}),
        ("HrReports", {"protocol": "hr", "domain_size": 12}),
        ("LlhReports", {"protocol": "llh", "domain_size": 4, "hash_range": 2}),
    ],
)
def test_the_examples_of_submissions_are_taken(
    server: ServerProcess, document: dict[str, Any], schema: str, round_: dict[str, Any]
) -> None:
    example = document["components"]["schemas"][schema]["example"]
    opened = server.open_round(**round_)
    answer = server.post(f"/rounds/{opened['id']}/reports", json=example, headers=server.admin)
    assert answer.status_code == 202
    assert answer.json()["accepted"] == len(next(iter(example.values())))


def test_the_reference_has_its_assets_all_served_from_here(server: ServerProcess) -> None:
    response = server.get("/docs")
    assert response.headers["content-type"].startswith("text/html")
    assert "//" not in re.sub(r"^\s*//.*$|<!--.*?-->", "", response.text, flags=re.MULTILINE)
    assets = re.findall(r"""(?:src|href|url)\s*[=:]\s*["']([^"']+)["']""", response.text)
    assert len(assets) >= 4
    for asset in assets:
        assert not asset.startswith("/"), "a proxy may serve all of it below a path"
        linked = server.get(asset)
        assert linked.status_code == 200
        assert linked.content
    assert server.get("/docs/errors").headers["content-type"].startswith("text/html")
