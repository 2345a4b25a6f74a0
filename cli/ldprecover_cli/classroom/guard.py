"""What a class's server answers on the network, where everybody may call it."""

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ldprecover_server.errors import ForbiddenError, HostError, NotFoundError, ServiceError
from ldprecover_server.http.problems import ProblemResponse

LOOPBACK = "127.0.0.1"
FAKE = "/fake"
_FILES = ("/", FAKE, "/page/survey.html", "/page/icon.svg")
_CLIENT = "/page/client/"


class Guard:
    """ASGI middleware that answers students on the network, and every call on this machine.

    No page of another origin makes a POST at either address.

    The local address of a connection tells them apart: no call of another machine arrives at
    127.0.0.1. Students get the survey, the round and the page for fake reports, and may send
    reports; a call with a key is rejected. The header Host must be `host`, so that no page under
    another name can call the server (DNS rebinding). The path / leads to `survey`.
    """

    def __init__(self, app: ASGIApp, host: str, survey: str) -> None:
        self._app = app
        self._host = host.encode()
        self._survey = survey
        self._calls = {("POST", FAKE), *(("GET", path) for path in _FILES)}

    def allow_round(self, reference: str) -> None:
        """Answer calls for the round that this id or name refers to."""
        path = f"/rounds/{reference}"
        self._calls |= {("GET", path), ("GET", f"{path}/parameters"), ("POST", f"{path}/reports")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http":
            is_network = (scope["server"] or ("",))[0] != LOOPBACK
            error = _origin_error(scope) or (self._error(scope) if is_network else None)
            if error is not None:
                app = ProblemResponse(error, {"Connection": "close"})  # a body is not read
            elif is_network and scope["path"] == "/":
                app = RedirectResponse(self._survey)
        await app(scope, receive, send)

    def _error(self, scope: Scope) -> ServiceError | None:
        headers = scope["headers"]
        if [value for name, value in headers if name == b"host"] != [self._host]:
            return HostError(f"the header Host must be {self._host.decode()}")
        if any(name == b"authorization" for name, _ in headers):
            return ForbiddenError(f"calls with a key are answered on {LOOPBACK} alone")
        method, path = scope["method"], scope["path"]
        if (method, path) in self._calls or (method == "GET" and path.startswith(_CLIENT)):
            return None
        return NotFoundError(f"{method} {path[:200]!r} is answered on {LOOPBACK} alone")


def _origin_error(scope: Scope) -> ServiceError | None:
    """Return the error for a POST that the page of another origin makes; forms need no CORS."""
    headers = dict(scope["headers"])
    origin = headers.get(b"origin")
    if scope["method"] != "POST" or origin in (None, b"http://" + headers.get(b"host", b"")):
        return None
    return ForbiddenError("pages of another origin make no calls here")
