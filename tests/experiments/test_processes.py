"""The processes of a study."""

import multiprocessing
import signal

import pytest

from ldprecover_experiments.studies import processes as module
from ldprecover_experiments.studies.processes import processes


def nothing() -> None:
    pass


def test_interrupted_start_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter would wait for it when it exits."""
    start = module._Process.start

    def interrupted(process: module._Process) -> None:
        start(process)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(module._Process, "start", interrupted)
    errors: list[str] = []
    before = set(multiprocessing.active_children())
    with (
        pytest.raises(KeyboardInterrupt),
        processes(2, nothing, lambda: errors.append("interrupted")) as pool,
    ):
        pool.submit(int).result()
    remaining = set(multiprocessing.active_children()) - before
    for process in remaining:
        process.kill()
    assert not remaining
    assert errors == ["interrupted"]
