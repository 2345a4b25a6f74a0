"""The fake reports of a class: the teacher's attack, and those that students send themselves."""

import secrets
from collections.abc import Sequence
from html import escape
from string import Template
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ldprecover import ParameterError
from ldprecover_attacker import MGA, Campaign
from ldprecover_cli.classroom.guard import FAKE
from ldprecover_client import Client
from ldprecover_client.errors import ClientError, RefusedError
from ldprecover_server.access.rates import ReportRates
from ldprecover_server.errors import (
    RateLimitedError,
    RoundClosedError,
    ServiceError,
    StorageFullError,
    StoreUnavailableError,
)

ADDRESS_RATE, TOTAL_RATE = 2, 50
"""Fake reports a second from one address, and from all."""

_BATCH = 1000
"""Fake reports of one submission, which is stored or not; of any protocol as many fit."""
_MOST_BUTTONS = 29
_LONGEST_BODY = 20

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
<p role="status" class="sent">$status</p>
<form method="post" action="$path">
$controls
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

    async def raise_share(self, share: float, targets: Sequence[int]) -> int:
        """Send as many more as make fake reports this share of all reports there are then.

        Return how many. Raises what `send` raises.
        """
        genuine = (await run_in_threadpool(self._client.round, self._name)).n - self.sent
        m = max(0, round(share / (1 - share) * genuine) - self.sent)
        await self.send(m, targets)
        return m

    async def send(self, m: int, targets: Sequence[int]) -> None:
        """Send m fake reports that raise the targets, and count those that are stored.

        Raises ParameterError, RoundClosedError, StorageFullError and StoreUnavailableError.
        """
        attack = MGA(targets)
        for done in range(0, m, _BATCH):
            size = min(_BATCH, m - done)
            campaign = Campaign(self._client, self._name, attack, size, secrets.randbits(63))
            try:
                await run_in_threadpool(campaign.run)
            except RefusedError as error:
                raise RoundClosedError(str(error)) from error
            except ClientError as error:
                is_full = getattr(error, "status", None) == StorageFullError.type.status
                failure = StorageFullError if is_full else StoreUnavailableError
                raise failure(f"{done} of {m} fake reports were sent: {error}") from error
            self.sent += size
            self.targets |= set(targets)


def fake_page(fakes: Fakes, question: str, answers: Sequence[str]) -> APIRouter:
    """Return the router of the page on which each press of a button sends one fake report."""
    router = APIRouter(include_in_schema=False)
    by_address = ReportRates(ADDRESS_RATE, ADDRESS_RATE)
    in_all = ReportRates(TOTAL_RATE, TOTAL_RATE)

    def respond(status: str, chosen: int | None = None, **options: Any) -> Response:
        page = _PAGE.substitute(
            question=escape(question),
            status=escape(status),
            path=FAKE[1:],
            controls=_controls(answers, chosen),
        )
        response = HTMLResponse(page, **options)
        response.headers.update(_HEADERS)
        return response

    @router.get(FAKE)
    async def show(sent: Annotated[int | None, Query(ge=0, lt=len(answers))] = None) -> Response:
        return respond(
            "" if sent is None else f"Sent: a fake report that raises “{answers[sent]}”.", sent
        )

    @router.post(FAKE)
    async def send(request: Request) -> Response:
        body = b""
        async for chunk in request.stream():
            if len(body := body + chunk) > _LONGEST_BODY:
                break  # it is no item
        try:
            item = range(len(answers))[int(parse_qs(body.decode("latin-1"))["item"][0])]
        except (KeyError, ValueError, IndexError):
            raise ParameterError(f"item must be one of 0 to {len(answers) - 1}") from None
        try:
            by_address.take(request.client.host.encode() if request.client else b"", 1)
            in_all.take(b"", 1)
        except RateLimitedError as error:
            headers = {**error.headers}
            return respond("Too fast: wait a second.", item, status_code=429, headers=headers)
        try:
            await fakes.send(1, [item])
        except RoundClosedError:
            return respond("The round is closed: it takes no more reports.", item, status_code=409)
        except ServiceError as error:
            status = error.type.status
            return respond("Not sent: the server cannot store it.", item, status_code=status)
        return RedirectResponse(f"{FAKE[1:]}?sent={item}", 303)

    return router


def _controls(answers: Sequence[str], chosen: int | None) -> str:
    """Return a button for each answer; for many answers a list and one button."""
    if len(answers) <= _MOST_BUTTONS:
        return "\n".join(
            f'<div><button name="item" value="{i}"><bdi>{escape(answer)}</bdi></button></div>'
            for i, answer in enumerate(answers)
        )
    options = "\n".join(
        f'<option value="{i}"{" selected" * (i == chosen)}>{escape(answer)}</option>'
        for i, answer in enumerate(answers)
    )
    return (
        f'<label for="item">Answer</label>\n<select id="item" name="item">\n{options}\n</select>\n'
        "<div><button>Send</button></div>"
    )
