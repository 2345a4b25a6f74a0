"""Rejects requests under foreign host names, which DNS rebinding sends."""

import functools
import re
from collections.abc import Collection
from ipaddress import ip_address

from starlette.types import ASGIApp, Receive, Scope, Send

from ldprecover_server.errors import HostError
from ldprecover_server.http.problems import problem_response

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]*)?", re.IGNORECASE)
_LOCALHOST = "localhost"


class AllowedHosts:
    """ASGI middleware that rejects requests whose header Host names none of `names`.

    A page of another site can point its own domain name at this server (DNS rebinding). To the
    browser both are then one site, and only Host shows it. No page can do so with `localhost` or an
    IP address, so these always pass, and so does a request without Host: browsers always send it.
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app = app
        self._names = frozenset((_LOCALHOST, *names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http":
            for name, value in scope["headers"]:
                if name == b"host" and not self._allows(value):
                    app = problem_response(
                        HostError(f"{value[:80].decode('latin-1')!r} is not a name of this server")
                    )
        await app(scope, receive, send)

    def _allows(self, value: bytes) -> bool:
        host = _parse(value)
        return host is True or host in self._names


@functools.lru_cache(maxsize=64)
def _parse(value: bytes) -> str | bool:
    """Return the name in the value of Host; True for an IP address, False without a name."""
    match = _HOST.fullmatch(value.decode("latin-1"))
    if match is None:
        return False
    name = match[1].lower()
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return name
    return True
