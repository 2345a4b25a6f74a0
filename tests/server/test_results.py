"""Frequencies and recoveries: what the mathematics says of the counts, to the bit."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from tests.conftest import ServerProcess
from tests.server.conftest import problem_of

from ldprecover import Estimates, FrequencyOracle, RecoveryRequest, RoundParameters, Tally, recover
from ldprecover.protocols import PROTOCOLS, own_parameters, wire

pytestmark = pytest.mark.sqlite


LABELS = ("3", "2", "1", "0", "Łódź", "x y", "a", "b", "c", "d", "e")
"""Labels that are also indices of other items: 3 and "3" are different targets."""


def own_of(opened: dict[str, Any]) -> int | None:
    """Return the value of the protocol's own parameter."""
    values = [opened[name] for name in own_parameters() if opened[name] is not None]
    return values[0] if values else None


Poisoned = dict[str, tuple[dict[str, Any], Tally]]


@pytest.fixture(scope="module")
def poisoned(server: ServerProcess) -> Poisoned:
    """A round of each protocol with 400 genuine and 100 malicious reports, and its tally by
    `ldprecover` itself.
    """
    rng = np.random.default_rng(3)
    rounds = {}
    for protocol in PROTOCOLS:
        own = {"hash_range": 4} if protocol == "olh" else {}
        opened = server.open_round(protocol, 1.0, items=LABELS, **own)
        oracle = RoundParameters(protocol, 1.0, LABELS, own_of(opened)).oracle
        genuine = oracle.perturb(rng.integers(0, 5, 400), rng)
        malicious = oracle.encode(rng.choice([7, 9], 100), rng)
        for reports in (genuine, malicious):
            assert server.submit(opened["id"], wire.pack(reports)).status_code == 202
        rounds[protocol] = opened, Tally.of(oracle, genuine) + Tally.of(oracle, malicious)
    return rounds


def test_frequencies_equal_the_estimates_of_the_counts(
    server: ServerProcess,
    poisoned: Poisoned,
    oracle: FrequencyOracle,
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
    # And by hand, from the paper's formulas.
    p, q, n = oracle.p, oracle.q, 500
    for count, frequency, error in zip(
        expected["counts"], expected["frequencies"], expected["standard_errors"], strict=True
    ):
        assert frequency == pytest.approx((count / n - q) / (p - q), rel=1e-12)
        f = min(max(frequency, 0), 1)
        variance = q * (1 - q) / (n * (p - q) ** 2) + f * (1 - p - q) / (n * (p - q))
        assert error == pytest.approx(math.sqrt(variance), rel=1e-12)


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
    "labels": (["b", "d"], (7, 9)),
    "indices": ([9, 7], (7, 9)),
    "a label that is also an index": (["3"], (0,)),
    "an index that is also a label": ([3], (3,)),
    "repeats in both forms": (["b", 7, "b", 9, 7, "3", 0], (0, 7, 9)),
    "all but one": ([*range(10)], tuple(range(10))),
    "labels beyond ASCII": (["Łódź", "x y"], (4, 5)),
}


@pytest.mark.parametrize(
    ("method", "eta", "model", "targets"),
    [
        *itertools.product(["ldprecover"], [0.2], ["paper"], TARGETS),
        *itertools.product(["ldprecover", "norm-sub"], [0, 10], ["paper"], ["labels"]),
        ("norm-sub", 0.2, "paper", "none"),
        ("ldprecover", 0.3, "exact", "labels"),
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


@pytest.mark.parametrize("content", [None, b"", b"null", b"{}", b'{"eta": 0.2, "targets": []}'])
def test_every_field_of_a_recovery_has_its_default(
    server: ServerProcess, poisoned: Poisoned, content: bytes | None
) -> None:
    opened, _ = poisoned["oue"]
    full = {"eta": 0.2, "targets": [], "method": "ldprecover", "malicious_model": "paper"}
    expected = server.post(f"/rounds/{opened['id']}/recover", json=full).json()
    headers = {"Content-Type": "application/json"} if content is not None else {}
    response = server.post(f"/rounds/{opened['id']}/recover", content=content, headers=headers)
    assert (response.status_code, response.json()) == (200, expected)
    assert (expected["eta"], expected["targets"], expected["method"]) == (0.2, [], "ldprecover")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("targets", ["a", "nowhere"], "nowhere"),
        ("targets", [0, 11], "11"),
        ("targets", ["3", "2", "1", "0", *range(4, 11), 10], "targets"),
        ("method", "magic", "norm-sub"),
        ("malicious_model", "padded", "malicious_model"),
    ],
)
def test_rejected_recovery_names_field(
    server: ServerProcess, poisoned: Poisoned, field: str, value: Any, words: str
) -> None:
    opened, _ = poisoned["grr"]
    response = server.post(f"/rounds/{opened['id']}/recover", json={field: value})
    assert problem_of(response) == "invalid-parameter"
    assert words in response.json()["detail"]


def test_no_positive_estimate_gives_zero_malicious_frequencies(
    server: ServerProcess,
) -> None:
    """OUE reports without a single one: every estimate is -q/(p - q)."""
    id = server.open_round("oue", 1.0, domain_size=5)["id"]
    assert server.submit(id, bytes(30)).status_code == 202
    response_body = server.post(f"/rounds/{id}/recover").json()
    assert max(response_body["poisoned"]) < 0
    assert response_body["malicious"] == 5 * [0]
    assert response_body["recovered"] == pytest.approx(5 * [0.2], abs=1e-15)
    assert any("no estimate is positive" in note for note in response_body["notes"])


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_the_smallest_domain_recovers(server: ServerProcess, protocol: str) -> None:
    id = server.open_round(protocol, 1.0, domain_size=2)["id"]
    oracle = RoundParameters(protocol, 1.0, ("0", "1"), None).oracle
    reports = oracle.perturb(np.zeros(50, dtype=np.int64), np.random.default_rng(1))
    server.submit(id, wire.pack(reports))
    for targets in ([], [0], [1]):
        response_body = server.post(f"/rounds/{id}/recover", json={"targets": targets}).json()
        assert min(response_body["recovered"]) >= 0
        assert sum(response_body["recovered"]) == pytest.approx(1, abs=1e-12)
