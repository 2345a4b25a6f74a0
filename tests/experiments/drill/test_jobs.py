"""One piece of work at a time, watched and cancelled."""

import threading

import pytest

from ldprecover import ParameterError
from ldprecover_experiments.drill.jobs import BusyError, CancelledError, Job, Jobs


def test_json_follows_the_progress(run: Job) -> None:
    seen = []

    def make(run: Job) -> dict[str, int]:
        with run.stage("first") as progress:
            progress(1, 2)
            seen.append(run.as_json())
        return {"sum": 3}

    run.work(make)
    assert (seen[0]["state"], seen[0]["stage"], seen[0]["done"], seen[0]["total"]) == (
        "running",
        "first",
        1,
        2,
    )
    shown = run.as_json()
    assert (shown["state"], shown["result"], shown["error"]) == ("done", {"sum": 3}, None)
    assert run.over.is_set()


def test_a_second_run_waits_for_the_end_of_the_first() -> None:
    runs, go = Jobs(), threading.Event()

    def wait(run: Job) -> dict[str, int]:
        go.wait(60)
        return {}

    first = Job("round", {})
    runs.begin(first, wait)
    with pytest.raises(BusyError):
        runs.begin(Job("round", {}), wait)
    assert runs.last is first
    go.set()
    assert first.over.wait(60)
    second = Job("map", {})
    runs.begin(second, lambda run: {"done": 1})
    assert second.over.wait(60)
    assert second.as_json()["result"] == {"done": 1}


@pytest.mark.parametrize("step", ["stage", "progress", "pause", "check", "end"])
def test_a_cancelled_run_ends_at_its_next_step(run: Job, step: str) -> None:
    reached = []

    def make(run: Job) -> dict[str, int]:
        with run.stage("first") as progress:
            run.cancel()
            assert run.as_json()["state"] == "cancelling"
            if step == "progress":
                progress(1, 2)
            elif step == "pause":
                run.pause(600)
            elif step == "check":
                run.check()
            elif step == "stage":
                with run.stage("second"):
                    reached.append("second")
        reached.append("after")
        return {}

    run.work(make)
    assert (run.as_json()["state"], run.as_json()["result"], reached) == ("cancelled", None, [])


def test_finished_job_cannot_be_cancelled(run: Job) -> None:
    run.work(lambda run: {})
    run.cancel()
    assert run.as_json()["state"] == "done"


def test_a_failure_is_told_in_its_own_words(run: Job) -> None:
    def make(run: Job) -> dict[str, int]:
        raise ParameterError("eta must be\nfrom 0 to 10")

    run.work(make)
    assert (run.as_json()["state"], run.as_json()["error"]) == (
        "failed",
        "eta must be from 0 to 10",
    )


def test_a_fault_is_told_and_seen_where_the_drill_runs(run: Job) -> None:
    with pytest.raises(ZeroDivisionError):
        run.work(lambda run: {"half": 1 // 0})
    assert run.as_json()["state"] == "failed"
    assert "ZeroDivisionError" in run.as_json()["error"]
    assert run.over.is_set()


def test_too_little_memory_is_a_failure_in_words(run: Job) -> None:
    def make(run: Job) -> dict[str, int]:
        raise MemoryError

    run.work(make)
    assert "too little memory" in run.as_json()["error"]


def test_end_cancels_the_running_job() -> None:
    runs = Jobs()
    runs.end()

    def wait(run: Job) -> dict[str, int]:
        run.pause(600)
        return {}

    run = Job("round", {})
    runs.begin(run, wait)
    runs.end()
    assert run.as_json()["state"] == "cancelled"


def test_a_pause_that_nobody_breaks_off_just_ends(run: Job) -> None:
    run.pause(0.0)
    run.cancel()
    with pytest.raises(CancelledError):
        run.pause(0.0)
