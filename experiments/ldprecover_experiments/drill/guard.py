"""Access control of a drill: requests from the drill's page, and a token for its calls.

A page of another site can have a browser send requests here (CSRF; the header Origin shows it), or
point its own domain name here (DNS rebinding; the header Host shows it). The token keeps out other
users and programs of this machine. It stands in the fragment of the drill's address, which browsers
do not send, and travels in a header that pages of other sites may not set.
"""

import secrets
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ldprecover_experiments.drill.responses import problem

PATH = "/drill/"
"""Prefix of the drill's own calls. All other paths are the server's."""

HEADER = "X-Drill-Token"
"""The header with the token."""

_WITHOUT_TOKEN = f"{PATH}static/"


class Guard:
    """Passes requests under a name of this machine from the drill's own page to `app`.

    Calls below PATH also need the token.
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
        if path.startswith(PATH) and not path.startswith(_WITHOUT_TOKEN):
            tokens = [token.encode("latin-1", "replace") for token in headers.getlist(HEADER)]
            if len(tokens) != 1 or not secrets.compare_digest(tokens[0], self._token):
                return (
                    "Open the address that the drill printed when it started: it holds the "
                    "token that this call needs."
                )
        return None


def _is_this_machine(host: str) -> bool:
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname, parts.port  # an invalid port raises
    except ValueError:
        return False
    if parts.netloc != host or parts.username is not None or not name:
        return False
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
