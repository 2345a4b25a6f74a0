"""Calling a server of reports over HTTP: the one module that knows the HTTP library.

`Client` and `AsyncClient` differ in how they wait, and in nothing else: what to send is in `calls`,
when to send it again in `retry`, what an answer must look like in `answers`.
"""

import asyncio
import functools
import os
import random
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version as installed_version
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from ldprecover_client import calls
from ldprecover_client.answers import (
    Answer,
    JobStatus,
    Round,
    RoundStatus,
    RoundSummary,
    Submitted,
    problem_in,
)
from ldprecover_client.calls import Call
from ldprecover_client.errors import (
    ArgumentError,
    InvalidAnswerError,
    RefusedError,
    UnansweredError,
)
from ldprecover_client.jobs import Job
from ldprecover_client.retry import (
    Backoff,
    Retries,
    is_passing,
    may_have_cost_all,
    never_taken,
    retry_after_seconds,
)
from ldprecover_client.timeouts import Deadline
from ldprecover_client.transport_security import is_this_machine, warn_if_readable

MAX_ANSWER_BYTES = 64 << 20
"""Answers past this size are refused: far more than 100,000 items with long labels take."""

_MAX_CONNECTIONS = 100
# For each request that begins or ends, httpcore's pool goes through all connections, and for each
# idle one through all of them again: a hundred users over a hundred connections cost twice the
# processor time that they cost over twenty.
_MAX_ASYNC_CONNECTIONS = 20
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)

Transport = httpx.BaseTransport
"""What carries requests, if it is not the network: httpx's own contract."""
AsyncTransport = httpx.AsyncBaseTransport

T = TypeVar("T")


def server_url(url: str) -> str:
    """Return the URL of a server without a slash at its end.

    Raises ArgumentError for one that is not http or https, that has an impossible port, or that
    holds a password, a query or a fragment.
    """
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        raise ArgumentError("the server's URL cannot be read") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ArgumentError(
            f"the server's URL must begin with http:// or https:// and name a host, unlike {url!r}"
        )
    if (
        parsed.port is not None and not 0 < parsed.port < 1 << 16
    ):  # the system would take it modulo 2¹⁶
        raise ArgumentError(
            f"the port of the server's URL must be from 1 to 65535, not {parsed.port}"
        )
    if parsed.userinfo:
        raise ArgumentError(
            "the server's URL must hold no user or password: it is written down with each report"
        )
    if parsed.query or parsed.fragment:
        raise ArgumentError("the server's URL must have no query and no fragment")
    return str(parsed).rstrip("/")


def _tls_context(url: str) -> ssl.SSLContext:
    """Return what secures connections to a server; for http:// one that trusts nobody and costs
    nothing.

    Reading the certificates that are trusted takes tens of milliseconds, in which an event loop
    stands still. A process reads them once, as long as the environment names the same ones.
    """
    if httpx.URL(url).scheme == "http":
        return _no_tls_context()
    return _trusting_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@functools.cache
def _no_tls_context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@functools.cache
def _trusting_context(file: str | None, folder: str | None) -> ssl.SSLContext:
    return httpx.create_ssl_context()  # reads the same two from the environment


_installed_version = functools.cache(installed_version)


