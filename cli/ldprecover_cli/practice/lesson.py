"""A class: the teacher's attack, and the fake reports that students send themselves."""

import secrets
from typing import Annotated, Any

import numpy as np
from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool

from ldprecover import Tally
from ldprecover_attacker import MGA
from ldprecover_cli.errors import CommandError
from ldprecover_cli.practice.network import SURVEY
from ldprecover_cli.practice.server import PracticeServer
from ldprecover_interface.rounds import NewRound
from ldprecover_server.access.access import Sender
from ldprecover_server.access.rates import ReportRates
from ldprecover_server.errors import ForbiddenError, ServiceError
from ldprecover_server.http.dependencies import Services

ADDRESS_RATE = 2
"""Fake reports a second that one address sends by the page."""


class Lesson:
    """The round `new` of a class, opened on a server, and its fake reports.

    The server gets the calls of the teacher and of the students' page for fake reports. Raises
    ParameterError.
    """

    def __init__(self, server: PracticeServer, new: NewRound) -> None:
        self._services: Services = server.app.state.services
        self._sender = Sender(self._services.access.require(server.key))
        self._round = self._services.rounds.open(new)
        self._rates = ReportRates(ADDRESS_RATE, ADDRESS_RATE)
        self._fakes = Tally.empty(self._round.oracle.summary_size)
        self._targets: set[int] = set()
        self.students = server.public
        """The address of the survey."""
        if server.public == server.url:  # where / is the teacher's page
            self.students = f"{server.url}/{SURVEY}"
        server.add_call("/class", self.state)
        server.add_call("/class/attack", self.attack, "POST")
        server.app.add_api_route("/fake", self.press, methods=["POST"], include_in_schema=False)

    def close(self) -> None:
        """Close the round, so that no other server takes reports to it. Raises CommandError."""
        try:
            self._services.rounds.close(self._round.id)
        except ServiceError as error:
            raise CommandError(f"the round could not be closed, and stays open: {error}") from error

    def state(self) -> dict[str, Any]:
        """Return the address for students, the number of reports, and the fake ones with targets.

        `told` are the estimates without the fake reports, and `attacked` those of all; null without
        reports.
        """
        tally = self._services.rounds.tally(self._round)
        return {
            "students": self.students,
            "reports": tally.n,
            "fakes": self._fakes.n,
            "targets": sorted(self._targets),
            "told": self._estimates(tally - self._fakes),
            "attacked": self._estimates(tally),
        }

    def _estimates(self, tally: Tally) -> list[float] | None:
        return tally.frequencies(self._round.oracle).tolist() if tally.n else None

    async def attack(
        self, share: Annotated[float, Query(ge=0, le=0.9)], target: Annotated[list[int], Query()]
    ) -> dict[str, Any]:
        """Send as many more as make fake reports this share of all, and return the state.

        `sent` is their number.
        """
        tally = await run_in_threadpool(self._services.rounds.tally, self._round)
        genuine = tally.n - self._fakes.n
        m = max(0, round(share / (1 - share) * genuine) - self._fakes.n)
        await self._send(m, target)
        return {**await run_in_threadpool(self.state), "sent": m}

    async def press(self, request: Request, item: Annotated[int, Query(ge=0)]) -> None:
        """Send one fake report that raises this item.

        Raises ForbiddenError, RateLimitedError, and what `_send` raises.
        """
        # A form of any site can make this call: forms need no CORS.
        if request.headers.get("origin") not in (None, f"http://{request.headers['host']}"):
            raise ForbiddenError("pages of another origin send nothing here")
        address = request.client.host if request.client else ""
        self._rates.take(address.encode(), 1)
        await self._send(1, [item])

    async def _send(self, m: int, targets: list[int]) -> None:
        """Store m fake reports that raise the targets: all or none.

        Raises ParameterError, and ServiceError as a submission does.
        """
        rng = np.random.default_rng()
        reports = await run_in_threadpool(MGA(targets).reports, self._round.oracle, m, rng)
        if m:
            key, packed = secrets.token_hex(16), reports.tobytes()
            await self._services.submissions.submit(self._round, self._sender, key, packed)
            self._fakes += Tally.of(self._round.oracle, reports)
            self._targets |= set(targets)
