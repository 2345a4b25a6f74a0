"""Submissions: what is taken, what is rejected whole, and what is stored exactly once."""

import gzip
import json
from typing import Any

import numpy as np
import pytest
from tests.conftest import PACKED, ServerProcess
from tests.server.conftest import problem_of

from ldprecover import FrequencyOracle
from ldprecover.protocols import wire

pytestmark = pytest.mark.sqlite


JSON = {"Content-Type": "application/json"}


def some_reports(oracle: FrequencyOracle, n: int = 60) -> np.ndarray:
    items = np.arange(n) % oracle.domain_size
    return oracle.perturb(items, np.random.default_rng(7))


def open_for(server: ServerProcess, oracle: FrequencyOracle) -> str:
    return server.open_round(
        oracle.protocol,
        oracle.epsilon,
        domain_size=oracle.domain_size,
        hash_range=getattr(oracle, "hash_range", None),
    )["id"]


def forms(oracle: FrequencyOracle, reports: np.ndarray) -> dict[str, tuple[dict[str, str], bytes]]:
    """Every way to write the same reports: headers and body."""
    text = json.dumps(oracle.wire.to_json(reports)).encode()
    packed = wire.pack(reports)
    zipped = {"Content-Encoding": "gzip"}
    return {
        "JSON": (JSON, text),
        "JSON with its charset": ({"Content-Type": "Application/JSON; charset=utf-8"}, text),
        "JSON with spaces": (JSON, b" \n" + text.replace(b",", b"\t,  ") + b"\r\n"),
        "JSON in gzip": (JSON | zipped, gzip.compress(text)),
        "packed": (PACKED, packed),
        "packed in gzip": (PACKED | {"Content-Encoding": "GZIP"}, gzip.compress(packed)),
        "packed, said not to be encoded": (PACKED | {"Content-Encoding": "identity"}, packed),
    }


def refused(
    server: ServerProcess, id: str, headers: dict[str, str], content: str | bytes
) -> dict[str, Any]:
    """Send reports that must be rejected, see that nothing is stored, and return the problem."""
    before = server.frequencies(id)
    key = (
        server.admin if len(content) > 4096 else {}
    )  # without one a body is no longer than one report may be
    response = server.post(f"/rounds/{id}/reports", content=content, headers=headers | key)
    assert problem_of(response) == "invalid-report"
    assert server.frequencies(id) == before
    return response.json()


