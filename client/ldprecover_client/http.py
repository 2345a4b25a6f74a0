"""The HTTP client; `calls` has its requests, `retries` its policy."""

from __future__ import annotations

import copy
import functools
import os
import random
import ssl
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version as installed_version
from ipaddress import ip_address
from typing import Any, Self, TypeVar

from ldprecover_client._httpx import httpx
from ldprecover_client.answers import (
    read_certificate,
    read_changes,
    read_export,
    read_form,
    read_forms,
    read_frequencies,
    read_opened,
    read_parameters,
    read_plan,
    read_recovery,
    read_rounds,
    read_status,
    read_tickets,
)
from ldprecover_client.calls import (
    Call,
    HttpResponse,
    JsonObject,
    page_of,
    path_of,
    post,
    query_of,
    read_nothing,
    reader,
    submission,
)
from ldprecover_client.errors import (
    ArgumentError,
    InsecureTransportWarning,
    InvalidAnswerError,
    RefusedError,
)
from ldprecover_client.retries import Backoff, Outcome, Retries
from ldprecover_interface import paths
from ldprecover_interface.analysis import Alarms, Methods
from ldprecover_interface.certificates import Certified
from ldprecover_interface.changes import Changed
from ldprecover_interface.forms import Form
from ldprecover_interface.operation import Version
from ldprecover_interface.plans import Plans
from ldprecover_interface.results import Frequencies, Recovered
from ldprecover_interface.rounds import Round, RoundStatus, RoundSummary
from ldprecover_interface.series import Series
from ldprecover_interface.submissions import Accepted

MAX_ANSWER_BYTES = 64 << 20
"""Largest response that is read; 100,000 items with long labels need far less."""

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_MAX_CONNECTIONS = 100
Transport = httpx.BaseTransport
"""Carries requests in place of the network, as httpx defines it."""

T = TypeVar("T")


def server_url(url: str) -> str:
    """Return the URL of a server without a trailing slash.

    Raises ArgumentError for a URL that is not http or https, has an invalid port, or contains a
    user, a query or a fragment.
    """
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        raise ArgumentError("the server's URL cannot be read") from None
    if "@" in url:  # also after a slash, which may be a part of the password
        raise ArgumentError(
            "the server's URL must hold no user, password or @: the ledger stores it with each "
            "report"
        )
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ArgumentError("the server's URL must begin with http:// or https:// and name a host")
    # The operating system would take a port modulo 2¹⁶.
    if parsed.port is not None and not 0 < parsed.port < 1 << 16:
        raise ArgumentError(
            f"the port of the server's URL must be from 1 to 65535, not {parsed.port}"
        )
    if parsed.query or parsed.fragment:
        raise ArgumentError("the server's URL must have no query and no fragment")
    return str(parsed).rstrip("/")


@functools.cache
def _tls_context(scheme: str, *certificates: str | None) -> ssl.SSLContext:
    """Return the TLS context for a scheme; for http an empty one.

    Reading the trusted certificates blocks an event loop for tens of milliseconds. A process reads
    them once, unless the environment names other `certificates`.
    """
    if scheme == "http":
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.create_ssl_context()  # reads _CERTIFICATES from the environment


_installed_version = functools.cache(installed_version)

_warned: set[tuple[str, str]] = set()
"""Host and kind of secret of each warning of this process."""


def is_loopback(url: str) -> bool:
    """Return whether a URL names this machine, so that requests stay on it."""
    host = httpx.URL(url).host
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def warn_if_unencrypted(url: str, secret: str, *, stacklevel: int = 2) -> None:
    """Warn if a "key" or "ticket" goes to another machine without TLS; once a host and process."""
    parsed = httpx.URL(url)
    warning = (parsed.netloc.decode(), secret)
    if parsed.scheme == "http" and warning not in _warned and not is_loopback(url):
        warnings.warn(
            f"the {secret} goes to {warning[0]} over plain http, where it can be read on the way "
            "and used by others: use https",
            InsecureTransportWarning,
            stacklevel=stacklevel + 1,
        )
        _warned.add(warning)  # not reached if a filter turns the warning into an error