class _Caller:
    """What both kinds of client share: everything but sending and waiting."""

    def __init__(
        self,
        url: str,
        key: str | None,
        retries: Retries | None,
        is_network: bool,
        clock: Callable[[], float],
        rng: random.Random | None,
    ) -> None:
        self.url = server_url(url)
        self._is_network = (
            is_network  # else only the caller knows where it leads, and who can read it
        )
        if key is not None and not (
            key.isascii() and key.isprintable() and key.strip() == key != ""
        ):
            raise ArgumentError("a key must be printable ASCII without spaces around it")
        if key is not None and is_network:
            warn_if_readable(self.url, "key", stacklevel=3)
        self._key = key
        self._retries = retries or Retries()
        self._clock = clock
        self._draw = (rng or random.Random()).random

    @property
    def has_key(self) -> bool:
        """Whether an access key goes with each call."""
        return self._key is not None

    @property
    def is_network(self) -> bool:
        """Whether requests go over the network, and not over a transport of the caller's."""
        return self._is_network

    def _settings(self, timeout: float, connections: int) -> dict[str, Any]:
        headers = {
            "Accept": "application/json, application/problem+json",
            # Answers are bounded by their bytes; compressed, a few could unfold to any number.
            "Accept-Encoding": "identity",
            "User-Agent": f"ldprecover-client/{_installed_version('ldprecover')}",
        }
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        return {
            "headers": headers,
            "timeout": timeout,
            "verify": _tls_context(self.url),
            "limits": httpx.Limits(
                max_connections=connections, max_keepalive_connections=connections
            ),
            # A cookie could tie the reports of one user together.
            "cookies": CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            "trust_env": not is_this_machine(
                self.url
            ),  # a proxy of the environment does not lead there
            # neither reports nor keys go where the user did not send them
            "follow_redirects": False,
        }

    def _request(self, call: Call[Any]) -> dict[str, Any]:
        return {
            "method": call.method,
            "url": self.url + call.path,
            "headers": call.headers,
            "content": call.content,
        }

    def _backoff(self) -> Backoff:
        return Backoff(self._retries, clock=self._clock, draw=self._draw)

    def _pause_after_error(
        self, call: Call[Any], backoff: Backoff, error: httpx.TransportError
    ) -> float:
        """Return the seconds until the next send; raise UnansweredError when there is none."""
        delay = None
        never_sent = isinstance(error, _NEVER_SENT)
        if not never_sent:
            backoff.in_doubt = True
        # An analysis that took all of its time would take it again.
        in_vain = call.is_analysis and isinstance(error, httpx.ReadTimeout)
        if never_sent or (call.repeatable and not in_vain):
            delay = backoff.after_failure()
        if delay is None:
            reason = str(error) or type(error).__name__
            said = f"{self.url} does not answer ({call}): {reason}"
            raise UnansweredError(said, in_doubt=backoff.in_doubt) from error
        return delay

    def _pause_after_answer(
        self, call: Call[Any], backoff: Backoff, answer: Answer
    ) -> float | None:
        """Return the seconds until the next send, None when this answer is the one to take.

        Raises UnansweredError when the server was asked often enough.
        """
        if not is_passing(answer.status) or not (call.repeatable or never_taken(answer.status)):
            return None
        problem = problem_in(answer)
        # An analysis that failed or took all of its time would do so again. Without a problem a
        # proxy says it.
        in_vain = call.is_analysis and may_have_cost_all(answer.status)
        if in_vain and problem is not None:
            return None
        # An operator has to start the server anew: no retry is as patient as that.
        in_vain = in_vain or (problem is not None and problem.slug == "plugin-not-loaded")
        if not never_taken(answer.status):
            backoff.in_doubt = True
        asked = retry_after_seconds(answer.headers.get("retry-after"), answer.headers.get("date"))
        delay = backoff.after_failure(asked)
        if delay is None or in_vain:
            times = "once" if backoff.failures == 1 else f"{backoff.failures} times"
            reason = problem or "no reason given"
            wait = f"; it asks to come back in {asked:.0f} s" if asked else ""
            raise UnansweredError(
                f"{self.url} answered {answer.status} to {call}, {times} ({reason}){wait}",
                answer.status,
                asked,
                in_doubt=backoff.in_doubt,
            )
        return delay

    def _take(self, call: Call[T], backoff: Backoff, answer: Answer) -> T:
        """Return what the last answer says; a refusal says whether an earlier try of the call is in
        doubt.
        """
        try:
            return call.take(answer)
        except RefusedError as error:
            error.in_doubt = backoff.in_doubt
            raise

    def _submission(
        self, reference: str, packed: bytes, key: str, compress: bool, ticket: str | None
    ) -> Call[Submitted]:
        if ticket is not None and self._is_network:
            warn_if_readable(self.url, "ticket", stacklevel=3)
        return calls.submit(reference, packed, key, compress=compress, ticket=ticket)


