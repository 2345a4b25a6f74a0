"""Verdicts on closed rounds: their words, who sees them, and the recoveries that are kept."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from tests.conftest import ADMIN_KEY
from tests.server.conftest import InProcess, StartInProcess, problem_of

from ldprecover import Tally, frequency_oracle, recover
from ldprecover.evidence.alarms import raise_alarms
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery import Conclusions
from ldprecover_attacker import MGA
from ldprecover_interface.verdicts import (
    MAX_RAISED,
    MAX_TOP,
    MAX_TOP_LABEL,
)
from ldprecover_server.access.access import create_key
from ldprecover_server.analysis.tasks import VerdictResult
from ldprecover_server.analysis.verdicts import Verdicts, _ClaimedError
from ldprecover_server.analysis.verdicts import verdict_of as verdict_from
from ldprecover_server.analysis.worker_pool import Prepare
from ldprecover_server.errors import AnalysesBusyError, AnalysisTimeoutError
from ldprecover_server.housekeeping import Housekeeping
from ldprecover_server.storage.schema import tallies
from ldprecover_server.storage.verdicts import REPEAT_SECONDS

pytestmark = pytest.mark.sqlite

D, N = 30, 3_000
LABELS = [str(item) for item in range(D)]
TARGETS = (20, 21, 22)
AUTO = {"method": "auto"}
FIELDS = {
    "reports",
    "attack",
    "attack_probability",
    "unseen",
    "malicious_share",
    "least_malicious_share",
    "raised",
    "top",
    "sentences",
}

Start = Callable[..., InProcess]


@pytest.fixture
def start(start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Start applications that compute verdicts when `compute` is called, and not in between."""

    async def rest(self: Verdicts) -> None:
        pass

    monkeypatch.setattr(Verdicts, "run", rest)
    return start_in_process


def compute(app: InProcess) -> None:
    app.run(app.app.state.verdicts.compute_missing())


def reports_of(oracle: FrequencyOracle, malicious: int = 0) -> np.ndarray:
    rng = np.random.default_rng(1)
    weights = 0.8 ** np.arange(oracle.domain_size)
    items = rng.choice(oracle.domain_size, N, p=weights / weights.sum())
    honest = oracle.perturb(items, rng)
    if not malicious:
        return honest
    return np.concatenate([honest, MGA(TARGETS).reports(oracle, malicious, rng)])


def closed_round(
    app: InProcess, protocol: str = "oue", d: int = D, *, malicious: int = 0, **fields: Any
) -> str:
    id = app.open_round(protocol, 1.0, **{"domain_size": d, **fields})
    reports = reports_of(frequency_oracle(protocol, 1.0, d), malicious)
    assert app.submit(id, reports.tobytes()).status_code == 202
    assert app.close_round(id).status_code == 200
    return id


def verdict_of(app: InProcess, id: str, **options: Any) -> Any:
    """Return the verdict of a round; the list of rounds must agree."""
    verdict = app.get(f"/rounds/{id}", **options).json()["verdict"]
    listed = app.get("/rounds", **options).json()["rounds"]
    assert [each["verdict"] for each in listed if each["id"] == id] == [verdict]
    return verdict


def test_window_with_an_attacked_round_has_its_verdict(start: Start) -> None:
    """No recovery takes it for clean."""
    app = start()
    closed_round(app, series="usage", malicious=300)
    for number in (2, 3, 4):
        closed_round(app, series="usage", name=f"usage-{number}")
    compute(app)
    answer = app.post("/rounds/usage-4/changes", json={"window": 2}).json()
    since = answer["verdicts"]["since"]
    assert (since["attack"], since["reports"]) == ("near_certain", N + 300)
    assert answer["verdicts"]["round"]["reports"] == 2 * N
    assert answer["words_from"] == "certificate"
    assert app.post("/rounds/usage-4/recover", json=AUTO | {"window": 2}).json()["n"] == 2 * N
    body = {"method": "unmix", "window": 2, "history": ["window before"]}
    response = app.post("/rounds/usage-4/recover", json=body)
    assert problem_of(response) == "invalid-parameter"
    assert "usage-1 is near certain" in response.json()["detail"]


