"""Canaries over HTTP: items that the caller of an analysis knows to be held by nobody."""

from typing import Any

import numpy as np
import pytest
from tests.server.conftest import InProcess

from ldprecover import GRR, OUE, RecoveryRequest, recover

pytestmark = pytest.mark.sqlite

D, K, N = 40, 5, 4_000
ITEMS = [f"item {i}" for i in range(D - K)] + [f"nobody {i}" for i in range(K)]
ORACLE = OUE(1.0, D)


@pytest.fixture
def shifted(in_process: InProcess) -> str:
    """A round with an eighth of reports of no item, which shift all estimates alike."""
    rng = np.random.default_rng(1)
    reports = ORACLE.perturb(rng.integers(D - K, size=N), rng)
    reports = np.concatenate([reports, np.zeros((N // 8, reports.shape[1]), np.uint8)])
    id = in_process.open_round("oue", 1.0, items=ITEMS)
    in_process.submit(id, reports, "a")
    return str(id)


def alarms(in_process: InProcess, id: str, canaries: list[str]) -> dict[str, Any]:
    """Return which alarms are raised, by name."""
    response = in_process.get(f"/rounds/{id}/alarms", params={"rate": 1e-9, "canary": canaries})
    return {each["name"]: each["raised"] for each in response.json()["alarms"]}


def test_shifted_canaries_raise_their_alarm(in_process: InProcess, shifted: str) -> None:
    assert "canaries" not in alarms(in_process, shifted, [])
    assert alarms(in_process, shifted, ITEMS[-K:])["canaries"]
    assert not alarms(in_process, shifted, ["ite\u00adm\u00a00"])["canaries"]


def test_recovery_uses_canaries_by_label_and_index(in_process: InProcess) -> None:
    oracle, rng = GRR(2.0, D), np.random.default_rng(2)
    honest = oracle.perturb(rng.integers(D - K, size=N), rng)
    reports = np.concatenate([honest, np.resize(np.arange(20), 400).astype(honest.dtype)])
    id = in_process.open_round("grr", 2.0, items=ITEMS)
    in_process.submit(id, reports, "a")
    body = {"method": "unmix", "canaries": ["no\u200bbody 0", *ITEMS[1 - K : -1], D - 1]}
    response = in_process.post(f"/rounds/{id}/recover", json=body).json()
    request = RecoveryRequest("unmix", canaries=range(D - K, D))
    expected = recover(oracle, reports, request).recovered.tolist()
    assert response["recovered"] == pytest.approx(expected, abs=1e-12)
    unknowing = in_process.post(f"/rounds/{id}/recover", json={"method": "unmix"}).json()
    assert unknowing["recovered"] != pytest.approx(expected, abs=1e-6)
