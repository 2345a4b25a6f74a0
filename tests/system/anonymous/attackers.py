"""Attackers: plain sockets of one host that send anything, and read when they like."""

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine


class Attackers:
    """Sockets to one server, without any protocol: nothing is read that is not asked for."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._open: set[socket.socket] = set()
        self.opened = 0
        self.sent = 0
        self.answers: Counter[int] = Counter()
        """Statuses of the answers that were read."""
        self.is_server_stopping = False
        """Whether the server was told to stop: the proxy answers 502 from then on."""

    async def connect(self, *, small: bool = False) -> socket.socket:
        """Return a connection; a `small` one takes few bytes before it is read. Raises OSError."""
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setblocking(False)
        if small:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._open.add(connection)
        await asyncio.get_running_loop().sock_connect(connection, self._address)
        self.opened += 1
        return connection

    async def send(self, connection: socket.socket, *pieces: bytes) -> None:
        """Send pieces, as fast as the server takes them. Raises OSError."""
        for piece in pieces:
            await asyncio.get_running_loop().sock_sendall(connection, piece)
            self.sent += len(piece)

    async def read(self, connection: socket.socket, n: int = 65536) -> bytes:
        """Return up to n bytes, none at the end. Raises OSError."""
        return await asyncio.get_running_loop().sock_recv(connection, n)

    async def read_answer(self, connection: socket.socket) -> int | None:
        """Count the first answer's status, read on until the server ends the connection, and return
        the status.
        """
        first = await self.read(connection)
        status = int(first[9:12]) if first.startswith(b"HTTP/1.1 ") else None
        if status is not None and not self.is_server_stopping:
            self.answers[status] += 1
        while await self.read(connection):
            pass
        return status

    def drop(self, connection: socket.socket) -> None:
        """Close a connection without another word."""
        self._open.discard(connection)
        connection.close()

    def close(self) -> None:
        """Close every connection."""
        for connection in list(self._open):
            self.drop(connection)

    async def keep_busy(
        self,
        n: int,
        talk: Callable[[socket.socket], Awaitable[object]],
        *,
        small: bool = False,
        pause: float = 0.5,
        per_turn: int = 200,
    ) -> None:
        """Keep n connections busy with `talk`: whoever is done, or was thrown out, comes again
        after a pause.

        `per_turn` of them start in one moment, the others a twentieth of a second later, and so on.
        """

        async def one(turn: int) -> None:
            await asyncio.sleep(0.05 * (turn // per_turn))
            while True:
                connection: socket.socket | None = None
                with contextlib.suppress(OSError):
                    connection = await self.connect(small=small)
                    await talk(connection)
                if connection is not None:
                    self.drop(connection)
                await asyncio.sleep(pause)

        async with asyncio.TaskGroup() as group:
            for turn in range(n):
                group.create_task(one(turn))

    async def together(self, *attacks: Coroutine[None, None, None]) -> None:
        """Do several at one time."""
        async with asyncio.TaskGroup() as group:
            for attack in attacks:
                group.create_task(attack)

    def sends(
        self, *pieces: bytes, read: bool = True
    ) -> Callable[[socket.socket], Awaitable[object]]:
        """Return the talk that sends these pieces and reads the answer, or stays without
        reading.
        """

        async def talk(connection: socket.socket) -> None:
            await self.send(connection, *pieces)
            if read:
                await self.read_answer(connection)
            else:
                await forever()

        return talk

    def leaves(
        self, *pieces: bytes, after: float = 0.05
    ) -> Callable[[socket.socket], Awaitable[object]]:
        """Return the talk that sends these pieces and is gone a moment later."""

        async def talk(connection: socket.socket) -> None:
            await self.send(connection, *pieces)
            await asyncio.sleep(after)

        return talk


async def forever() -> None:
    """Wait until cancelled."""
    await asyncio.Event().wait()


def request(
    line: str, *headers: str, body: bytes = b"", length: int | None = None, close: bool = True
) -> bytes:
    """Return a request of HTTP/1.1; with a body, or a length, it says its length."""
    lines = [f"{line} HTTP/1.1", "Host: x", *(["Connection: close"] if close else []), *headers]
    if body or length is not None:
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def get(path: str, *headers: str, close: bool = True) -> bytes:
    """Return a GET."""
    return request(f"GET {path}", *headers, close=close)


def post(path: str, body: bytes, *headers: str, close: bool = True) -> bytes:
    """Return a POST of a body, of JSON unless a header says otherwise."""
    if not any(header.lower().startswith("content-type") for header in headers):
        headers = ("Content-Type: application/json", *headers)
    return request(f"POST {path}", *headers, body=body, close=close)
