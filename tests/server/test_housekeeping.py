"""Housekeeping outlives whatever happens to it, and a server closes its database whatever became of
it.
"""

import asyncio
import contextlib
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.conftest import NewDatabase
from tests.server.conftest import InProcess

from ldprecover_server.housekeeping import Housekeeping

pytestmark = pytest.mark.sqlite


def test_a_fault_does_not_end_it(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ldprecover_server.housekeeping._PERIOD", 0.0)
    runs = 0
    again = asyncio.Event()
    loop: asyncio.AbstractEventLoop

    class Faulty(Housekeeping):
        def once(self) -> bool:
            nonlocal runs
            runs += 1
            if runs == 3:
                loop.call_soon_threadsafe(again.set)
            raise ZeroDivisionError

    async def outlive() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(Faulty(in_process.storage).run())
        await again.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    in_process.run(outlive())
    assert runs >= 3
    assert "ZeroDivisionError" in caplog.text


def test_server_closes_its_database_after_housekeeping_died(
    new_database: NewDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(self: Housekeeping) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Housekeeping, "run", die)
    closed: list[sa.Engine] = []
    with new_database(tmp_path) as url:
        app = InProcess(url)
        app.open_round()
        sa.event.listen(app.storage.database.engine, "engine_disposed", closed.append)
        app.close()
        assert len(closed) == 1