def test_position_of_a_bad_report_is_exact(server: ServerProcess, oracle: FrequencyOracle) -> None:
    """Large enough to be decoded apart from the event loop."""
    id = open_for(server, oracle)
    n, bad = 200_000, 123_456
    packed = bytearray(wire.pack(some_reports(oracle, 200)) * (n // 200))
    size = oracle.wire.size
    packed[size * bad : size * (bad + 1)] = size * b"\xff"
    problem = refused(server, id, PACKED, bytes(packed))
    assert problem["position"] == bad


def test_rejected_submission_does_not_use_up_its_key(server: ServerProcess) -> None:
    id = server.open_round()["id"]
    headers = JSON | {"Idempotency-Key": "one"}
    refused(server, id, headers, '{"reports": [1, 4]}')
    answer = server.post(f"/rounds/{id}/reports", content='{"reports": [1]}', headers=headers)
    assert answer.json() == {"round": id, "accepted": 1, "duplicate": False}


@pytest.mark.parametrize("key", ["a", "!", "~", "a" * 64, ",;=\"'\\", "0" * 32], ids=repr)
def test_key_is_up_to_64_visible_ascii_characters(server: ServerProcess, key: str) -> None:
    id = server.open_round()["id"]
    answers = [server.submit(id, b"\1\0\0\0", key).json() for _ in range(2)]
    assert [answer["duplicate"] for answer in answers] == [False, True]
    assert server.frequencies(id)["n"] == 1


@pytest.mark.parametrize(
    "key", [b"a" * 65, b"", b"a b", b"a\tb", "é".encode(), b"\xe9", b"\x80"], ids=repr
)
def test_any_other_key_is_refused(server: ServerProcess, key: bytes) -> None:
    id = server.open_round()["id"]
    headers = {name.encode(): value.encode() for name, value in PACKED.items()} | {
        b"Idempotency-Key": key
    }
    response = server.post(f"/rounds/{id}/reports", content=b"\1\0\0\0", headers=headers)
    assert problem_of(response) == "invalid-parameter"
    assert "Idempotency-Key" in response.json()["detail"]
    assert server.frequencies(id)["n"] == 0


@pytest.mark.parametrize("second", ["a", "b"])
def test_two_keys_are_refused(server: ServerProcess, second: str) -> None:
    id = server.open_round()["id"]
    headers = [*PACKED.items(), ("Idempotency-Key", "a"), ("Idempotency-Key", second)]
    response = server.post(f"/rounds/{id}/reports", content=b"\1\0\0\0", headers=headers)
    assert problem_of(response) == "invalid-parameter"
    assert server.frequencies(id)["n"] == 0


def test_without_a_key_every_submission_is_another(server: ServerProcess) -> None:
    id = server.open_round()["id"]
    answers = [server.submit(id, b"\1\0\0\0").json() for _ in range(3)]
    assert [answer["duplicate"] for answer in answers] == 3 * [False]
    assert server.frequencies(id)["counts"] == [0, 3, 0, 0]


def test_equal_reports_in_any_format_are_one_submission(
    server: ServerProcess, oracle: FrequencyOracle
) -> None:
    """The digest is of the canonical packed bytes, whatever travelled."""
    id = open_for(server, oracle)
    reports = some_reports(oracle)
    answers = [
        server.post(
            f"/rounds/{id}/reports",
            content=content,
            headers={**headers, **server.admin, "Idempotency-Key": "k"},
        )
        for headers, content in forms(oracle, reports).values()
    ]
    assert [(r.status_code, r.json()["accepted"]) for r in answers] == [(202, 60)] * len(answers)
    assert [r.json()["duplicate"] for r in answers] == [False] + [True] * (len(answers) - 1)
    assert server.frequencies(id)["counts"] == oracle.support_counts(reports).tolist()


@pytest.mark.both
def test_a_key_that_comes_with_other_bytes_is_a_409(server: ServerProcess) -> None:
    id = server.open_round()["id"]
    assert server.submit(id, b"\1\0\0\0\2\0\0\0", "key").status_code == 202
    others = {
        "another report": b"\1\0\0\0\3\0\0\0",
        "one fewer": b"\1\0\0\0",
        "one more": b"\1\0\0\0\2\0\0\0\2\0\0\0",
        "in another order": b"\2\0\0\0\1\0\0\0",
    }
    for difference, packed in others.items():
        response = server.submit(id, packed, "key")
        assert problem_of(response) == "idempotency-key-reused", difference
    assert server.frequencies(id)["counts"] == [0, 1, 1, 0]
    assert server.submit(id, b"\1\0\0\0\2\0\0\0", "key").json()["duplicate"]


@pytest.mark.both
def test_closed_round_rejects_reports_but_answers_retries(server: ServerProcess) -> None:
    id = server.open_round()["id"]
    stored = server.submit(id, b"\1\0\0\0\2\0\0\0", "stored")
    server.close_round(id)
    again = server.submit(id, b"\1\0\0\0\2\0\0\0", "stored")
    assert (again.status_code, again.json()) == (202, stored.json() | {"duplicate": True})
    other = server.submit(id, b"\1\0\0\0", "stored")
    assert problem_of(other) == "idempotency-key-reused"
    for key in ("new", None):
        new = server.submit(id, b"\1\0\0\0\2\0\0\0", key)
        assert problem_of(new) == "round-closed"
    assert server.frequencies(id)["counts"] == [0, 1, 1, 0]