@pytest.mark.both
def test_verdict_has_the_conclusions_of_auto(start: Start) -> None:
    app = start()
    id = closed_round(app, malicious=300)
    assert verdict_of(app, id) is None
    compute(app)
    verdict = verdict_of(app, id)
    conclusions = app.post(f"/rounds/{id}/recover", json=AUTO).json()["conclusions"]
    assert set(verdict) == FIELDS
    assert verdict["attack"] == conclusions["attack"] == "near_certain"
    assert verdict["attack_probability"] == conclusions["attack_probability"]
    assert verdict["unseen"] == conclusions["unseen"]
    assert [each["items"] for each in verdict["unseen"]] == [10, 15]
    assert verdict["malicious_share"] == conclusions["beta"]
    assert verdict["raised"] == [each["item"] for each in conclusions["suspects"]]
    assert verdict["sentences"] == conclusions["sentences"][:2]
    assert set(TARGETS) <= set(verdict["raised"])
    share = {"malicious_share": 0.5}
    certificate = app.post(f"/rounds/{id}/certificate", json=share).json()
    assert verdict["least_malicious_share"] == certificate["least_malicious_share"]


def test_verdict_has_no_first_items_where_noise_hides_them(start: Start) -> None:
    app = start()
    id = app.open_round("oue", 0.05, domain_size=8)
    app.submit(id, reports_of(frequency_oracle("oue", 0.05, 8)).tobytes())
    app.close_round(id)
    compute(app)
    assert app.get(f"/rounds/{id}/frequencies").json()["notes"]
    assert verdict_of(app, id)["top"] == []


def test_verdict_has_the_most_frequent_items(start: Start) -> None:
    """By the recovery; a long label is cut, and there may be fewer items than ten."""
    app = start()
    labels = [f"item {item}" for item in range(8)]
    labels[0] = "x" * (MAX_TOP_LABEL + 1)
    short = {label: label for label in [*labels, *map(str, range(1000))]}
    short[labels[0]] = "x" * (MAX_TOP_LABEL - 1) + "…"
    many, few = closed_round(app), closed_round(app, "grr", 8, domain_size=None, items=labels)
    compute(app)
    for id, size in ((many, MAX_TOP), (few, 8)):
        answer = app.post(f"/rounds/{id}/recover", json=AUTO).json()
        estimates, items = answer["recovered"], answer["items"]
        order = sorted(range(len(items)), key=lambda item: -estimates[item])[:size]
        assert verdict_of(app, id)["top"] == [
            {"item": item, "label": short[items[item]], "estimate": estimates[item]}
            for item in order
        ]


def test_alarms_and_proof_speak_where_an_attack_cannot_be_seen(start: Start) -> None:
    app, d = start(), 8
    unseen, clean = closed_round(app, "hr", d), closed_round(app, "oue", d)
    oracle = frequency_oracle("hr", 1.0, d)
    attacked = app.open_round("hr", 1.0, domain_size=d)
    reports = np.repeat(reports_of(oracle)[:1], N, axis=0)
    assert any(a.raised for a in raise_alarms(oracle, Tally.of(oracle, reports)))
    app.submit(attacked, reports.tobytes())
    app.close_round(attacked)
    compute(app)
    verdict = verdict_of(app, unseen)
    assert (verdict["attack"], verdict["malicious_share"]) == ("cannot_be_seen", None)
    assert verdict["attack_probability"] == pytest.approx(0.1)
    verdict = verdict_of(app, clean)
    assert verdict["attack"] == "none_seen"
    assert verdict["attack_probability"] == pytest.approx(0.1)
    assert verdict["unseen"][0]["gain"] < 0.9 * verdict["unseen"][0]["untested"]
    assert "moves 4 items by up to" in verdict["sentences"][0]
    assert verdict_of(app, attacked)["attack"] == "near_certain"


def test_names_the_first_of_many_raised_items() -> None:
    oracle = frequency_oracle("grr", 1.0, D)
    suspects = tuple((item, 0.9) for item in reversed(range(2 * MAX_RAISED)))
    conclusions = Conclusions(attack="possible", beta=0.1, suspects=suspects)
    recovery = replace(recover(oracle, np.full(D, 1 / D), "norm-sub"), conclusions=conclusions)
    labels = [str(item) for item in range(2 * MAX_RAISED)]
    verdict = verdict_from(VerdictResult(recovery, (), 0.0), labels, N)
    assert (verdict.attack, verdict.malicious_share) == ("possible", 0.1)
    assert verdict.raised == [item for item, _ in suspects[:MAX_RAISED]]


@pytest.mark.parametrize(("alarms", "least"), [(("excess",), 0.0), ((), 0.01)])
def test_other_evidence_makes_an_attack_possible(alarms: tuple[str, ...], least: float) -> None:
    oracle = frequency_oracle("grr", 1.0, D)
    recovered = recover(oracle, np.full(D, 1 / D), n=N)
    assert verdict_from(VerdictResult(recovered, (), 0.0), LABELS, N).attack == "cannot_be_seen"
    assert verdict_from(VerdictResult(recovered, alarms, least), LABELS, N).attack == "possible"


