"""Quarantine and canaries over HTTP: what answers, retries, n, the estimates, statistics and
exports say of them.
"""

from typing import Any

import numpy as np
import pytest
from tests.conftest import PACKED
from tests.server.conftest import InProcess, StartInProcess, problem_of

from ldprecover import OUE, Estimates, RoundExport, RoundParameters, Tally, frequency_oracle
from ldprecover.evidence.quarantine import Quarantined, report_threshold

pytestmark = pytest.mark.sqlite


D = 102
HONEST = 5


@pytest.fixture
def app(start_in_process: StartInProcess) -> InProcess:
    return start_in_process()


def rows(*sizes: int) -> np.ndarray:
    return np.packbits(np.arange(D) < np.array(sizes)[:, None], axis=1, bitorder="little")


def honest(oracle: Any) -> np.ndarray:
    reports: np.ndarray = oracle.perturb(np.arange(HONEST), np.random.default_rng(1))
    return reports


def metric(app: InProcess, reason: str) -> float:
    name = f'ldprecover_quarantined_reports_total{{reason="{reason}"}} '
    response = [line for line in app.get("/metrics").text.splitlines() if line.startswith(name)]
    return float(response[0].removeprefix(name)) if response else 0.0


@pytest.mark.both
def test_impossible_sizes_are_accepted_and_quarantined(app: InProcess) -> None:
    oracle = OUE(0.5, D)
    id = app.open_round("oue", 0.5, domain_size=D, quarantine=True)
    whole = np.concatenate([honest(oracle), rows(1, D)])
    answer = app.submit(id, whole, "a")
    assert (answer.status_code, answer.json()) == (
        202,
        {"round": id, "accepted": HONEST + 2, "duplicate": False},
    )
    assert app.submit(id, rows(0), "b").json()["accepted"] == 1  # alone: nothing is left to count
    assert (
        app.submit(id, honest(oracle)[:1], "c").status_code == 202
    )  # after a tally that was written the longer way

    counted = Tally.of(oracle, np.concatenate([honest(oracle), honest(oracle)[:1]]))
    response = app.frequencies(id)
    assert (response["n"], response["counts"]) == (HONEST + 1, counted.counts(oracle).tolist())
    assert response["frequencies"] == Estimates.of(oracle, counted).frequencies.tolist()
    assert response["quarantined"] == {"sizes": 3, "repeats": 0}
    round_ = app.get(f"/rounds/{id}").json()
    assert (round_["n"], round_["quarantine"], round_["quarantined"]) == (
        HONEST + 1,
        True,
        {"sizes": 3, "repeats": 0},
    )
    stats = app.get(f"/rounds/{id}/stats").json()
    assert (stats["reports"], stats["quarantined"]) == (HONEST + 1, {"sizes": 3, "repeats": 0})
    assert metric(app, "size") == 3
    assert app.storage.check() == []


@pytest.mark.both
def test_retries_of_quarantined_reports_are_recognised(app: InProcess) -> None:
    id = app.open_round("oue", 0.5, domain_size=D, quarantine=True)
    for _ in range(2):
        answers = [
            app.submit(id, rows(1), "a").json(),
            app.submit(id, rows(40), "b").json(),
        ]
        assert [answer["accepted"] for answer in answers] == [1, 1]
    assert [answer["duplicate"] for answer in answers] == [True, True]
    assert problem_of(app.submit(id, rows(2), "a")) == "idempotency-key-reused"
    app.close_round(id)
    assert app.submit(id, rows(1), "a").json()["duplicate"]
    assert problem_of(app.submit(id, rows(1), "c")) == "round-closed"
    assert app.get(f"/rounds/{id}").json()["quarantined"] == {"sizes": 1, "repeats": 0}
    assert metric(app, "size") == 1


def test_without_quarantine_every_valid_report_counts(app: InProcess) -> None:
    id = app.open_round("oue", 0.5, domain_size=D)
    app.submit(id, rows(1, D), "a")
    response = app.frequencies(id)
    assert (response["n"], response["quarantined"]) == (2, None)
    round_ = app.get(f"/rounds/{id}").json()
    assert (round_["quarantine"], round_["quarantined"], round_["canaries"]) == (False, None, [])


