"""The page's files in memory, compressed once, and the headers with which browsers hold them to
what they are.

The page is plain HTML, CSS and JavaScript modules, as they lie in `static`: nothing is built. It
asks the public API alone, for which it needs no help from here.
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

INDEX = "index.html"
"""The file at the root."""

HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
        "form-action 'none'",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        # A module names others by their paths, which stay when their texts change: so each is asked
        # for again, and a 304 says that it is as it was.
        "Cache-Control": "no-cache",
        "Vary": "Accept-Encoding",
    }
)
"""Of every answer with a file of the page."""

_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class PageFile:
    """A file of the page, plain and compressed by gzip."""

    media_type: str
    body: bytes = field(repr=False)
    zipped: bytes = field(repr=False)
    digest: str

    def answer(
        self, accept_encoding: str = "", if_none_match: str = ""
    ) -> tuple[int, dict[str, str], bytes]:
        """Return the status, the headers and the body for a request with these two headers."""
        takes_gzip = any(
            coding.strip().lower() in ("gzip", "*")
            and weight.replace(" ", "").lower() not in ("q=0", "q=0.0")
            for coding, _, weight in (each.partition(";") for each in accept_encoding.split(","))
        )
        etag = f'"{self.digest}{"-gzip" if takes_gzip else ""}"'
        headers = {**HEADERS, "ETag": etag}
        if {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")} & {etag, "*"}:
            return 304, headers, b""
        headers["Content-Type"] = self.media_type
        if takes_gzip:
            return 200, {**headers, "Content-Encoding": "gzip"}, self.zipped
        return 200, headers, self.body

    @classmethod
    def of(cls, name: str, body: bytes) -> "PageFile":
        """Return the file of this name and text."""
        kind = _TYPES.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "text/plain"
        if kind.startswith("text/"):
            kind += "; charset=utf-8"
        return cls(
            kind, body, gzip.compress(body, 9, mtime=0), hashlib.sha256(body).hexdigest()[:32]
        )


@functools.cache
def files() -> Mapping[str, PageFile]:
    """Return every file of the page by its path below `static`, with slashes."""
    found = sorted(path for path in STATIC.rglob("*") if path.is_file())
    names = (path.relative_to(STATIC).as_posix() for path in found)
    return MappingProxyType(
        {
            name: PageFile.of(name, path.read_bytes())
            for name, path in zip(names, found, strict=True)
        }
    )