def test_verdict_needs_the_key_that_results_need(start: Start) -> None:
    app = start()
    public, private = closed_round(app), closed_round(app, read_access="key")
    compute(app)
    keys = {scope: create_key(app.storage, scope) for scope in ("analyst", "report")}
    for key, may_read in (
        (None, False),
        ("of-nobody", False),
        (keys["report"], False),
        (keys["analyst"], True),
        (ADMIN_KEY, True),
    ):
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        assert verdict_of(app, public, headers=headers) is not None
        assert (verdict_of(app, private, headers=headers) is not None) is may_read


def test_stored_recovery_is_returned_without_reports(start: Start) -> None:
    """Of the counts alone the answer would differ, and no worker is asked."""
    app = start()
    id = closed_round(app, malicious=300)
    compute(app)
    with app.storage.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM segments")
    answer = app.post(f"/rounds/{id}/recover", json=AUTO).json()
    oracle = frequency_oracle("oue", 1.0, D)
    reports = reports_of(oracle, 300)
    expected = recover(oracle, reports)
    assert answer["recovered"] == pytest.approx(expected.recovered.tolist(), abs=1e-12)
    assert answer["notes"] == list(expected.notes)
    stated = app.post(f"/rounds/{id}/recover", json=AUTO | {"eta": 0.1, "targets": [3]})
    assert problem_of(stated) == "reports-not-kept"


def test_result_of_another_version_is_computed_again(start: Start) -> None:
    app = start()
    id = closed_round(app)
    compute(app)
    seq = app.storage.rounds.find(id).seq
    app.storage.verdicts.add(seq, "closed", "possible", "null", b"\x91\x01")
    assert app.post(f"/rounds/{id}/recover", json=AUTO).json()["method"] == "unmix"


def test_large_rounds_have_a_verdict_only_without_reading(start: Start) -> None:
    app = start(verdict_reports=N - 1)
    read, of_histogram = closed_round(app, "oue"), closed_round(app, "grr")
    unstored = closed_round(app, "oue", retention="none")
    compute(app)
    assert verdict_of(app, read) is None
    assert verdict_of(app, of_histogram) is not None
    assert verdict_of(app, unstored) is not None
    assert app.get("/version").json()["verdict_reports"] == N - 1


