"""Writes of a connection: a small piece waits for what follows, and none is lost or overtaken."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from ldprecover_server.http.protocol import HttpProtocol

HEAD, BODY, LARGE = b"head", b"body", bytes(1 << 16)


class Recorded(asyncio.Transport):
    """A transport that records the system calls of its writes, and its end."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[bytes | str] = []

    def write(self, data: Any) -> None:
        self.calls.append(data)

    def writelines(self, pieces: Any) -> None:
        self.calls.append(b"".join(pieces))

    def close(self) -> None:
        self.calls.append("close")


@pytest.mark.parametrize(
    ("write", "calls"),
    [
        (lambda to: [to.write(HEAD), to.write(BODY)], [HEAD + BODY]),
        (lambda to: [to.write(HEAD), to.write(LARGE), to.write(BODY)], [HEAD + LARGE, BODY]),
        (lambda to: [to.write(LARGE), to.write(HEAD)], [LARGE, HEAD]),
        (lambda to: [to.write(HEAD), to.close()], [HEAD, "close"]),
        (lambda to: [to.write(HEAD)], [HEAD]),
    ],
)
@pytest.mark.anyio
async def test_head_and_body_are_one_system_call(
    write: Callable[[Any], object], calls: list[bytes | str]
) -> None:
    transport, config = Recorded(), uvicorn.Config(lambda: None, http=HttpProtocol)
    config.load()
    protocol = HttpProtocol(config, ServerState(), {})
    protocol.connection_made(transport)
    write(protocol.transport)
    await asyncio.sleep(0)  # the next turn of the loop
    assert transport.calls == calls
    protocol.connection_lost(None)
