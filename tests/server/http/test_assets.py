"""The files of the API reference: served from memory, and what is not read stays there."""

import contextlib
import socket

import pytest
from tests.conftest import ServerProcess

pytestmark = pytest.mark.sqlite


SCRIPT = "/static/swagger-ui/swagger-ui-bundle.js"


def test_file_has_type_and_etag(server: ServerProcess) -> None:
    answer = server.get(SCRIPT)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    assert len(answer.content) == int(answer.headers["content-length"]) > 1_000_000
    again = server.get(SCRIPT, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["x-frame-options"] == "DENY"


@pytest.mark.skipif(not hasattr(socket, "TCP_NOTSENT_LOWAT"), reason="the system cannot be told")
def test_kernel_buffers_little_of_unread_responses() -> None:
    from ldprecover_server.serve import listen

    with contextlib.closing(listen("127.0.0.1", 0)) as listener, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(listener.getsockname())
        connection, _ = listener.accept()
        with connection:
            connection.setblocking(False)
            taken = 0
            with contextlib.suppress(BlockingIOError):
                while taken < 1 << 20:
                    taken += connection.send(bytes(1 << 15))
    assert taken < 1 << 18, "else megabytes of each connection"
