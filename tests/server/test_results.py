"""Frequencies and recoveries: what the mathematics says of the counts, to the bit."""

import itertools
from typing import Any

import numpy as np
import pytest
from tests.conftest import ServerProcess
from tests.server.conftest import problem_of

from ldprecover import (
    Estimates,
    FrequencyOracle,
    RecoveryRequest,
    Tally,
    frequency_oracle,
    recover,
)
from ldprecover.protocols import PROTOCOLS, wire

pytestmark = pytest.mark.sqlite


LABELS = ("3", "2", "1", "0", "Łódź", "x y", "a", "b", "c", "d", "e")
"""Labels that are also indices of other items: 3 and "3" are different targets."""


Poisoned = dict[str, tuple[dict[str, Any], Tally]]


@pytest.fixture(scope="module")
def poisoned(server: ServerProcess) -> Poisoned:
    """A round of each protocol with 400 genuine and 100 malicious reports, and its tally by
    `ldprecover` itself.
    """
    rng = np.random.default_rng(3)
    rounds = {}
    for protocol in PROTOCOLS:
        oracle = frequency_oracle(protocol, 1.0, 11, 4 if protocol == "olh" else None)
        opened = server.open_round(protocol, 1.0, items=LABELS, **oracle.own)
        genuine = oracle.perturb(rng.integers(0, 5, 400), rng)
        malicious = oracle.encode(rng.choice([7, 9], 100), rng)
        for reports in (genuine, malicious):
            assert server.submit(opened["id"], wire.pack(reports)).status_code == 202
        rounds[protocol] = opened, Tally.of(oracle, genuine) + Tally.of(oracle, malicious)
    return rounds


def test_frequencies_equal_the_estimates_of_the_counts(
    server: ServerProcess, poisoned: Poisoned, oracle: FrequencyOracle
) -> None:
    opened, tally = poisoned[oracle.protocol]
    estimates = Estimates.of(oracle, tally)
    expected = {
        "round": opened["id"],
        "protocol": oracle.protocol,
        "epsilon": 1.0,
        "n": 500,
        "p": oracle.p,
        "q": oracle.q,
        "items": list(LABELS),
        "counts": tally.counts(oracle).tolist(),
        "frequencies": estimates.frequencies.tolist(),
        "standard_errors": estimates.standard_errors.tolist(),
        "sum": estimates.sum,
        "sum_standard_error": estimates.sum_standard_error,
    } | ({"notes": list(estimates.notes)} if estimates.notes else {})
    assert server.frequencies(opened["id"]) == expected
    assert min(expected["frequencies"]) < 0, "a negative estimate shows that none is clipped"


def test_without_reports_there_are_no_estimates(
    server: ServerProcess, oracle: FrequencyOracle
) -> None:
    id = server.open_round(oracle.protocol, 1.0, domain_size=11)["id"]
    response_body = server.frequencies(id)
    assert (response_body["n"], response_body["counts"]) == (0, 11 * [0])
    assert [
        response_body[name]
        for name in ("frequencies", "standard_errors", "sum", "sum_standard_error")
    ] == 4 * [None]
    assert (response_body["p"] > response_body["q"]) is True
    response = server.post(f"/rounds/{id}/recover")
    assert problem_of(response) == "no-reports"


TARGETS: dict[str, tuple[list[str | int], tuple[int, ...]]] = {
    "none": ([], ()),
    "repeats in both forms": (["b", 7, "b", 9, 7, "3", 0], (0, 7, 9)),
    "labels beyond ASCII": (["Łódź", "x y"], (4, 5)),
}


@pytest.mark.parametrize(
    ("method", "eta", "model", "targets"),
    [
        *itertools.product(["ldprecover"], [0.2], ["paper"], TARGETS),
        ("ldprecover", 10, "paper", "none"),
        ("norm-sub", 0.2, "paper", "none"),
        ("ldprecover", 0.3, "exact", "labels beyond ASCII"),
    ],
)
def test_a_recovery_is_that_of_the_library_to_the_bit(
    server: ServerProcess,
    poisoned: Poisoned,
    oracle: FrequencyOracle,
    method: str,
    eta: float,
    model: str,
    targets: str,
) -> None:
    opened, tally = poisoned[oracle.protocol]
    named, indices = TARGETS[targets]
    body = {"method": method, "eta": eta, "targets": named, "malicious_model": model}
    response = server.post(f"/rounds/{opened['id']}/recover", json=body)
    assert response.status_code == 200, response.text
    frequencies = Estimates.of(oracle, tally).frequencies
    expected = recover(
        oracle,
        frequencies,
        RecoveryRequest(method, eta=eta, targets=indices, malicious_model=model),
        n=500,
    )
    assert response.json() == {
        "round": opened["id"],
        "method": method,
        "eta": expected.eta,
        "targets": list(expected.targets),
        "malicious_model": model,
        "n": 500,
        "malicious_sum": (1 - oracle.q * 11) / (oracle.p - oracle.q),
        "items": list(LABELS),
        "poisoned": frequencies.tolist(),
        "malicious": expected.malicious.tolist(),
        "genuine": expected.genuine.tolist(),
        "recovered": expected.recovered.tolist(),
        "notes": list(expected.notes),
        "conclusions": None,
    }
    assert expected.notes


@pytest.mark.parametrize("content", [None, b"", b"{}", "GET"])
def test_recovery_without_fields_is_the_papers_and_names_auto(
    server: ServerProcess, poisoned: Poisoned, content: bytes | str | None
) -> None:
    path = f"/rounds/{poisoned['oue'][0]['id']}/recover"
    full = {"eta": 0.2, "targets": [], "method": "ldprecover", "malicious_model": "paper"}
    expected = server.post(path, json=full).json()
    if content == "GET":
        response = server.get(path)
    else:
        headers = {"Content-Type": "application/json"} if content is not None else {}
        response = server.post(path, content=content, headers=headers)
    *notes, note = response.json()["notes"]
    assert response.json() | {"notes": notes} == expected
    assert "names no method" in note
    assert "recommended method is auto" in note
