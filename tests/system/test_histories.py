"""Random histories of submissions, retries, breaks and kills: what was answered is there, and
nothing counts twice.
"""

import asyncio
import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import example, given, note
from hypothesis import strategies as st
from tests.conftest import PACKED, ServerProcess
from tests.fuzzing import SECONDS, property_settings, repeat, tried
from tests.postgres import Cluster
from tests.system.conftest import Submission, stored_reports

DOMAIN_SIZE = 1_000
LONGEST = 14

Answer = tuple[int, Any]


@dataclass(frozen=True)
class Submit:
    """Send `many` new submissions together, and continue without waiting for their answers."""

    many: int = 1
    via: int = 0


@dataclass(frozen=True)
class Resend:
    """Send earlier submissions again: every one whose number leaves this rest."""

    rest: int = 0
    via: int = 0


@dataclass(frozen=True)
class DropRequest:
    """Close the socket when this share of a new submission's bytes has been sent; some are always
    missing.
    """

    share: float = 0.5
    via: int = 0


@dataclass(frozen=True)
class DropAnswer:
    """Send `many` new submissions whole, and close the sockets before an answer can be read."""

    many: int = 1
    via: int = 0


@dataclass(frozen=True)
class KillServer:
    """SIGKILL after this many answers; the server starts again when it is next needed."""

    via: int = 0
    after: int = 0


@dataclass(frozen=True)
class KillDatabase:
    """Kill every process of the database and restart it. SQLite's is the server itself."""

    after: int = 0


@dataclass(frozen=True)
class Close:
    """Close the round."""

    via: int = 0


@dataclass(frozen=True)
class Read:
    """Ask for the frequencies, and wait for them."""

    via: int = 0


@dataclass(frozen=True)
class Settle:
    """Wait until everybody has an answer, or a broken connection."""


Operation = (
    Submit | Resend | DropRequest | DropAnswer | KillServer | KillDatabase | Close | Read | Settle
)

_via = st.integers(0, 1)
_many = st.integers(1, 24)
_after = st.integers(0, 12)
_submit = st.builds(Submit, _many, _via)
_retry = st.builds(Resend, st.integers(0, 3), _via)
operations: st.SearchStrategy[Operation] = st.one_of(
    _submit,
    _submit,
    _submit,
    _retry,
    _retry,
    st.builds(DropRequest, st.floats(0, 1), _via),
    st.builds(DropAnswer, st.integers(1, 8), _via),
    st.builds(KillServer, _via, _after),
    st.builds(KillDatabase, _after),
    st.builds(Close, _via),
    st.builds(Read, _via),
    st.builds(Settle),
)


class System:
    """Servers on one database, which outlive a history: what it leaves dead starts again when it is
    needed.
    """

    def __init__(self, servers: list[ServerProcess], cluster: Cluster | None) -> None:
        self.servers = servers
        self.cluster = cluster
        self.alive = [False for _ in servers]


