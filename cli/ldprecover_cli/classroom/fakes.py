"""The fake reports of a class: the teacher's attack, and those that students send themselves."""

import secrets
from collections.abc import Sequence
from html import escape
from string import Template
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ldprecover_attacker import MGA, Campaign
from ldprecover_cli.classroom.guard import FAKE
from ldprecover_client import Client
from ldprecover_client.errors import RefusedError
from ldprecover_server.access.rates import ReportRates
from ldprecover_server.errors import RateLimitedError, RoundClosedError

ADDRESS_RATE, TOTAL_RATE = 2, 50
"""Fake reports a second from one address, and from all."""

_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'",
    "Cache-Control": "no-store",
}
_PAGE = Template(
    """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Fake reports</title>
<link rel="icon" href="page/icon.svg">
<link rel="stylesheet" href="page/client/example/survey.css">
</head>
<body>
<main>
<h1>Send fake reports</h1>
<p>$question</p>
<p>Each press sends one report that nobody answered, made to raise that answer as far as one report
can.</p>
<p role="status">$status</p>
<form method="post">
$buttons
</form>
</main>
</body>
</html>
"""
)


class Fakes:
    """The fake reports to the round `name` of the server that `client` calls.

    `sent` is their number, `targets` the indices of the answers that they raise.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name = client, name
        self.sent = 0
        self.targets: set[int] = set()

    async def raise_share(self, share: float, targets: Sequence[int]) -> None:
        """Send as many more as make fake reports this share of all reports there are then.

        Raises ParameterError and RoundClosedError.
        """
        genuine = (await run_in_threadpool(self._client.round, self._name)).n - self.sent
        await self.send(max(0, round(share / (1 - share) * genuine) - self.sent), targets)

    async def send(self, m: int, targets: Sequence[int]) -> None:
        """Send m fake reports that raise the targets. Raises ParameterError, RoundClosedError."""
        campaign = Campaign(self._client, self._name, MGA(targets), m, secrets.randbits(63))
        try:
            await run_in_threadpool(campaign.run)
        except RefusedError as error:
            raise RoundClosedError(str(error)) from error
        self.sent += m
        self.targets |= set(targets if m else ())


def fake_page(fakes: Fakes, question: str, answers: Sequence[str]) -> APIRouter:
    """Return the router of the page on which each press of a button sends one fake report."""
    router = APIRouter(include_in_schema=False)
    by_address = ReportRates(ADDRESS_RATE, ADDRESS_RATE)
    in_all = ReportRates(TOTAL_RATE, TOTAL_RATE)
    buttons = "\n".join(
        f'<div><button formaction="{FAKE[1:]}?item={i}"><bdi>{escape(answer)}</bdi></button></div>'
        for i, answer in enumerate(answers)
    )

    def respond(status: str, **options: Any) -> Response:
        page = _PAGE.substitute(question=escape(question), status=escape(status), buttons=buttons)
        response = HTMLResponse(page, **options)
        response.headers.update(_HEADERS)
        return response

    @router.get(FAKE)
    async def show(sent: Annotated[int | None, Query(ge=0, lt=len(answers))] = None) -> Response:
        return respond(
            "" if sent is None else f"Sent: a fake report that raises “{answers[sent]}”."
        )

    @router.post(FAKE)
    async def send(request: Request, item: int) -> Response:
        try:
            by_address.take(request.client.host.encode() if request.client else b"", 1)
            in_all.take(b"", 1)
        except RateLimitedError as error:
            return respond("Too fast: wait a second.", status_code=429, headers={**error.headers})
        try:
            await fakes.send(1, [item])
        except RoundClosedError:
            return respond("The round is closed: it takes no more reports.", status_code=409)
        return RedirectResponse(f"{FAKE[1:]}?sent={item}", 303)

    return router
