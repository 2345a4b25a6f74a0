"""The server of a class: its page on this machine, its survey on the network."""

import os
import socket
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from secrets import token_urlsafe
from typing import Annotated, Any

from fastapi import Query

from ldprecover_cli.classroom.fakes import Fakes, fake_page
from ldprecover_cli.classroom.guard import FAKE, LOOPBACK, Guard
from ldprecover_cli.errors import CommandError
from ldprecover_cli.local_server import local_settings, server_thread, token_router
from ldprecover_client import Client, Retries
from ldprecover_server import create_app

ROUND = "class"
"""The name of the round of a class."""

_SURVEY = f"page/survey.html?round={ROUND}"
_RETRIES = Retries(attempts=2, base=0.1, longest=0.5, total=2)
"""Retries of calls in this process, for which a person waits."""


@dataclass(frozen=True)
class ClassServer:
    """A server in a thread: its URL on this machine, and its admin key.

    `link` opens the teacher's page with the key, `students` is the address of the survey. `client`
    has the key.
    """

    url: str
    key: str
    link: str
    students: str
    running: Future[None]
    client: Client = field(repr=False)

    def close_round(self) -> None:
        """Close the round, so that no other server takes reports to it. Raises ClientError."""
        self.client.close_round(ROUND)


def network_address() -> str | None:
    """Return this machine's address on the network of its default route; None without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect(("192.0.2.1", 9))  # of no machine; it sends nothing
        address: str = probe.getsockname()[0]
        return None if ip_address(address).is_loopback else address
    return None


@contextmanager
def class_server(
    database: Path, address: str | None, port: int, round: dict[str, Any]
) -> Iterator[ClassServer]:
    """Serve a class on a port of this machine and of its address, if any, and open its round.

    `round` has the arguments of `Client.open_round`. The teacher's calls need the token of the
    link. Raises CommandError if the port is not free.
    """
    key, token = token_urlsafe(24), token_urlsafe(24)
    with ExitStack() as stack:
        listener = stack.enter_context(_listen(LOOPBACK, port))
        port = listener.getsockname()[1]
        listeners = [listener]
        if address is not None:
            listeners.append(stack.enter_context(_listen(address, port)))
        url = f"http://{LOOPBACK}:{port}"
        students = f"{url}/{_SURVEY}" if address is None else f"http://{address}:{port}"
        client = stack.enter_context(Client(url, key=key, timeout=10, retries=_RETRIES))
        fakes = Fakes(client, ROUND)
        app = create_app(local_settings(key, database), practice=True)
        app.include_router(fake_page(fakes, round["question"], round["items"]))
        router = token_router(token)

        @router.get("/class")
        def state() -> dict[str, Any]:
            return {
                "students": students,
                "fake": f"http://{address or LOOPBACK}:{port}{FAKE}",
                "fakes": fakes.sent,
                "targets": sorted(fakes.targets),
            }

        @router.post("/class/attack")
        async def attack(
            share: Annotated[float, Query(ge=0, le=0.9)], target: Annotated[list[int], Query()]
        ) -> dict[str, Any]:
            sent = await fakes.raise_share(share, target)
            return {**state(), "sent": sent}

        app.include_router(router)
        guard = Guard(app, f"{address}:{port}", _SURVEY)
        running = stack.enter_context(server_thread(guard, *listeners))
        opened = client.open_round(name=ROUND, practice=True, **round)
        for reference in (opened.name, opened.id):
            guard.allow_round(reference)
        link = f"{url}/#/rounds/{ROUND}?class={token}&key={key}"
        yield ClassServer(url, key, link, students, running, client)


def _listen(address: str, port: int) -> socket.socket:
    try:
        return socket.create_server((address, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0)  # Python's has more in a parenthesis
        raise CommandError(
            f"cannot listen on {address}:{port}: {reason}; give another --port or --host"
        ) from error
