"""What a class's server answers on the network, where everybody may call it."""

import re
import socket

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ldprecover_server.errors import ForbiddenError
from ldprecover_server.http.problems import ProblemResponse

LOOPBACK = "127.0.0.1"
CLASS = "class"
"""The name of the round of a class."""
SURVEY = f"page/survey.html?round={CLASS}"

_ROUND = f"/rounds/({CLASS}|R[0-9a-f]{{24}})"  # nobody knows the id of another round
_CALLS = re.compile(rf"GET (/page/.*|{_ROUND}(/parameters)?)|POST (/fake|{_ROUND}/reports)")


class Network:
    """ASGI middleware that answers students on the network, and every call on this machine.

    The local address of a connection tells them apart: no call of another machine arrives at
    127.0.0.1. Students get the survey, to which the path / leads, the round and the files of the
    page, and may send reports; a call with a key is rejected.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http" and scope["server"][0] != LOOPBACK:
            call = f"{scope['method']} {scope['path']}"
            has_key = b"authorization" in dict(scope["headers"])
            if call == "GET /":
                app = RedirectResponse(SURVEY)
            elif has_key or not _CALLS.fullmatch(call):
                error = ForbiddenError(f"{call[:200]!r} is answered on {LOOPBACK} alone")
                app = ProblemResponse(error, {"Connection": "close"})  # a body is not read
        await app(scope, receive, send)


def network_address() -> str | None:
    """Return this machine's address on the network of its default route; None without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # of no machine; it sends nothing
        except OSError:
            return None
        return str(probe.getsockname()[0])
