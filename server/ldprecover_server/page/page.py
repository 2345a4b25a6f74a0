"""The files of the page in memory, compressed once, with their headers.

The page is plain HTML, CSS and JavaScript modules in `static`, without a build step. It uses only
the public API.
"""

import functools
import gzip
import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

STATIC = Path(__file__).parent / "static"

CLIENT = STATIC / "client"
"""The client for JavaScript, for the survey: a wheel has it here, a checkout in client/js."""

_CHECKOUT = Path(__file__).parents[3] / "client" / "js"
_CLIENT_FILES = ("ldprecover.js", "LICENSE", "src/*.js", "example/*", "example/languages/*")

INDEX = "index.html"
"""The file at the path /."""

HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
        "form-action 'none'",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        # Modules import each other by path without a version, so browsers must revalidate each.
        "Cache-Control": "no-cache",
        "Vary": "Accept-Encoding",
    }
)
"""The headers of every file of the page."""

_TYPES = {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class PageFile:
    """A file of the page, plain and compressed with gzip."""

    media_type: str
    body: bytes = field(repr=False)
    gzip_body: bytes = field(repr=False)
    digest: str

    @classmethod
    def of(cls, name: str, body: bytes) -> "PageFile":
        """Return the file with this name and content."""
        media_type = _TYPES.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "text/plain"
        digest = hashlib.sha256(body).hexdigest()[:32]
        return cls(media_type, body, gzip.compress(body, 9, mtime=0), digest)


@functools.cache
def files() -> Mapping[str, PageFile]:
    """Return all files of the page by their path below `static`, with slashes."""
    paths = {path.relative_to(STATIC).as_posix(): path for path in STATIC.rglob("*")}
    if not CLIENT.exists():
        for pattern in _CLIENT_FILES:
            for path in _CHECKOUT.glob(pattern):
                paths[f"client/{path.relative_to(_CHECKOUT).as_posix()}"] = path
    return MappingProxyType(
        {
            name: PageFile.of(name, path.read_bytes())
            for name, path in sorted(paths.items())
            if path.is_file()
        }
    )
