"""Work for a caller who may go, or does not wait."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Header, Request
from starlette.requests import ClientDisconnect

PREFER = Header(
    description="`respond-async` (RFC 7240) answers 202 and a job that does the work.",
    max_length=256,
)


T = TypeVar("T")


async def cancel_on_disconnect(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return what `work` returns; when the caller closes the connection first, cancel it.

    The request's body must have been read. Raises ClientDisconnect then, and what `work` raises.
    """
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait([working, gone], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def wants_job(prefer: str | None) -> bool:
    """Tell whether the header Prefer asks for an answer before the work is done (RFC 7240, section
    4.1).
    """
    return any(
        each.partition(";")[0].strip().lower() == "respond-async"
        for each in (prefer or "").split(",")
    )
