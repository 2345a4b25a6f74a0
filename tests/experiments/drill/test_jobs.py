"""Jobs of a drill: one at a time, with progress and cancellation."""

import pytest

from ldprecover import ParameterError
from ldprecover_experiments.drill.jobs import BusyError, Job, Jobs


def test_json_follows_the_progress(run: Job) -> None:
    snapshots = []

    def work(run: Job) -> dict[str, int]:
        with run.stage("first") as progress:
            progress(1, 2)
            snapshots.append(run.as_json())
        return {"sum": 3}

    run.work(work)
    running = {"state": "running", "steps": ["first", "second"], "step": 0, "done": 1, "total": 2}
    assert running.items() <= snapshots[0].items()
    done = {"state": "done", "result": {"sum": 3}, "error": None}
    assert done.items() <= run.as_json().items()
    assert run.over.is_set()
    run.cancel()
    assert run.as_json()["state"] == "done", "a finished job cannot be cancelled"


def test_second_job_needs_the_end_of_the_first() -> None:
    jobs = Jobs()
    jobs.end()

    def wait(run: Job) -> dict[str, int]:
        run.pause(600)
        return {}

    first, second = Job("round", {}, ()), Job("map", {}, ())
    jobs.begin(first, wait)
    with pytest.raises(BusyError):
        jobs.begin(second, wait)
    assert jobs.last is first
    jobs.end()
    assert first.as_json()["state"] == "cancelled"
    jobs.begin(second, lambda run: {"done": 1})
    assert second.over.wait(60)
    assert second.as_json()["result"] == {"done": 1}


@pytest.mark.parametrize("step", ["stage", "progress", "pause", "check", "end"])
def test_cancelled_job_ends_at_its_next_step(run: Job, step: str) -> None:
    reached = []

    def work(run: Job) -> dict[str, int]:
        with run.stage("first") as progress:
            run.pause(0.0)
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

    run.work(work)
    assert (run.as_json()["state"], run.as_json()["result"], reached) == ("cancelled", None, [])


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ParameterError("eta must be\nfrom 0 to 10"), "eta must be from 0 to 10"),
        (MemoryError(), "There is too little memory for these users and items."),
    ],
)
def test_failure_has_a_message(run: Job, error: Exception, words: str) -> None:
    def fail(run: Job) -> dict[str, int]:
        raise error

    run.work(fail)
    assert (run.as_json()["state"], run.as_json()["error"]) == ("failed", words)


def test_fault_is_shown_and_raised_in_the_thread(run: Job) -> None:
    with pytest.raises(ZeroDivisionError):
        run.work(lambda run: {"half": 1 // 0})
    assert run.as_json()["state"] == "failed"
    assert "ZeroDivisionError" in run.as_json()["error"]
    assert run.over.is_set()
