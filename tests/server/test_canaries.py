"""Canaries over HTTP: what answers, estimates and alarms say of them."""

from typing import Any

import numpy as np
import pytest
from tests.conftest import PACKED
from tests.server.conftest import InProcess, StartInProcess, problem_of

from ldprecover import OUE, RoundParameters

pytestmark = pytest.mark.sqlite

D = 102


@pytest.fixture
def app(start_in_process: StartInProcess) -> InProcess:
    return start_in_process()


def test_canaries_follow_the_items_by_label_or_number(app: InProcess) -> None:
    items = ["a", "canary 2", "b"]
    named = app.get(f"/rounds/{app.open_round('grr', items=items, canaries=['x', 'y'])}").json()
    assert (named["items"], named["canaries"], named["domain_size"]) == (
        [*items, "x", "y"],
        [3, 4],
        5,
    )
    numbered = app.get(f"/rounds/{app.open_round('grr', items=items, canaries=3)}").json()
    assert numbered["items"] == [*items, "canary 1", "canary 3", "canary 4"]
    counted = app.get(
        f"/rounds/{app.open_round('grr', domain_size=3, canaries=1)}/parameters"
    ).json()
    assert (counted["items"], counted["canaries"]) == (["0", "1", "2", "canary 1"], [3])
    parameters = RoundParameters("grr", 1.0, (*items, "x", "y"), canaries=(3, 4))
    assert named["digest"] == parameters.digest


@pytest.mark.parametrize("canaries", [0, 101, [], [""], ["a"], "x", 1.5, [1]])
def test_rejects_invalid_canaries(app: InProcess, canaries: object) -> None:
    assert app.try_open(items=["a", "b"], canaries=canaries).status_code == 422


def test_rounds_of_a_series_share_numbered_canaries(app: InProcess) -> None:
    for _ in range(2):
        app.open_round("grr", items=["a", "b"], canaries=2, series="daily")
    assert problem_of(app.try_open(items=["a", "b"], series="daily")) == "series-mismatch"


def test_shifted_reports_raise_the_alarm_of_canaries(
    app: InProcess,
) -> None:
    oracle = OUE(0.5, D)
    id = app.open_round("oue", 0.5, domain_size=D - 10, canaries=10)
    one = np.packbits(np.arange(D) < 1, bitorder="little")[None]
    rng = np.random.default_rng(1)
    genuine = oracle.perturb(rng.integers(D - 10, size=20_000), rng)
    app.submit(id, genuine, "a")

    def alarm() -> dict[str, Any]:
        alarms = app.get(f"/rounds/{id}/alarms?rate=1e-9").json()["alarms"]
        return next(each for each in alarms if each["name"] == "canaries")

    assert app.frequencies(id)["canaries"] == list(range(D - 10, D))
    assert not alarm()["raised"]
    app.submit(id, np.repeat(one, 2_000, axis=0), "b")
    assert alarm()["raised"]


def test_canaries_can_be_targets_of_a_recovery(app: InProcess) -> None:
    id = app.open_round("oue", 0.5, items=["a", "b"], canaries=["x"])
    headers = PACKED | app.admin
    app.post(f"/rounds/{id}/reports", content=b"\1\5\4", headers=headers)
    response = app.post(f"/rounds/{id}/recover", json={"targets": ["x"]})
    assert (response.status_code, response.json()["targets"]) == (200, [2])
