"""Canaries over HTTP: items that the caller of an analysis knows to be held by nobody."""

import numpy as np
import pytest
from tests.server.conftest import InProcess

from ldprecover import GRR, RecoveryRequest, Tally, recover
from ldprecover.evidence.alarms import raise_alarms

pytestmark = pytest.mark.sqlite

D, K, N = 40, 5, 4_000
ITEMS = [f"item {i}" for i in range(D - K)] + [f"nobody {i}" for i in range(K)]


def test_canaries_are_named_by_label_or_index(in_process: InProcess) -> None:
    oracle, rng = GRR(2.0, D), np.random.default_rng(2)
    honest = oracle.perturb(rng.integers(D - K, size=N), rng)
    reports = np.concatenate([honest, np.resize(np.arange(20), 400).astype(honest.dtype)])
    id = in_process.open_round("grr", 2.0, items=ITEMS)
    in_process.submit(id, reports, "a")
    labels, indices = ["no\u200bbody 0", *ITEMS[1 - K :]], tuple(range(D - K, D))
    response = in_process.get(f"/rounds/{id}/alarms", params={"canary": labels}).json()
    alarms = raise_alarms(oracle, Tally.of(oracle, reports), canaries=indices)
    expected = [(alarm.name, alarm.statistic) for alarm in alarms]
    assert [(each["name"], each["statistic"]) for each in response["alarms"]] == expected
    body = {"method": "unmix", "canaries": [*labels[:-1], D - 1]}
    response = in_process.post(f"/rounds/{id}/recover", json=body).json()
    recovered = recover(oracle, reports, RecoveryRequest("unmix", canaries=indices)).recovered
    assert response["recovered"] == pytest.approx(recovered.tolist(), abs=1e-12)
    unknowing = in_process.post(f"/rounds/{id}/recover", json={"method": "unmix"}).json()
    assert unknowing["recovered"] != pytest.approx(recovered.tolist(), abs=1e-6)