@pytest.mark.both
def test_recurring_seeds_are_quarantined_after_the_close(app: InProcess) -> None:
    oracle = frequency_oracle("olh", 0.5, D)
    id = app.open_round("olh", 0.5, domain_size=D, quarantine=True)
    same = np.repeat(honest(oracle)[:1], 20)
    app.submit(id, np.concatenate([honest(oracle)[1:], same]), "a")
    assert app.frequencies(id)["quarantined"] == {"sizes": 0, "repeats": None}
    app.close_round(id)
    assert app.storage.filters.run().rows == 20
    response = app.frequencies(id)
    assert (response["n"], response["quarantined"]) == (HONEST - 1, {"sizes": 0, "repeats": 20})
    assert response["counts"] == Tally.of(oracle, honest(oracle)[1:]).counts(oracle).tolist()
    assert app.submit(id, np.concatenate([honest(oracle)[1:], same]), "a").json()["duplicate"]


def test_an_export_says_what_was_set_aside(app: InProcess) -> None:
    id = app.open_round(
        "oue", 0.5, items=[f"i{i}" for i in range(D - 2)], canaries=["x", "y"], quarantine=True
    )
    app.submit(id, rows(1, 40), "a")
    export = RoundExport.from_json(app.get(f"/rounds/{id}/export").content)
    assert export.quarantined == Quarantined(1, 0)
    assert (export.tally.n, export.parameters.canaries, export.parameters.quarantine) == (
        1,
        (D - 2, D - 1),
        True,
    )
    assert export.parameters.digest == app.get(f"/rounds/{id}/parameters").json()["digest"]


@pytest.mark.both
def test_repeats_are_quarantined_after_the_close(app: InProcess) -> None:
    oracle = frequency_oracle("llh", 1.0, 9, 3)
    id = app.open_round("llh", 1.0, domain_size=9, hash_range=3, quarantine=True)
    rng = np.random.default_rng(1)
    reports = np.concatenate([oracle.perturb(rng.integers(9, size=200), rng), [4] * 90])
    assert app.submit(id, reports.astype("<u4"), "a").status_code == 202
    assert app.frequencies(id)["quarantined"] == {"sizes": 0, "repeats": None}
    app.close_round(id)
    app.storage.filters.run()
    summary = np.bincount(reports, minlength=27)
    limit = report_threshold(oracle, reports.size) - 1
    repeats = int(summary[4]) - limit
    summary[4] = limit
    response = app.frequencies(id)
    assert repeats > 30
    assert response["quarantined"] == {"sizes": 0, "repeats": repeats}
    assert response["n"] == reports.size - repeats
    assert response["counts"] == oracle.counts_from(summary).tolist()
    assert metric(app, "size") == 0
    assert app.storage.check() == []


@pytest.mark.parametrize("protocol", ["hr", "llh", "olh"])
def test_rejects_quarantine_that_would_judge_nothing(app: InProcess, protocol: str) -> None:
    answer = app.try_open(protocol, quarantine=True, retention="none")
    assert problem_of(answer) == "reports-not-kept"
    assert answer.status_code == 409
    assert answer.json()["detail"] == (
        f"quarantine: {protocol} reports are judged when the round has closed, and retention none "
        "stores none of them; choose another retention"
    )
    assert app.try_open(protocol, quarantine=True, retention="1h").status_code == 201


def test_sizes_are_judged_without_stored_reports(app: InProcess) -> None:
    fields: dict[str, Any] = {"domain_size": D, "quarantine": True, "retention": "none"}
    assert app.try_open("olh", **fields).status_code == 201


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        ("grr", "every grr report supports one item"),
        ("ss", "every ss report supports"),
        ("oue", "of 4 items an honest report may support any number"),
    ],
)
def test_rejects_quarantine_without_effect(app: InProcess, protocol: str, reason: str) -> None:
    answer = app.try_open(protocol, quarantine=True)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(f"quarantine: {reason}")


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
    rng = np.random.default_rng(1)
    genuine = oracle.perturb(rng.integers(D - 10, size=20_000), rng)
    app.submit(id, genuine, "a")

    def alarm() -> dict[str, Any]:
        alarms = app.get(f"/rounds/{id}/alarms?rate=1e-9").json()["alarms"]
        return next(each for each in alarms if each["name"] == "canaries")

    assert app.frequencies(id)["canaries"] == list(range(D - 10, D))
    assert not alarm()["raised"]
    app.submit(id, np.repeat(rows(1), 2_000, axis=0), "b")
    assert alarm()["raised"]


def test_canaries_can_be_targets_of_a_recovery(app: InProcess) -> None:
    id = app.open_round("oue", 0.5, items=["a", "b"], canaries=["x"])
    headers = PACKED | app.admin
    app.post(f"/rounds/{id}/reports", content=b"\1\5\4", headers=headers)
    response = app.post(f"/rounds/{id}/recover", json={"targets": ["x"]})
    assert (response.status_code, response.json()["targets"]) == (200, [2])