class Client:
    """A client of a server. A context manager; threads may share it.

    `key` is an access key, for the calls that need one. `timeout` limits the seconds of each step
    of a request, such as one read, and `deadline` the seconds until the whole body of the response
    is read; it is not applied while the head arrives. `analysis_timeout` replaces both
    for `recover`, `certify` and `alarms`: by default a server queues an analysis of a caller with a
    key for up to 600 seconds and computes for up to 600, and without a key for a tenth of that.
    `transport` is an httpx transport to use instead of the network; `sleep`, `clock` and `rng` are
    the waiting, time and randomness of retries.

    Every call raises RefusedError for a problem that the server states, UnansweredError after the
    last retry, InvalidAnswerError or InconsistentRoundError for a response that does not fit the
    interface, and ArgumentError for an argument that cannot be sent. A round reference is an id, a
    name or "current".

        with Client("http://localhost:8000", key=key) as client:
            client.open_round(name="drinks", protocol="oue", epsilon=1.0, items=["tea", "coffee"])
            client.frequencies("lunch").to_frame()
            client.recover("cities").recovered
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
        self.url = server_url(url)
        # Nobody but the caller knows where its transport leads.
        self.is_network = transport is None
        """Whether requests use the network instead of the caller's transport."""
        self.has_key = key is not None
        """Whether each call sends an access key."""
        if key is not None and not (
            key.isascii() and key.isprintable() and key.strip() == key != ""
        ):
            raise ArgumentError("a key must be printable ASCII without spaces around it")
        if key is not None and self.is_network:
            warn_if_unencrypted(self.url, "key")
        self._key = key
        self._timeout, self._deadline, self._analysis_timeout = timeout, deadline, analysis_timeout
        self._retries = retries or Retries()
        self._transport = transport
        self._sleep, self._clock, self._rng = sleep, clock, rng or random.Random()
        self._connect()

    def _connect(self) -> None:
        try:
            self._http = httpx.Client(**self._settings())
        except (httpx.InvalidURL, ValueError):  # whose text may have a part of a password
            raise ArgumentError(
                "the environment has an invalid proxy: see HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
            ) from None
        except ImportError as error:
            raise ArgumentError(
                "a SOCKS proxy of the environment needs: pip install socksio"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def for_server(self, url: str) -> Self:
        """Return a client of another server with the same settings but no key."""
        other = copy.copy(self)
        other.url, other._key, other.has_key = server_url(url), None, False
        other._connect()
        return other

    def open_round(
        self,
        *,
        protocol: str,
        epsilon: float,
        name: str | None = None,
        series: str | None = None,
        closes_at: str | None = None,
        question: str | None = None,
        title: str | None = None,
        thanks: str | None = None,
        language: str | None = None,
        items: Iterable[str] | None = None,
        domain_size: int | None = None,
        practice: bool = False,
        access: str | None = None,
        read_access: str | None = None,
        retention: str | None = None,
        **own: int | None,
    ) -> RoundStatus:
        """Open a round over these items, or over "0" to "d-1" for a domain size (admin).

        `access` is "open" (default: anyone, one report a submission), "key" (a report key) or
        "ticket" (a ticket a report). `read_access` is "public" (default) or "key" (an analyst key);
        whoever may read an open round can see each perturbed report arrive.
        `retention` is how long counted reports are stored: "forever" (default), until the round is
        deleted, or "none". `question`, `title` and `thanks` are plain texts of at most 300
        characters that the survey shows, and `language` is theirs, a BCP 47 tag. `own` has the
        protocol's parameters by name: `hash_range` for olh. A `practice` round may be answered over
        plain http; only the server of `ldprecover class` opens one. A round of a `series` asks the
        same as the others, and `closes_at` is the time at which the server closes it, such as
        "2030-01-31T18:00:00+01:00".
        """
        fields = {
            "name": name,
            "series": series,
            "closes_at": closes_at,
            "question": question,
            "title": title,
            "thanks": thanks,
            "language": language,
            "protocol": protocol,
            "epsilon": epsilon,
            "domain_size": domain_size,
            "items": None if items is None else list(items),
            **own,
            "practice": practice or None,
            "access": access,
            "read_access": read_access,
            "retention": retention,
        }
        fields = {name: value for name, value in fields.items() if value is not None}
        # Not repeatable: without a name it would open a second round.
        return self._call(post(paths.ROUNDS, read_status, fields, status=201, repeatable=False))

    def rounds(self, before: str | None = None) -> tuple[RoundSummary, ...]:
        """Return a page of rounds without their items, latest first.

        `before` is the id of the last round of the previous page.
        """
        return self._call(Call("GET", page_of(paths.ROUNDS, before), read_rounds))

    def round(self, reference: str) -> RoundStatus:
        """Return a round with its state and the number of reports counted."""
        return self._call(Call("GET", path_of(reference), read_status))

    def parameters(self, reference: str) -> Round:
        """Return the checked, immutable parameters of a round."""
        return self._call(Call("GET", path_of(reference, paths.PARAMETERS), read_parameters))

    def close_round(self, reference: str) -> RoundStatus:
        """Close a round: it takes no more reports (admin)."""
        return self._call(Call("POST", path_of(reference, paths.CLOSE), read_status))

    def delete_round(self, reference: str) -> None:
        """Delete a round and all its reports (admin)."""
        self._call(Call("DELETE", path_of(reference), read_nothing, status=204))

    def mint_tickets(self, reference: str, count: int) -> tuple[str, ...]:
        """Mint tickets for a round of access "ticket": each admits one report (admin)."""
        return self._mint(path_of(reference, paths.TICKETS), count)

    def open_form(self, **fields: Any) -> Form:
        """Open a form, and its rounds together (admin); fields are those of POST /forms.

        With `assign` "ticket" a ticket of the form admits one report to one round, which nobody
        chooses; with "client" each client draws a round, and an attacker chooses one.

            system = {"question": "Which system?", "protocol": "grr", "epsilon": 1, "items": [...]}
            client.open_form(name="usage", assign="ticket", rounds=[system, editor])
        """
        # Not repeatable: without a name it would open a second form.
        return self._call(post(paths.FORMS, read_form, fields, status=201, repeatable=False))

    def forms(self, before: str | None = None) -> tuple[Form, ...]:
        """Return a page of forms with their rounds, latest first, as `rounds` does."""
        return self._call(Call("GET", page_of(paths.FORMS, before), read_forms))

    def form(self, reference: str) -> Form:
        """Return a form with its rounds in order, by its id or name."""
        return self._call(Call("GET", path_of(reference, base=paths.FORMS), read_form))

    def close_form(self, reference: str) -> Form:
        """Close a form: none of its rounds takes more reports (admin)."""
        return self._call(Call("POST", path_of(reference, paths.CLOSE, paths.FORMS), read_form))

    def delete_form(self, reference: str) -> None:
        """Delete a form, its rounds and all their reports (admin)."""
        self._call(Call("DELETE", path_of(reference, base=paths.FORMS), read_nothing, status=204))

    def series(self, reference: str) -> Series:
        """Return a series by its name: its rounds or forms, and which of them is open."""
        return self._call(Call("GET", path_of(reference, base=paths.ALL_SERIES), reader(Series)))

    def next(self, series: str, number: int, *, closes_at: str | None = None) -> RoundStatus | Form:
        """Open a number of a series: close what is open, and copy it (admin).

        The number after the last is opened once: the call may be repeated. Other numbers are
        refused. `closes_at` is as in `open_round`.
        """
        path = path_of(series, paths.NEXT, paths.ALL_SERIES)
        fields = {"number": number, "closes_at": closes_at}
        return self._call(post(path, read_opened, fields, status=201, status_if_repeated=200))

    def mint_form_tickets(self, reference: str, count: int) -> tuple[str, ...]:
        """Mint tickets of a form that assigns by ticket (admin).

        Each admits one report to the round that `ldprecover.rounds.tickets.assigned_round` names.
        """
        return self._mint(path_of(reference, paths.TICKETS, paths.FORMS), count)

    def submit(
        self,
        reference: str,
        packed: bytes,
        key: str,
        *,
        ticket: str | None = None,
    ) -> Accepted:
        """Send packed reports as one submission under an idempotency key; durable when it returns.

        Every retry sends the same bytes under the same key. A `ticket` admits one report and
        replaces both keys.
        """
        if ticket is not None and self.is_network:
            warn_if_unencrypted(self.url, "ticket")
        return self._call(submission(reference, packed, key, ticket=ticket))

    def frequencies(self, reference: str, *, window: int = 1) -> Frequencies:
        """Return the round's unbiased estimates, with the labels of its items.

        A `window` of more rounds than 1 adds up the reports of the round and of those before it in
        its series, as it does in `recover`, `certify` and `changes`.
        """
        path = path_of(reference, paths.FREQUENCIES)
        path = path if window == 1 else query_of(path, {"window": window})
        return self._call(Call("GET", path, read_frequencies))

    def methods(self, reference: str) -> Methods:
        """Return the recovery methods, and whether each fits this round.

        Fields are those of GET /rounds/{id}/methods.
        """
        return self._call(Call("GET", path_of(reference, paths.METHODS), reader(Methods)))

    def alarms(self, reference: str, *, rate: float = 1e-3, canaries: Iterable[str] = ()) -> Alarms:
        """Return the tests of the round, each with a false-alarm rate of at most `rate`.

        `canaries` are labels of items that nobody holds. Fields are those of GET
        /rounds/{id}/alarms.
        """
        query = {"rate": rate, "canary": list(canaries)}
        path = query_of(path_of(reference, paths.ALARMS), query)
        return self._call(Call("GET", path, reader(Alarms), is_analysis=True))

    def recover(self, reference: str, **fields: Any) -> Recovered:
        """Return a recovery of the round; fields are those of POST /rounds/{id}/recover.

        The method is `auto` unless `method` names another. With an analyst or admin key, a recovery
        that runs when this call gives up continues, and the same call again returns its result.
        """
        path = path_of(reference, paths.RECOVER)
        return self._call(post(path, read_recovery, {"method": "auto", **fields}, is_analysis=True))

    def certify(
        self, reference: str, malicious_share: float | None = None, **fields: Any
    ) -> Certified:
        """Return what the round proves if at most this share of its reports is malicious.

        Fields are those of POST /rounds/{id}/certificate.

            client.certify("cities", 0.01, questions=[{"ahead": ["New York, NY", "Chicago, IL"]}])

        With `reports=True` the server reads the reports of the closed round, not only their counts.
        """
        fields = {"malicious_share": malicious_share, **fields}
        read = partial(read_certificate, questions=len(fields.get("questions") or ()))
        path = path_of(reference, paths.CERTIFICATE)
        return self._call(post(path, read, fields, is_analysis=True))

    def changes(self, reference: str, since: str | None = None, **fields: Any) -> Changed:
        """Return what changed since an earlier round, or since the one before in the series.

        Fields are those of POST /rounds/{id}/changes.

            client.changes("usage-26", window=13).sentence(0)
        """
        path = path_of(reference, paths.CHANGES)
        return self._call(post(path, read_changes, {"since": since, **fields}, is_analysis=True))

    def export(self, reference: str) -> JsonObject:
        """Return a round's parameters, tally and checksum; `ldprecover.RoundExport` reads them."""
        return self._call(Call("GET", path_of(reference, paths.EXPORT), read_export))

    def plan(self, **fields: Any) -> Plans:
        """Return a plan of a round; fields are those of GET /plan."""
        query = {name: value for name, value in fields.items() if value is not None}
        return self._call(Call("GET", query_of(paths.PLAN, query), read_plan))

    def version(self) -> Version:
        """Return the version of the server and its parts."""
        return self._call(Call("GET", paths.VERSION, reader(Version)))

    def _mint(self, path: str, count: int) -> tuple[str, ...]:
        # Repeatable, because nobody can use lost tickets.
        return self._call(post(path, partial(read_tickets, count=count), {"count": count}))

    def _call(self, call: Call[T]) -> T:
        """Return the parsed final response; set `in_doubt` of a RefusedError."""
        backoff = Backoff(
            policy=self._retries, start=self._clock(), clock=self._clock, draw=self._rng.random
        )
        while (delay := backoff.pause(self.url, call, outcome := self._send(call))) is not None:
            self._sleep(delay)
        assert isinstance(outcome, HttpResponse)  # `pause` raises after the last error
        try:
            return call.parse(outcome)
        except RefusedError as error:
            error.in_doubt = backoff.in_doubt
            raise

    def _send(self, call: Call[Any]) -> Outcome:
        timeout, seconds = min(self._timeout, self._deadline), self._deadline
        read_timeout = timeout
        if call.is_analysis:
            read_timeout = seconds = self._analysis_timeout
        end, body = time.monotonic() + seconds, bytearray()
        try:
            with self._http.stream(
                call.method,
                self.url + call.path,
                headers=call.headers,
                content=call.content,
                timeout=httpx.Timeout(timeout, read=read_timeout),
            ) as response:
                if response.headers.get("content-encoding", "identity").lower() != "identity":
                    raise InvalidAnswerError(
                        f"{call}: the answer is compressed, which was not asked for"
                    )
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > MAX_ANSWER_BYTES:
                        raise InvalidAnswerError(
                            f"{call}: the answer is larger than {MAX_ANSWER_BYTES} bytes"
                        )
                    if time.monotonic() > end:
                        return httpx.ReadTimeout(f"no whole answer in {seconds:g} seconds")
        except httpx.TransportError as error:
            return error
        return HttpResponse(response.status_code, response.headers, bytes(body))

    def _settings(self) -> JsonObject:
        headers = {
            "Accept": "application/json, application/problem+json",
            # The limit on responses counts bytes; a compressed one could expand to any size.
            "Accept-Encoding": "identity",
            "User-Agent": f"ldprecover-client/{_installed_version('ldprecover')}",
        }
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        return {
            "headers": headers,
            "transport": self._transport,
            "verify": _tls_context(httpx.URL(self.url).scheme, *map(os.environ.get, _CERTIFICATES)),
            "limits": httpx.Limits(
                max_connections=_MAX_CONNECTIONS, max_keepalive_connections=_MAX_CONNECTIONS
            ),
            # A cookie could link the reports of one user.
            "cookies": CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            # A proxy from the environment cannot reach this machine.
            "trust_env": not is_loopback(self.url),
            # Reports and keys go to the server that the user named, and to no other.
            "follow_redirects": False,
        }


def with_sleep(client: Client, sleep: Callable[[float], object]) -> Client:
    """Return a client that waits otherwise between retries, on the connections of this one."""
    other = copy.copy(client)
    other._sleep = sleep
    return other