def test_round_beyond_the_limits_is_skipped(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    app = start(analysis_bytes=1 << 20)
    rounds = [closed_round(app, "grr", 300) for _ in range(2)]
    compute(app)
    for id in rounds:
        assert verdict_of(app, id) is None
        assert f"the round {id} has no verdict" in caplog.text
    caplog.clear()
    compute(app)
    assert "verdict" not in caplog.text
    failed = 'ldprecover_verdicts_total{outcome="failed"} 2.0'
    assert failed in app.get("/metrics").text.splitlines()


def test_a_damaged_round_does_not_stop_others(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    app = start()
    sound, damaged = closed_round(app, "grr"), closed_round(app, "grr")
    damage = sa.update(tallies).where(tallies.c.round == app.storage.rounds.find(damaged).seq)
    with app.storage.database.write() as connection:
        connection.execute(damage.values(counts=b"odd"))
    compute(app)
    assert verdict_of(app, sound) is not None
    assert verdict_of(app, damaged) is None
    assert f"the round {damaged} has no verdict" in caplog.text
    caplog.clear()
    compute(app)
    assert "verdict" not in caplog.text
    failed = 'ldprecover_verdicts_total{outcome="failed"} 1.0'
    assert failed in app.get("/metrics").text.splitlines()
    app.storage.deletion.delete(damaged)
    compute(app)
    assert app.app.state.verdicts._given_up == set()


def test_disabled_verdicts_end_their_task(start_in_process: StartInProcess) -> None:
    app = start_in_process(verdict_reports=0)
    app.run(app.app.state.verdicts.run())


def test_a_fault_does_not_end_the_task(
    start_in_process: StartInProcess,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = start_in_process()
    faults = iter([ZeroDivisionError])

    async def fail_once(self: Verdicts) -> None:
        for fault in faults:
            self.wake()
            raise fault
        raise SystemExit

    monkeypatch.setattr(Verdicts, "compute_missing", fail_once)
    with pytest.raises(SystemExit):
        app.run(app.app.state.verdicts.run())
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.both
def test_leaves_a_round_to_the_process_that_claimed_it(start: Start) -> None:
    app = start()
    claimed, other = closed_round(app, "grr"), closed_round(app, "grr")
    assert app.storage.verdicts.claim(app.storage.rounds.find(claimed).seq, "closed", N)
    compute(app)
    assert verdict_of(app, claimed) is None
    assert verdict_of(app, other) is not None


def test_preempted_computation_releases_its_claim(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = start()
    id = closed_round(app, "grr")

    async def preempt(prepare: Prepare) -> bytes:
        await asyncio.to_thread(prepare)
        raise AnalysesBusyError("a caller needs the worker")

    with monkeypatch.context() as busy:
        busy.setattr(app.app.state.verdicts.workers, "run_own", preempt)
        compute(app)
    assert verdict_of(app, id) is None
    compute(app)
    assert verdict_of(app, id) is not None


@pytest.mark.parametrize("claims_late", [False, True])
def test_cancelled_computation_releases_its_claim(
    start: Start, monkeypatch: pytest.MonkeyPatch, claims_late: bool
) -> None:
    """Also if the thread that claims the round outlives the task."""
    app = start()
    id = closed_round(app, "grr")
    late: list[Prepare] = []

    async def cancel() -> None:
        started = asyncio.Event()

        async def hang(prepare: Prepare) -> bytes:
            if claims_late:
                late.append(prepare)
            else:
                await asyncio.to_thread(prepare)
            started.set()
            await asyncio.Event().wait()
            raise AssertionError

        patch.setattr(app.app.state.verdicts.workers, "run_own", hang)
        task = asyncio.create_task(app.app.state.verdicts.compute_missing())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with monkeypatch.context() as patch:
        app.run(cancel())
    for prepare in late:
        with contextlib.suppress(_ClaimedError):
            prepare()
    compute(app)
    assert verdict_of(app, id) is not None


@pytest.mark.both
def test_attack_on_an_open_round_is_an_event(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """A look shows it on the round; gauge and log need a second one, five minutes later."""
    app = start()
    oracle, malicious = frequency_oracle("oue", 1.0, D), 300
    id = app.open_round("oue", 1.0, domain_size=D)
    reports = reports_of(oracle, malicious)
    app.submit(id, reports.tobytes())
    compute(app)
    verdict = verdict_of(app, id)
    assert (verdict["attack"], verdict["reports"]) == ("near_certain", N + malicious)
    assert gauges(app)["near_certain_once"] == 1
    assert "the verdict on" not in caplog.text
    app.submit(id, reports[:1].tobytes())
    compute(app)
    assert verdict_of(app, id) == verdict  # it is too recent
    answer = app.post(f"/rounds/{id}/recover", json=AUTO).json()
    assert answer["n"] == N + malicious + 1
    later = datetime.now(UTC) + timedelta(seconds=REPEAT_SECONDS)
    app.storage.verdicts.clock = lambda: later
    compute(app)
    assert verdict_of(app, id)["reports"] == N + malicious + 1
    assert gauges(app) == {"near_certain": 1, "near_certain_once": 0, "current": N + malicious + 1}
    changed = f"the verdict on the round {id} is near_certain, from {N + malicious + 1} reports"
    assert caplog.text.count(changed) == 1
    app.close_round(id)
    assert verdict_of(app, id) is None
    assert gauges(app)["near_certain"] == 0
    compute(app)
    assert verdict_of(app, id)["attack"] == "near_certain"
    assert app.post(f"/rounds/{id}/recover", json=AUTO).json()["recovered"] == answer["recovered"]


def gauges(app: InProcess) -> dict[str, float]:
    """Return the open rounds of two verdicts, and the reports of the current round."""
    Housekeeping(app.storage, app.app.state.metrics).once()
    lines = dict(line.rsplit(" ", 1) for line in app.get("/metrics").text.splitlines())
    named = {
        word: f'ldprecover_open_rounds{{verdict="{word}"}}'
        for word in ("near_certain", "near_certain_once")
    } | {"current": "ldprecover_current_round_reports"}
    return {word: float(lines[name]) for word, name in named.items()}


def test_failed_verdict_on_an_open_round_waits_for_growth(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And does not keep the closed round from its own."""
    app = start()
    id = app.open_round("grr", 1.0, domain_size=D)
    app.submit(id, reports_of(frequency_oracle("grr", 1.0, D)).tobytes())

    async def fail(prepare: Prepare) -> bytes:
        await asyncio.to_thread(prepare)
        raise AnalysisTimeoutError("too slow")

    with monkeypatch.context() as slow:
        slow.setattr(app.app.state.verdicts.workers, "run_own", fail)
        compute(app)
    compute(app)
    assert verdict_of(app, id) is None
    app.close_round(id)
    compute(app)
    assert verdict_of(app, id) is not None
