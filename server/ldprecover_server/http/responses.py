"""Compressed responses, and responses to conditional requests."""

import gzip

from starlette.requests import Request
from starlette.responses import Response

_GZIP_BYTES = 1 << 16
"""Bytes above which a body is compressed. 100,000 items take 5 MB, compressed 2 MB."""
_GZIP_LEVEL = 1


def accepts_gzip(request: Request) -> bool:
    """Return whether the header Accept-Encoding prefers gzip to the body as it is."""
    weights: dict[str, float] = {}
    for coding in ",".join(request.headers.getlist("accept-encoding")).lower().split(","):
        name, _, parameters = coding.partition(";")
        weight = parameters.strip().removeprefix("q=") or "1"
        try:
            weights[name.strip()] = float(weight)
        except ValueError:
            weights[name.strip()] = 0.0
    weight_of_gzip = weights.get("gzip", weights.get("*", 0.0))
    return weight_of_gzip > 0 and weight_of_gzip >= weights.get("identity", 0.0)


def compress(response: Response, accepted: bool) -> Response:
    """Return the response, compressed with gzip if that is `accepted` and its body is large.

    It takes 30 ms a megabyte, so it runs in a thread.
    """
    response.headers.add_vary_header("Accept-Encoding")
    if accepted and len(response.body) > _GZIP_BYTES:
        response.body = gzip.compress(response.body, _GZIP_LEVEL, mtime=0)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Content-Length"] = str(len(response.body))
        if (etag := response.headers.get("ETag", "")).startswith('"'):
            response.headers["ETag"] = f"W/{etag}"  # a strong one would name the other bytes too
    return response


def is_current(request: Request, etag: str) -> bool:
    """Return whether the header If-None-Match has the ETag, strong or weak, or `*`."""
    tags = request.headers.get("if-none-match", "").split(",")
    return not {tag.strip().removeprefix("W/") for tag in tags}.isdisjoint(
        (etag.removeprefix("W/"), "*")
    )
