"""Concurrent clients of whole systems."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
import sqlalchemy as sa
from tests.conftest import PACKED, ServerProcess, on_both_databases

pytest_generate_tests = on_both_databases


@dataclass(frozen=True)
class Submission:
    """GRR reports under a key. No two submissions of a clients share an item, so counts tell them
    apart.
    """

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


class Wire:
    """A client's connection to a server, made again where the server has closed it.

    httpx takes ten times as long for a request, of which a clients sends thousands.
    """

    def __init__(self, server: ServerProcess) -> None:
        self._address = address_of(server)
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, content: bytes, headers: dict[str, str]) -> httpx.Response:
        """Return the answer. Raises ConnectionError or IncompleteReadError where it does not
        come.
        """
        if self._ends is None or self._ends[0].at_eof():
            self.close()
            self._ends = await asyncio.open_connection(*self._address)
        reader, writer = self._ends
        lines = [
            f"{name}: {value}\r\n"
            for name, value in {**headers, "Content-Length": len(content)}.items()
        ]
        async with asyncio.timeout(60):
            writer.write(
                f"POST {path} HTTP/1.1\r\nHost: test\r\n{''.join(lines)}\r\n".encode() + content
            )
            status, *named = (
                (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
            )
            answer_headers = httpx.Headers(
                [(name, value) for name, _, value in (line.partition(": ") for line in named)]
            )
            body = await reader.readexactly(int(answer_headers["Content-Length"]))
        if answer_headers.get("Connection") == "close":
            self.close()
        return httpx.Response(int(status.split()[1]), headers=answer_headers, content=body)

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._ends is not None:
            self._ends[1].close()
            self._ends = None


@dataclass
class Clients:
    """Many clients that submit to one round at the same time, and what each was answered."""

    server: ServerProcess
    round_id: str
    connections: int = 24
    sent: list[Submission] = field(default_factory=list)
    answers: dict[str, httpx.Response] = field(default_factory=dict)
    _reached: dict[int, asyncio.Event] = field(default_factory=dict)

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

        async def client() -> None:
            with contextlib.closing(Wire(self.server)) as wire:
                for submission in waiting:
                    self.sent.append(submission)
                    try:
                        answer = await wire.post(*self._request(submission))
                    except (ConnectionError, asyncio.IncompleteReadError):
                        return
                    self.answers[submission.key] = answer
                    on_answer(len(self.answers))
                    if reached := self._reached.get(len(self.answers)):
                        reached.set()

        async def run_all() -> None:
            async with (
                httpx.AsyncClient(
                    base_url=self.server.url, timeout=60, trust_env=False, verify=False
                ) as http,
                asyncio.TaskGroup() as group,
            ):
                for _ in range(self.connections):
                    group.create_task(client())
                for task in beside:
                    group.create_task(task(http))

        asyncio.run(run_all())

    async def until(self, answered: int) -> None:
        """Wait, beside `submit`, for this total of answers."""
        if len(self.answers) < answered:
            await self._reached.setdefault(answered, asyncio.Event()).wait()

    def _request(self, submission: Submission) -> tuple[str, bytes, dict[str, str]]:
        headers = {**PACKED, **self.server.admin, "Idempotency-Key": submission.key}
        return f"/rounds/{self.round_id}/reports", submission.packed, headers

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
        socket.create_connection(address_of(server), timeout=10).close()
    except ConnectionError:
        return False
    return True


def address_of(server: ServerProcess) -> tuple[str, int]:
    """Return host and port."""
    return server.http.base_url.host, server.http.base_url.port or 80


def stored_reports(server: ServerProcess, round_id: str) -> np.ndarray:
    """Return every GRR report in the round's segments, read past the server."""
    with server.sql() as database:
        query = sa.text(
            "SELECT data FROM segments WHERE round = (SELECT seq FROM rounds WHERE id = :id)"
        )
        return np.frombuffer(b"".join(database.scalars(query, {"id": round_id})), dtype="<u4")
