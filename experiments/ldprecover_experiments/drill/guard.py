"""Who may speak to a drill: pages that it served itself, and for the drill whoever has its token.

A page of another site can have a browser send requests here (CSRF), or have the name of its own
site lead here (DNS rebinding). The first says so in Origin, the second in Host. The token keeps
out other users and programs of this machine; it is in the fragment of the drill's address, which no
browser sends, and goes with each call in a header that no other site's page may set.
"""

import secrets
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ldprecover_experiments.drill.responses import problem

PATH = "/drill/"
"""Where the drill's own calls begin; everything else is the server's."""

HEADER = "X-Drill-Token"
"""In which calls of the drill bring the token."""

_OPEN = f"{PATH}static/"  # files that are the same for everyone


class Guard:
    """Lets through what this page itself asks for under a name of this machine, with the token
    where it is needed.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http" and (reason := self._refusal(scope)) is not None:
            app = problem(HTTPStatus.FORBIDDEN, reason)
        await app(scope, receive, send)

    def _refusal(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not _is_this_machine(hosts[0]):
            return (
                "A drill answers under localhost, 127.0.0.1 and [::1] alone; the header Host "
                "names another."
            )
        if any(origin.lower() != f"http://{hosts[0]}".lower() for origin in origins):
            return "A drill answers its own page alone; the header Origin names another."
        path = scope["path"]
        if path.startswith(PATH) and not path.startswith(_OPEN):
            given = headers.getlist(HEADER)
            if len(given) != 1 or not secrets.compare_digest(
                given[0].encode("latin-1", "replace"), self._token
            ):
                return (
                    "Open the address that the drill printed when it started: it holds the "
                    "token that this call needs."
                )
        return None


def _is_this_machine(host: str) -> bool:
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname, parts.port  # a port that is none raises
    except ValueError:
        return False
    if parts.netloc != host or parts.username is not None or not name:
        return False
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
