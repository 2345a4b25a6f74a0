"""Whatever is sent, the answer is the one the documentation promises, and never a failure.

Examples are new in each run, and few for each protocol; `tests/fuzz` draws many more.
"""

import gzip
import json
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.conftest import PACKED
from tests.server.conftest import InProcess

from ldprecover import FrequencyOracle, ReportError, RoundParameters
from ldprecover.protocols import PROTOCOLS, own_parameters, wire

pytestmark = pytest.mark.sqlite


JSON = {"Content-Type": "application/json"}

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None), max_size=8)
    | st.sampled_from(["0", "01010101010", "olh", "current", "\ud800", 10**30, 1e308])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)


def objects(*fields: str) -> st.SearchStrategy[Any]:
    """Return objects with some of these fields, and perhaps others, of any value."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(fields, values)) | st.dictionaries(
        st.text(st.characters(codec=None), max_size=5) | st.sampled_from(fields), values, max_size=5
    )


@pytest.fixture(scope="module")
def rounds(in_process: InProcess) -> dict[str, str]:
    """A round of each protocol over eleven items."""
    own = {"olh": {"hash_range": 4}}
    return {
        name: in_process.open_round(name, domain_size=11, **own.get(name, {})) for name in PROTOCOLS
    }


def check(app: InProcess, response: Any, allowed: set[int]) -> None:
    assert response.status_code in allowed, response.text
    kind = "application/json" if response.status_code < 300 else "application/problem+json"
    assert response.headers["content-type"] == kind
    json.loads(response.content)


@settings(max_examples=25, deadline=None)
@given(data=st.binary(max_size=60))
@example(data=b"")
@example(data=b"\xff" * 12)
def test_any_bytes_are_packed_reports_or_refused(
    in_process: InProcess, rounds: dict[str, str], oracle: FrequencyOracle, data: bytes
) -> None:
    """Taken exactly if the library's own decoder takes them, and then counted."""
    path = f"/rounds/{rounds[oracle.protocol]}"
    before = np.array(in_process.get(f"{path}/frequencies").json()["counts"])
    response = in_process.post(f"{path}/reports", content=data, headers=PACKED | in_process.admin)
    check(in_process, response, {202, 422})
    after = np.array(in_process.get(f"{path}/frequencies").json()["counts"])
    refusal = None
    reports = oracle.encode([])
    try:
        reports = oracle.wire.unpack(data)
    except ReportError as error:
        refusal = error
    assert response.status_code == (422 if refusal else 202)
    assert response.json().get("position") == (refusal.position if refusal else None)
    assert (after - before == oracle.support_counts(reports)).all()


@settings(max_examples=30, deadline=None)
@given(body=objects("reports", "seeds", "buckets") | values)
def test_any_json_is_a_submission_or_refused(
    in_process: InProcess, rounds: dict[str, str], oracle: FrequencyOracle, body: Any
) -> None:
    headers = JSON | in_process.admin
    response = in_process.post(
        f"/rounds/{rounds[oracle.protocol]}/reports", content=json.dumps(body), headers=headers
    )
    check(in_process, response, {202, 422})


@settings(max_examples=30, deadline=None)
@given(content=st.binary(max_size=60), zipped=st.booleans())
def test_any_bytes_are_json_or_refused(
    in_process: InProcess, rounds: dict[str, str], content: bytes, zipped: bool
) -> None:
    headers = JSON | ({"Content-Encoding": "gzip"} if zipped else {})
    for path in (f"/rounds/{rounds['olh']}/reports", "/recover", "/rounds"):
        for body in (content, gzip.compress(content)):
            response = in_process.post(path, content=body, headers=headers | in_process.admin)
            check(in_process, response, {200, 201, 202, 400, 409, 415, 422})


@settings(max_examples=30, deadline=None)
@given(
    body=objects("name", "protocol", "epsilon", "items", "domain_size", "hash_range")
    | st.fixed_dictionaries(
        {
            "protocol": st.sampled_from(list(PROTOCOLS)),
            "epsilon": st.floats() | st.integers(-1, 12),
            "items": st.lists(st.text(st.characters(codec=None), max_size=3), max_size=4),
        },
        optional={
            "name": st.text(max_size=3),
            "hash_range": st.none() | st.integers(0, 70_000),
            "access": st.sampled_from(["open", "ticket"]),
        },
    )
)
def test_any_json_opens_the_requested_round_or_none(in_process: InProcess, body: Any) -> None:
    response = in_process.post("/rounds", content=json.dumps(body), headers=JSON | in_process.admin)
    check(in_process, response, {201, 409, 422})
    if response.status_code == 201:
        opened = response.json()
        round_parameters = RoundParameters.named(
            opened["protocol"],
            opened["epsilon"],
            tuple(opened["items"]),
            {name: opened[name] for name in own_parameters()},
        )
        assert round_parameters.digest == opened["digest"]
        requested = {name: value for name, value in body.items() if value is not None}
        assert {name: opened[name] for name in requested} == requested
        in_process.delete_round(opened["id"])