class History:
    """One round, what was sent into it and answered, and what that says of every later reading."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._locks = [asyncio.Lock() for _ in system.servers]
        self._database = asyncio.Lock()
        self._items = itertools.count()
        self._flying: set[asyncio.Task[None]] = set()
        self._submissions: list[Submission] = []
        self._sent_whole: Counter[str] = Counter()
        self._stored: set[str] = set()
        self._refused: set[str] = set()
        self._closing = False
        self._n_at_close: int | None = None
        self._database_killed = False
        self._round = ""
        self._http = httpx.AsyncClient(
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            timeout=60,
            trust_env=False,
            verify=False,
        )

    async def run(self, history: list[Operation]) -> None:
        """Run the operations, then let everybody try again, and check that each report counts
        exactly once.
        """
        self._round = (await self._insist(0, "POST", "/rounds", opening()))["id"]
        for operation in history:
            note(f"{operation}: {len(self._flying)} in flight, {len(self._stored)} stored")
            tried["histories"][type(operation).__name__] += 1
            await self._do(operation)
        tried["histories"]["(histories)"] += 1
        tried["histories"]["(submissions)"] += len(self._submissions)
        tried["histories"]["(submissions without an answer)"] += len(self._submissions) - len(
            self._stored
        )
        await self._settle()
        if self._closing:
            await self._close(0)
        for via in range(len(self._system.servers)):
            await self._read(via)
        await self._all_again()
        for via in range(len(self._system.servers)):
            counts = await self._read(via)
        counted = {
            submission.key for submission in self._submissions if counts[submission.items[0]]
        }
        assert counted == self._stored
        assert counted | self._refused == {submission.key for submission in self._submissions}
        stored = stored_reports(self._system.servers[0], self._round)
        assert np.array_equal(np.bincount(stored, minlength=DOMAIN_SIZE), counts), (
            "segments and counts differ"
        )

    async def _do(self, operation: Operation) -> None:
        match operation:
            case Submit(many, via):
                for _ in range(many):
                    self._fly(self._submit(self._new(), via))
            case Resend(rest, via):
                for submission in self._submissions[rest::4]:
                    self._fly(self._submit(submission, via))
            case DropRequest(share, via):
                self._fly(self._drop(self._new(), via, share))
            case DropAnswer(many, via):
                for _ in range(many):
                    self._fly(self._drop(self._new(), via, None))
            case KillServer(via, after):
                await self._answers(after)
                await self._kill_server(via)
            case KillDatabase(after):
                await self._answers(after)
                await self._kill_database()
            case Close(via):
                self._fly(self._close(via))
            case Read(via):
                await self._read(via)
            case Settle():
                await self._settle()

    def _new(self) -> Submission:
        number = len(self._submissions)
        items = tuple(itertools.islice(self._items, 1 + number % 3))
        self._submissions.append(Submission(f"key-{number}", items))
        return self._submissions[-1]

    def _fly(self, sending: Awaitable[None]) -> None:
        self._flying.add(asyncio.ensure_future(sending))

    async def _answers(self, many: int) -> None:
        """Wait until this many of those in flight have an answer, or a broken connection."""
        remaining = len(self._flying) - many
        while self._flying and len(self._flying) > remaining:
            done, self._flying = await asyncio.wait(
                self._flying, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                task.result()

    async def _settle(self) -> None:
        await self._answers(len(self._flying))

    async def _submit(self, submission: Submission, via: int) -> None:
        stored_before = submission.key in self._stored
        address = await self._address(via)
        self._sent_whole[submission.key] += 1
        answer = await self._exchange(address, *self._posting(submission))
        if answer is None:
            return
        status, body = answer
        allowed = (
            {202}
            | ({409} if self._closing else set())
            | ({503} if self._database_killed else set())
        )
        assert status in allowed, (submission, answer)
        if status == 202:
            assert body["accepted"] == len(submission.items)
            assert body["duplicate"] or not stored_before, "stored, answered, and stored again"
            assert not body["duplicate"] or self._sent_whole[submission.key] > 1, (
                "a duplicate of nothing"
            )
            self._stored.add(submission.key)
        elif status == 409:
            assert body["type"].endswith("#round-closed")
            assert not stored_before
            self._refused.add(submission.key)

    async def _drop(self, submission: Submission, via: int, share: float | None) -> None:
        request = request_of(*self._posting(submission))
        address = await self._address(via)
        if share is None:
            self._sent_whole[submission.key] += 1
        else:
            request = request[: min(int(share * len(request)), len(request) - 1)]
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(*address)
            writer.write(request)
            with contextlib.suppress(OSError):
                await writer.drain()
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _close(self, via: int) -> None:
        self._closing = True
        path = f"/rounds/{self._round}/close"
        admin = self._system.servers[0].admin
        if answer := await self._exchange(await self._address(via), "POST", path, admin):
            status, body = answer
            assert status == 200 or (status == 503 and self._database_killed), answer
        else:
            body = None
        if answer is None or status != 200:
            body = await self._insist(via, "POST", path, b"")
        assert self._n_at_close in (None, body["n"])
        self._n_at_close = body["n"]

    async def _read(self, via: int) -> np.ndarray:
        stored, refused, n_at_close = set(self._stored), set(self._refused), self._n_at_close
        frequencies = await self._insist(via, "GET", f"/rounds/{self._round}/frequencies", b"")
        counts = np.array(frequencies["counts"])
        assert counts.max() <= 1, "a report was counted twice"
        assert frequencies["n"] == counts.sum()
        assert n_at_close in (None, frequencies["n"]), "a report came after the close"
        for submission in self._submissions:
            (counted,) = {int(counts[item]) for item in submission.items}  # whole or not at all
            assert counted or submission.key not in stored, (
                f"{submission} was answered, and is lost"
            )
            assert not (counted and submission.key in refused), (
                f"{submission} was refused, and is counted"
            )
            assert self._sent_whole[submission.key] or not counted, (
                f"{submission} never arrived whole, and is counted"
            )
        return counts

    async def _all_again(self) -> None:
        """Send everything again, as often as it takes: by now nobody is killed any more."""
        for _ in range(5):
            for i, submission in enumerate(self._submissions):
                if submission.key not in self._refused:
                    self._fly(self._submit(submission, i % 2))
            await self._settle()
            if self._stored | self._refused == {submission.key for submission in self._submissions}:
                return
        pytest.fail("there is no end of refusals")

    async def _insist(self, via: int, method: str, path: str, body: bytes) -> Any:
        """Ask until there is an answer, after restarts that are under way."""
        for _ in range(20):
            headers = self._system.servers[0].admin | JSON
            answer = await self._exchange(await self._address(via), method, path, headers, body)
            if answer is not None and answer[0] < 300:
                return answer[1]
            assert answer is None or (answer[0] == 503 and self._database_killed), answer
            async with self._database:
                pass
        pytest.fail(f"{method} {path} finds no answer: {answer}")

    async def _address(self, via: int) -> tuple[str, int]:
        """Return where a server listens, which is started if it is dead."""
        via %= len(self._system.servers)
        async with self._locks[via]:
            server = self._system.servers[via]
            if not self._system.alive[via]:
                async with (
                    self._database
                ):  # a server that finds no database when it starts ends again
                    await asyncio.to_thread(start, server)
                self._system.alive[via] = True
            return server.http.base_url.host, server.http.base_url.port or 80

    async def _kill_server(self, via: int) -> None:
        via %= len(self._system.servers)
        async with self._locks[via]:
            self._system.alive[via] = False
            self._system.servers[via].kill()

    async def _kill_database(self) -> None:
        if self._system.cluster is None:
            await self._kill_server(0)
            return
        self._database_killed = True
        async with self._database:
            await asyncio.to_thread(self._system.cluster.restart)

    def _posting(self, submission: Submission) -> tuple[str, str, dict[str, str], bytes]:
        headers = {**PACKED, **self._system.servers[0].admin, "Idempotency-Key": submission.key}
        return "POST", f"/rounds/{self._round}/reports", headers, submission.packed

    async def _exchange(
        self,
        address: tuple[str, int],
        method: str,
        path: str,
        headers: dict[str, str],
        body: bytes = b"",
    ) -> Answer | None:
        """Return status and JSON of the answer, or None if the connection breaks before it is
        whole.
        """
        url = "http://{}:{}{}".format(*address, path)
        try:
            answer = await self._http.request(method, url, headers=headers, content=body)
        except httpx.TransportError:
            return None
        return answer.status_code, answer.json()


def start(server: ServerProcess) -> None:
    """Start a server and wait until it answers."""
    server.start()
    assert server.http.get("/healthz").status_code == 200


JSON = {"Content-Type": "application/json"}


def opening() -> bytes:
    return json.dumps({"protocol": "grr", "epsilon": 1.0, "domain_size": DOMAIN_SIZE}).encode()


def request_of(method: str, path: str, headers: dict[str, str], body: bytes) -> bytes:
    """Return the bytes of a request after which the connection ends."""
    all_headers = {"Host": "x", "Connection": "close", "Content-Length": str(len(body)), **headers}
    lines = [
        f"{method} {path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in all_headers.items()),
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + body


@pytest.fixture(scope="module")
def system(dialect: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """One server on SQLite; two on a separate Postgres, which may be killed."""
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(Cluster()) if dialect == "postgres" else None
        url = cluster.url(stack.enter_context(cluster.database())) if cluster else None
        servers = []
        for _ in range(2 if cluster else 1):
            server = ServerProcess(
                tmp_path_factory.mktemp("server"), url, kernels="numpy", request_seconds=20
            )
            stack.callback(server.kill)
            servers.append(server)
        yield System(servers, cluster)


@pytest.mark.timeout(300 + 3 * SECONDS)
def test_answered_submissions_count_once_despite_drops_and_kills(system: System) -> None:
    """Each report has another item: a count of 2 is one counted twice, a 0 a lost one."""

    @property_settings(10, shrink=False)
    @given(st.lists(operations, min_size=1, max_size=LONGEST))
    # The kill finds a group in the middle of its commit, and the clients turns to the other server.
    @example([Submit(24), Submit(24, 1), KillServer(0, 6), Resend(0, 1), Resend(1, 1), Read(1)])
    # The database falls under both servers, and those who wait are answered once it is back.
    @example(
        [
            Submit(24),
            Submit(24, 1),
            KillDatabase(6),
            Resend(0, 1),
            Submit(8),
            Read(0),
            Settle(),
            Read(1),
        ]
    )
    # Both servers and the database are killed, answers are lost, and the round closes meanwhile.
    @example(
        [
            DropAnswer(8),
            Submit(24, 1),
            Close(1),
            KillDatabase(),
            KillServer(0),
            KillServer(1),
            Resend(0, 0),
        ]
    )
    @example(
        [DropRequest(1.0), DropRequest(0.5), DropRequest(0.0, 1), Read(), Resend(1, 1), Read(1)]
    )
    def check(history: list[Operation]) -> None:
        asyncio.run(History(system).run(history))

    repeat(check)
