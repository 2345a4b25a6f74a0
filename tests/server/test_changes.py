"""Changes over HTTP: the golden table, attacks first, and rounds that cannot be compared."""

from itertools import count
from typing import Any

import numpy as np
import pytest
from tests.server.conftest import InProcess, problem_of

from ldprecover import OUE
from ldprecover.protocols import wire

pytestmark = pytest.mark.sqlite

BEFORE, AFTER = [0.4, 0.2, 0.15, 0.1, 0.1, 0.05], [0.33, 0.27, 0.15, 0.1, 0.1, 0.05]
ORACLE = OUE(1.0, 6)
_names = (f"changes{i}" for i in count())


def expected_reports(frequencies: list[float], n: int) -> bytes:
    """Return n honest reports, of which few bits are changed so that the counts are the expected.

    Independent bits of these counts would differ from honest reports, and raise an alarm.
    """
    rng = np.random.default_rng(n)
    users = np.repeat(np.arange(6), np.round(n * np.array(frequencies)).astype(int))
    bits = np.unpackbits(ORACLE.perturb(users, rng), axis=1, bitorder="little")
    counts = np.round(n * (ORACLE.q + (ORACLE.p - ORACLE.q) * np.array(frequencies))).astype(int)
    for column, expected in zip(bits.T, counts, strict=False):
        excess = int(column.sum()) - expected
        column[rng.permutation(np.flatnonzero(column == (excess > 0)))[: abs(excess)]] ^= 1
    return wire.pack(np.packbits(bits, axis=1, bitorder="little"))


def series_of(app: InProcess, *packed: bytes) -> str:
    name = next(_names)
    for reports in packed:
        id = app.open_round("oue", 1.0, domain_size=6, series=name)
        if reports:
            assert app.submit(id, reports).status_code == 202
        app.close_round(id)
    return name


def changes_of(app: InProcess, round: str, **body: Any) -> Any:
    response = app.post(f"/rounds/{round}/changes", json=body)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize(
    ("n", "error", "half", "word", "proven"),
    [
        (5_000, 0.0413678, 0.109139, "not_proven", None),
        (100_000, 0.0092501, 0.024404, "fell", 0.00558),
    ],
)
def test_changes_are_those_of_a_worked_example(
    in_process: InProcess, n: int, error: float, half: float, word: str, proven: float | None
) -> None:
    name = series_of(in_process, *(expected_reports(shares, n) for shares in (BEFORE, AFTER)))
    answer = changes_of(in_process, f"{name}-2")
    assert (answer["n"], answer["since_n"], answer["words_from"]) == (n, n, "interval")
    assert (answer["numbers"], answer["since_numbers"]) == ([2], [1])
    assert {side: verdict["attack"] for side, verdict in answer["verdicts"].items()} == {
        "since": "none_seen",
        "round": "none_seen",
    }
    assert answer["changes"][0] == pytest.approx(-0.07, abs=2e-4)
    assert answer["standard_errors"][0] == pytest.approx(error, abs=1e-6)
    assert answer["upper"][0] - answer["changes"][0] == pytest.approx(half, abs=2e-6)
    assert answer["words"][0] == word
    assert answer["proven_up_to"][0] == pytest.approx(proven, abs=5e-6)
    first = in_process.get(f"/rounds/{name}-1").json()["id"]
    assert (answer["since"], answer) == (first, changes_of(in_process, f"{name}-2", since=first))
    table = in_process.post(f"/rounds/{name}-2/changes?format=csv", json={"confidence": 0.5})
    assert table.text.startswith('"item","index","change","standard_error","lower","upper",')
    same = changes_of(in_process, f"{name}-2", people="same")
    assert same["standard_errors"][0] < error


@pytest.mark.both
def test_windows_are_compared_with_those_before_them(in_process: InProcess) -> None:
    halves = [expected_reports(shares, 2_500) for shares in (BEFORE, BEFORE, AFTER, AFTER)]
    name = series_of(in_process, *halves)
    answer = changes_of(in_process, f"{name}-4", window=2)
    assert (answer["numbers"], answer["since_numbers"]) == ([3, 4], [1, 2])
    assert answer["standard_errors"][0] == pytest.approx(0.0413678, abs=1e-5)
    in_process.delete_round(f"{name}-3")
    alone = changes_of(in_process, f"{name}-4")
    assert (alone["numbers"], alone["since_numbers"], alone["n"]) == ([4], [2], 2_500)
    shorter = changes_of(in_process, f"{name}-4", window=3)
    assert (shorter["numbers"], shorter["since_numbers"]) == ([2, 4], [1])


def test_certificate_decides_where_a_verdict_sees_an_attack(in_process: InProcess) -> None:
    """A tenth of the reports are of all items, which proves an attack."""
    every = wire.pack(np.full((10_000, 1), 0b111111, np.uint8))
    honest = expected_reports(BEFORE, 100_000)
    name = series_of(in_process, honest, honest + every, honest)
    attacked = changes_of(in_process, f"{name}-2", malicious_share=0.01)
    assert attacked["verdicts"]["round"]["attack"] == "near_certain"
    assert attacked["words_from"] == "certificate"
    assert set(attacked["words"]) == {"not_proven"}
    assert 0.05 < attacked["malicious_share"] < 0.1, "more than assumed is proven"
    assert min(np.array(attacked["lower"])) > 0, "each interval alone would say that it rose"


def test_rounds_that_cannot_be_compared_are_named(in_process: InProcess) -> None:
    few = expected_reports(BEFORE, 100)
    name = series_of(in_process, few, few, few, b"")
    others = {
        "epsilon": in_process.open_round("oue", 2.0, domain_size=6, name=f"{name}-e"),
        "items": in_process.open_round("oue", 1.0, domain_size=7, name=f"{name}-d"),
        "question": in_process.open_round("oue", 1.0, domain_size=6, question="Which?"),
    }
    last = in_process.open_round("oue", 1.0, domain_size=6)
    for difference, other in others.items():
        response = in_process.post(f"/rounds/{last}/changes", json={"since": other})
        assert problem_of(response) == "not-comparable"
        assert response.json()["detail"].endswith(f" differ in {difference}")
    for round, body in (
        (f"{name}-1", {}),
        (f"{name}-3", {"window": 3}),
        (f"{name}-3", {"since": f"{name}-3"}),
        (f"{name}-2", {"since": f"{name}-3"}),
        (f"{name}-3", {"since": f"{name}-2", "window": 2}),
        (last, {}),
    ):
        response = in_process.post(f"/rounds/{round}/changes", json=body)
        assert problem_of(response) == "not-comparable", (round, body)
    response = in_process.post(f"/rounds/{name}-4/changes", json={})
    assert problem_of(response) == "no-reports"
    assert f"{name}-4" in response.json()["detail"]
    response = in_process.post(f"/rounds/{name}-3/changes", json={"malicious_share": 1})
    assert problem_of(response) == "invalid-request"
    response = in_process.post(f"/rounds/{name}-3/changes", json={"confidence": 1 - 2**-53})
    assert problem_of(response) == "invalid-parameter"
