"""Many people behind one address, and what others send meanwhile: all of them are answered."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Iterator

import pytest
from tests.conftest import PACKED, ServerProcess, StartServer
from tests.proxied import Proxy, proxied

from ldprecover_server import page

pytestmark = [pytest.mark.sqlite, pytest.mark.usefixtures("many_sockets")]

HALL, ATTACKER = "127.0.0.2", "127.0.0.4"
FILES = [name for name in page.files() if name.startswith(("client/", "survey"))][:20]


@pytest.fixture
def server(start_server: StartServer) -> ServerProcess:
    return start_server()


@pytest.fixture
def proxy(server: ServerProcess) -> Iterator[Proxy]:
    with proxied(server.http.base_url.port or 0) as proxy:
        yield proxy


def get(path: str) -> bytes:
    return f"GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def post(round: str, header: str = "", body: bytes = b"\1\0\0\0") -> bytes:
    head = f"Host: localhost\r\nContent-Type: {PACKED['Content-Type']}\r\nContent-Length: 4\r\n"
    return f"POST /rounds/{round}/reports HTTP/1.1\r\n{head}{header}\r\n".encode() + body


async def visit(proxy: Proxy, address: str, requests: list[bytes]) -> Counter[int]:
    """Send requests over one connection from an address; return the answers by status."""
    statuses: Counter[int] = Counter()
    reader, writer = await asyncio.open_connection(proxy.host, proxy.port, local_addr=(address, 0))
    for request in requests:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.partition(b"content-length: ")[2].split()[0]))
        statuses[int(head.split()[1])] += 1
    writer.close()
    return statuses


@pytest.mark.anyio
async def test_hall_is_answered_while_another_address_invents_tickets(
    server: ServerProcess, proxy: Proxy
) -> None:
    """300 visits at the same time, of 20 files and 3 calls each."""
    round = server.open_round(access="ticket")["id"]
    tickets = server.mint(f"/rounds/{round}", 300)
    reads = [get(f"page/{name}") for name in FILES]
    reads += [get(f"rounds/{round}/parameters"), get(f"rounds/{round}")]
    visits = asyncio.gather(
        *(
            visit(proxy, HALL, [*reads, post(round, f"Authorization: Ticket {ticket}\r\n")])
            for ticket in tickets
        )
    )
    invented: Counter[int] = Counter()

    async def flood() -> None:
        while not visits.done():
            ticket = f"{secrets.token_urlsafe(16)}.{secrets.token_urlsafe(16)}"
            header = f"Authorization: Ticket {ticket}\r\n"
            invented.update(await visit(proxy, ATTACKER, [post(round, header)]))

    await asyncio.gather(*(flood() for _ in range(20)))
    assert await visits == 300 * [Counter({200: len(reads), 202: 1})]
    assert invented.keys() == {401, 429}
    assert invented[401] < 100
