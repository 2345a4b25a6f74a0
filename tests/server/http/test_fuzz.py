"""Any bytes are reports or refused as the library does it, and no header is a key by chance.

Examples are new in each run, and few for each protocol; `tests/fuzz` draws many more.
"""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.conftest import PACKED
from tests.server.conftest import InProcess

from ldprecover import FrequencyOracle, ReportError
from ldprecover.protocols import PROTOCOLS

pytestmark = pytest.mark.sqlite


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
@given(authorization=st.binary(max_size=40))
def test_no_header_but_the_key_opens_a_round(in_process: InProcess, authorization: bytes) -> None:
    body = {"protocol": "grr", "epsilon": 1, "domain_size": 4}
    response = in_process.post("/rounds", json=body, headers={"Authorization": authorization})
    check(in_process, response, {401})