class _Body:
    """Collects an answer's body within bounds."""

    def __init__(self, call: Call[Any], response: httpx.Response) -> None:
        self._call = call
        self._response = response
        self._pieces = bytearray()
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise InvalidAnswerError(f"{call}: the answer is compressed, which was not asked for")

    def add(self, piece: bytes) -> None:
        self._pieces += piece
        if len(self._pieces) > MAX_ANSWER_BYTES:
            raise InvalidAnswerError(
                f"{self._call}: the answer is larger than {MAX_ANSWER_BYTES} bytes"
            )

    def answer(self) -> Answer:
        headers = {name.lower(): value for name, value in self._response.headers.items()}
        return Answer(self._response.status_code, headers, bytes(self._pieces))


class Client(_Caller):
    """Calls a server of reports. A context manager; it may be shared between threads.

    `key` is an access key, for the calls that need one; `deadline` the seconds that a request may
    take in all, however its answer trickles in; `timeout` the seconds to wait for each step of a
    request; `analysis_timeout` takes the place of both for `recover`, `alarms` and `suspects`,
    whose answer comes when the server has worked it out: by default a server gives the caller with
    a key 600 seconds to wait for the turn and 600 for the work, and the one without a tenth.
    `transport` is an httpx transport to use instead of the network; `sleep`, `clock` and `rng` are
    the waiting, time and randomness of retries.

    Every call raises RefusedError for a problem the server states, UnansweredError after the last
    retry, InvalidAnswerError or InconsistentRoundError for an answer that does not fit the
    interface, and ArgumentError for an argument that cannot be sent. Round references are an id, a
    name or "current".
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 30.0,
        deadline: float = 300.0,
        analysis_timeout: float = 1230.0,
        retries: Retries | None = None,
        transport: Transport | None = None,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        super().__init__(url, key, retries, transport is None, clock, rng)
        self._sleep = sleep
        self._options: dict[str, Any] = {
            "timeout": timeout,
            "deadline": deadline,
            "retries": retries,
        }
        self._options |= {"analysis_timeout": analysis_timeout, "transport": transport}
        self._options |= {"sleep": sleep, "clock": clock, "rng": rng}
        self._http = httpx.Client(transport=transport, **self._settings(timeout, _MAX_CONNECTIONS))
        self._seconds = {False: deadline, True: analysis_timeout}
        self._of_analyses = {"timeout": httpx.Timeout(timeout, read=analysis_timeout)}
        self._deadline = Deadline()
        for carrier in (self._http._transport, *self._http._mounts.values()):
            if isinstance(carrier, httpx.HTTPTransport):
                # The library has no public way to its connections, and a head that trickles in is
                # seen nowhere else.
                carrier._pool._network_backend = self._deadline

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def elsewhere(self, url: str) -> "Client":
        """Return a client of another server with the same settings, but without the key."""
        return Client(url, **self._options)

    def open_round(
        self,
        *,
        protocol: str,
        epsilon: float,
        name: str | None = None,
        items: Iterable[str] | None = None,
        domain_size: int | None = None,
        access: str | None = None,
        read_access: str | None = None,
        retention: str | None = None,
        series: str | None = None,
        canaries: int | Iterable[str] | None = None,
        quarantine: bool | None = None,
        **own: int | None,
    ) -> RoundStatus:
        """Open a round over these items, or over "0" to "d-1" for a domain size (admin).

        `access` says who may submit: "open", the default, anyone, one report at a time; "key",
        holders of a report key; "ticket", holders of a ticket. `read_access` is "public", the
        default, or "key": holders of an analyst key. `retention` is how long reports are kept once
        counted: "forever", the default, "none", or hours or days, as "36h" or "7d". `series` names
        the rounds over the same items that this one is compared with. `canaries` are items that
        nobody holds, to be added to the others: their labels, or how many. With `quarantine`
        reports that no honest user sends are set aside. `own` are the protocol's own parameters by
        name: `hash_range` for olh, and `given_seeds`, with tickets alone.
        """
        fields: dict[str, Any] = {
            "name": name,
            "protocol": protocol,
            "epsilon": epsilon,
            "domain_size": domain_size,
        }
        labels = None if items is None else list(items)
        fields |= {"items": labels, **own, "access": access, "read_access": read_access}
        added = canaries if canaries is None or isinstance(canaries, int) else list(canaries)
        fields |= {
            "retention": retention,
            "series": series,
            "canaries": added,
            "quarantine": quarantine,
        }
        return self._call(calls.open_round(fields))

    def rounds(self, before: str | None = None) -> tuple[RoundSummary, ...]:
        """Return rounds without their items, the one opened last first, as many as the server gives
        at once.

        `before` is the id of the last round of one page, and gives the next.
        """
        return self._call(calls.rounds(before))

    def round(self, reference: str) -> RoundStatus:
        """Return a round with its state and the number of reports counted."""
        return self._call(calls.round_(reference))

    def parameters(self, reference: str) -> Round:
        """Return the immutable part of a round, checked."""
        return self._call(calls.parameters(reference))

    def close_round(self, reference: str) -> RoundStatus:
        """Close a round; no report enters it any more (admin)."""
        return self._call(calls.close_round(reference))

    def delete_round(self, reference: str) -> None:
        """Delete a round and all its reports (admin)."""
        self._call(calls.delete_round(reference))

    def mint_tickets(self, reference: str, count: int) -> tuple[str, ...]:
        """Mint tickets for a round of access "ticket": each admits one report (admin)."""
        return self._call(calls.mint_tickets(reference, count))

    def submit(
        self,
        reference: str,
        packed: bytes,
        key: str,
        *,
        compress: bool = False,
        ticket: str | None = None,
    ) -> Submitted:
        """Send packed reports as one submission under an idempotency key; durable when it returns.

        Every retry sends the same bytes under the same key. `compress` sends them gzipped, which
        pays for GRR alone: the reports of the others are nearly random bits. With a `ticket`, which
        admits one report, the ticket is sent in the place of both keys.
        """
        return self._call(self._submission(reference, packed, key, compress, ticket))

    def frequencies(self, reference: str) -> dict[str, Any]:
        """Return the round's unbiased estimates, as columns."""
        return self._call(calls.frequencies(reference))

    def stats(self, reference: str) -> dict[str, Any]:
        """Return how many reports the round has, and how many submissions were duplicates or
        refused, and why.
        """
        return self._call(calls.stats(reference))

    def methods(self, reference: str) -> dict[str, Any]:
        """Return the recovery methods, and which of them this round can give."""
        return self._call(calls.methods(reference))

    def alarms(self, reference: str, *, rate: float = 1e-3) -> dict[str, Any]:
        """Return the tests of the round, each with a false-alarm rate of at most this."""
        return self._call(calls.alarms(reference, rate))

    def suspects(self, reference: str, *, rate: float = 0.05, drift: float = 0.0) -> dict[str, Any]:
        """Return the items that rose since the earlier rounds of the series, at this
        false-discovery rate.
        """
        return self._call(calls.suspects(reference, rate, drift))

    def recover(self, reference: str, **fields: Any) -> dict[str, Any]:
        """Return the round's recovery; fields are those of POST /rounds/{id}/recover, each
        optional.
        """
        return self._call(calls.recover(reference, fields))

    def start_recovery(self, reference: str, **fields: Any) -> Job:
        """Have a recovery worked out as a job, which goes on without this connection; fields as in
        `recover`.
        """
        return self._job(reference, self._call(calls.start_recovery(reference, fields)))

    def job(self, reference: str, id: str) -> Job:
        """Return a job of a round that was started before."""
        return self._job(reference, self._call(calls.job(reference, id)))

    def export(self, reference: str) -> dict[str, Any]:
        """Return a round's parameters, tally and checksum; `ldprecover.RoundExport` reads them."""
        return self._call(calls.export(reference))

    def plan(self, **fields: Any) -> dict[str, Any]:
        """Return a plan of a round; fields are those of GET /plan, all but one of the first four
        given.
        """
        return self._call(calls.plan(fields))

    def version(self) -> dict[str, Any]:
        """Return what is running there."""
        return self._call(calls.version())

    def ready(self) -> bool:
        """Return whether the server can take reports now. Asks once, and raises nothing."""
        try:
            return self._send(calls.ready()).status == 200
        except (httpx.TransportError, InvalidAnswerError):
            return False

    def _job(self, reference: str, status: JobStatus) -> Job:
        return Job(
            status,
            ask=lambda: self._call(calls.job(reference, status.id)),
            cancel=lambda: self._call(calls.cancel_job(reference, status.id)),
            sleep=self._sleep,
        )

    def _call(self, call: Call[T]) -> T:
        backoff = self._backoff()
        while True:
            delay: float | None
            try:
                answer = self._send(call)
            except httpx.TransportError as error:
                delay = self._pause_after_error(call, backoff, error)
            else:
                delay = self._pause_after_answer(call, backoff, answer)
                if delay is None:
                    return self._take(call, backoff, answer)
            self._sleep(delay)

    def _send(self, call: Call[Any]) -> Answer:
        request = self._request(call) | (self._of_analyses if call.is_analysis else {})
        with (
            self._deadline.within(self._seconds[call.is_analysis]),
            self._http.stream(**request) as response,
        ):
            body = _Body(call, response)
            for piece in response.iter_bytes():
                body.add(piece)
        return body.answer()


