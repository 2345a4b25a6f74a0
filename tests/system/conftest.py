"""Concurrent clients of whole systems."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
import psutil
import sqlalchemy as sa
from tests.conftest import PACKED, ServerProcess, on_both_databases

pytest_generate_tests = on_both_databases


@dataclass(frozen=True)
class Submission:
    """GRR reports under a key. No two of a test share an item, so counts tell them apart."""

    key: str
    items: tuple[int, ...]

    @property
    def packed(self) -> bytes:
        return np.array(self.items, dtype="<u4").tobytes()


def distinct_submissions(n: int, domain_size: int) -> list[Submission]:
    """Return n submissions of one to three reports, each report of another item."""
    ends = np.cumsum([1 + i % 3 for i in range(n)])
    assert ends[-1] <= domain_size
    return [
        Submission(f"key-{i}", tuple(range(end - 1 - i % 3, end)))
        for i, end in enumerate(ends.tolist())
    ]


@dataclass
class Clients:
    """Many clients that submit to one round at the same time, and what each was answered."""

    server: ServerProcess
    round_id: str
    connections: int = 24
    sent: list[Submission] = field(default_factory=list)
    answers: dict[str, httpx.Response] = field(default_factory=dict)

    def submit(
        self,
        submissions: Iterable[Submission],
        *beside: Callable[[httpx.AsyncClient], Coroutine[Any, Any, None]],
        on_answer: Callable[[int], None] = lambda answered: None,
    ) -> None:
        """Send submissions, with other tasks beside; a client whose connection breaks is gone for
        good.

        `on_answer` is told how many have been answered in all, after each answer.
        """
        waiting = iter(submissions)

        async def client(http: httpx.AsyncClient) -> None:
            for submission in waiting:
                self.sent.append(submission)
                headers = {**PACKED, **self.server.admin, "Idempotency-Key": submission.key}
                path = f"/rounds/{self.round_id}/reports"
                try:
                    answer = await http.post(path, content=submission.packed, headers=headers)
                except httpx.TransportError:
                    return
                self.answers[submission.key] = answer
                on_answer(len(self.answers))

        async def run_all() -> None:
            async with (
                httpx.AsyncClient(
                    base_url=self.server.url, timeout=60, trust_env=False, verify=False
                ) as http,
                asyncio.TaskGroup() as group,
            ):
                for _ in range(self.connections):
                    group.create_task(client(http))
                for task in beside:
                    group.create_task(task(http))

        asyncio.run(run_all())

    def answered(self, status: int = 202) -> list[Submission]:
        """Return the submissions that got this answer."""
        got = {key for key, answer in self.answers.items() if answer.status_code == status}
        return [submission for submission in self.sent if submission.key in got]

    @property
    def counts(self) -> np.ndarray:
        return np.array(self.server.frequencies(self.round_id)["counts"])


def is_listening(server: ServerProcess) -> bool:
    """Return whether a server accepts connections."""
    try:
        server.connect().close()
    except ConnectionError:
        return False
    return True


def stored_reports(server: ServerProcess, round_id: str) -> np.ndarray:
    """Return every GRR report in the round's segments, read past the server."""
    with server.sql() as database:
        query = sa.text(
            "SELECT data FROM segments WHERE round = (SELECT seq FROM rounds WHERE id = :id)"
        )
        return np.frombuffer(b"".join(database.scalars(query, {"id": round_id})), dtype="<u4")


def workers_of(server: ServerProcess) -> list[psutil.Process]:
    """Return the processes that serve; the others among its children are Python's own."""
    children = psutil.Process(server.pid).children()
    return [child for child in children if any("spawn_main" in word for word in words_of(child))]


def words_of(process: psutil.Process) -> list[str]:
    """Return a process's command line, nothing for one that has just ended."""
    try:
        return list(process.cmdline())
    except psutil.NoSuchProcess:  # a zombie's is one too
        return []