@settings(max_examples=25, deadline=None)
@given(
    body=objects("eta", "targets", "method", "malicious_model")
    | st.fixed_dictionaries(
        {
            "targets": st.lists(
                st.integers(-2, 12) | st.sampled_from(["0", "10", "11"]), max_size=12
            )
        },
        optional={"eta": st.floats(0, 10), "malicious_model": st.sampled_from(["paper", "exact"])},
    )
)
def test_any_json_is_a_recovery_or_refused(
    in_process: InProcess, rounds: dict[str, str], oracle: FrequencyOracle, body: Any
) -> None:
    path = f"/rounds/{rounds[oracle.protocol]}"
    in_process.post(f"{path}/reports", content=wire.pack(oracle.encode([3])), headers=PACKED)
    response = in_process.post(f"{path}/recover", content=json.dumps(body), headers=JSON)
    check(in_process, response, {200, 422})
    if response.status_code == 200:
        recovered = np.array(response.json()["recovered"])
        assert recovered.min() >= 0
        assert abs(recovered.sum() - 1) < 1e-9


items = st.integers(-2, 12) | st.sampled_from(["0", "10", "11"])
questions = st.fixed_dictionaries(
    {},
    optional={
        "items": st.lists(items, max_size=12),
        "ahead": st.lists(items, min_size=1, max_size=3),
        "top": st.integers(0, 13),
        "more_than": st.floats(-0.1, 1.1),
    },
)


@settings(max_examples=25, deadline=None)
@given(
    body=objects("malicious_share", "malicious_tickets", "confidence", "questions")
    | st.fixed_dictionaries(
        {"malicious_share": st.floats(0, 0.999), "questions": st.lists(questions, max_size=4)},
        optional={"confidence": st.floats(0.5, 0.999)},
    )
)
def test_any_json_is_a_certificate_or_rejected(
    in_process: InProcess, rounds: dict[str, str], oracle: FrequencyOracle, body: Any
) -> None:
    path = f"/rounds/{rounds[oracle.protocol]}"
    in_process.post(f"{path}/reports", content=wire.pack(oracle.encode([3])), headers=PACKED)
    response = in_process.post(f"{path}/certificate", content=json.dumps(body), headers=JSON)
    check(in_process, response, {200, 409, 422})
    if response.status_code == 200:
        lower, upper = (np.array(response.json()[name]) for name in ("lower", "upper"))
        assert lower.min() >= 0
        assert upper.max() <= 1
        assert (lower <= upper).all()
        assert len(response.json()["answers"]) == len(body.get("questions", []))


@settings(max_examples=30, deadline=None)
@given(key=st.binary(max_size=70))
def test_any_header_is_a_key_or_refused(
    in_process: InProcess, rounds: dict[str, str], key: bytes
) -> None:
    response = in_process.post(
        f"/rounds/{rounds['grr']}/reports",
        content=b"\1\0\0\0",
        headers={**PACKED, "Idempotency-Key": key},
    )
    whole = 1 <= len(key) <= 64 and all(0x21 <= byte <= 0x7E for byte in key)
    check(in_process, response, {202} if whole else {422})


@settings(max_examples=30, deadline=None)
@given(identifier=st.text(st.characters(codec="utf-8"), min_size=1, max_size=20))
@example(identifier="\0")
@example(identifier="a/b")
def test_any_identifier_is_a_round_or_a_404(in_process: InProcess, identifier: str) -> None:
    for path in ("/rounds/{}", "/rounds/{}/parameters", "/rounds/{}/frequencies"):
        escaped = quote(identifier, safe="").replace(".", "%2E")
        check(in_process, in_process.get(path.format(escaped)), {200, 404})


@settings(max_examples=30, deadline=None)
@given(authorization=st.binary(max_size=40))
def test_no_header_but_the_key_opens_a_round(in_process: InProcess, authorization: bytes) -> None:
    body = {"protocol": "grr", "epsilon": 1, "domain_size": 4}
    response = in_process.post("/rounds", json=body, headers={"Authorization": authorization})
    check(in_process, response, {401})