class AsyncClient(_Caller):
    """The calls a user's report needs, for asyncio. An async context manager; see `Client`."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 30.0,
        deadline: float = 300.0,
        retries: Retries | None = None,
        transport: AsyncTransport | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        super().__init__(url, key, retries, transport is None, clock, rng)
        self._sleep = sleep
        self._options: dict[str, Any] = {
            "timeout": timeout,
            "deadline": deadline,
            "retries": retries,
        }
        self._options |= {"transport": transport, "sleep": sleep, "clock": clock, "rng": rng}
        self._http = httpx.AsyncClient(
            transport=transport, **self._settings(timeout, _MAX_ASYNC_CONNECTIONS)
        )
        self._seconds = deadline

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def elsewhere(self, url: str) -> "AsyncClient":
        """Return a client of another server with the same settings, but without the key."""
        return AsyncClient(url, **self._options)

    async def parameters(self, reference: str) -> Round:
        """Return the immutable part of a round, checked."""
        return await self._call(calls.parameters(reference))

    async def submit(
        self,
        reference: str,
        packed: bytes,
        key: str,
        *,
        compress: bool = False,
        ticket: str | None = None,
    ) -> Submitted:
        """Send packed reports as one submission under an idempotency key; see `Client.submit`."""
        return await self._call(self._submission(reference, packed, key, compress, ticket))

    async def _call(self, call: Call[T]) -> T:
        backoff = self._backoff()
        while True:
            delay: float | None
            try:
                answer = await self._send(call)
            except httpx.TransportError as error:
                delay = self._pause_after_error(call, backoff, error)
            else:
                delay = self._pause_after_answer(call, backoff, answer)
                if delay is None:
                    return self._take(call, backoff, answer)
            await self._sleep(delay)

    async def _send(self, call: Call[Any]) -> Answer:
        try:
            async with (
                asyncio.timeout(self._seconds),
                self._http.stream(**self._request(call)) as response,
            ):
                body = _Body(call, response)
                async for piece in response.aiter_bytes():
                    body.add(piece)
        except TimeoutError:
            raise httpx.ReadTimeout(f"no whole answer in {self._seconds:g} seconds") from None
        return body.answer()
