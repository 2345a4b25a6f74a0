"""A real browser on a real server; one page serves all tests of this folder, emptied for each."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import pytest
from tests.browsers import launched
from tests.conftest import ServerProcess

if TYPE_CHECKING:
    from playwright.sync_api import (
        Browser,
        BrowserContext,
        ConsoleMessage,
        Locator,
        Page,
        Request,
        Route,
    )

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS = {"wide": 1280, "phone": 390}

_STATUS = re.compile(r"Failed to load resource: the server responded with a status of (\d+)")


@pytest.fixture(scope="package")
def browser() -> Iterator["Browser"]:
    with launched() as browser:
        yield browser


class Visitor:
    """Someone at a browser: opens pages, and sees to it that nothing goes wrong behind them.

    Any console message, error of a script, or request to another host fails the test when it ends.
    A browser writes into the console when an answer is an error: give `expects` the statuses that a
    test asks for, 0 where a server is to be unreachable.
    """

    def __init__(self, context: "BrowserContext", url: str, page: "Page | None" = None) -> None:
        self.context = context
        self.url = url
        self._page = page
        self.expects: set[int] = set()
        self.wrong: list[str] = []
        self.requests: list[str] = []
        self._listeners = {
            "request": self._on_request,
            "console": self._on_console,
            "weberror": lambda error: self.wrong.append(f"error: {error.error}"),
        }
        for event, listener in self._listeners.items():
            context.on(event, listener)  # type: ignore[call-overload]

    @property
    def page(self) -> "Page":
        """The visitor's page."""
        if self._page is None:
            self._page = self.context.new_page()
        return self._page

    def open(self, path: str = "#/rounds", **size: int) -> "Page":
        """Load a view by its address, in the one page that the visitor has, and return this
        page.
        """
        self.page.set_viewport_size(
            {"width": size.get("width", 1280), "height": size.get("height", 900)}
        )
        self.page.goto("about:blank")  # else another hash would not load anything
        self.page.goto(f"{self.url}/{path}")
        return self.page

    def refuse(self, pattern: str, status: int, title: str, detail: str) -> None:
        """Answer these requests with a problem."""
        self.expects |= {status}
        body = json.dumps({"title": title, "detail": detail})
        answer: dict[str, Any] = {"status": status, "body": body}
        self.context.route(
            pattern, lambda route: route.fulfill(content_type="application/problem+json", **answer)
        )

    def amend(self, pattern: str, change: Callable[[Any], object]) -> None:
        """Change the bodies of these answers."""

        def fulfill(route: "Route") -> None:
            response = route.fetch()
            body = response.json()
            change(body)
            route.fulfill(response=response, json=body)

        self.context.route(pattern, fulfill)

    def leave(self) -> None:
        """Remove all state before the next visitor of the same page."""
        if self.page.url.startswith(self.url):
            self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.context.unroute_all(behavior="ignoreErrors")
        self.page.emulate_media(color_scheme="light")
        self.page.goto("about:blank")
        session = self.context.new_cdp_session(self.page)
        stored = {"origin": self.url, "storageTypes": "indexeddb"}
        session.send("Storage.clearDataForOrigin", stored)
        session.detach()
        for event, listener in self._listeners.items():
            self.context.remove_listener(event, listener)

    def _on_request(self, request: "Request") -> None:
        self.requests.append(request.url)
        parts = urlsplit(request.url)
        if parts.scheme not in ("blob", "data") and parts.netloc != urlsplit(self.url).netloc:
            self.wrong.append(f"a request left the host: {request.url}")

    def _on_console(self, message: "ConsoleMessage") -> None:
        status = _STATUS.match(message.text)
        if status and int(status[1]) in self.expects:
            return
        if 0 in self.expects and "net::ERR_" in message.text:
            return
        self.wrong.append(f"console {message.type}: {message.text}")


@pytest.fixture(scope="package")
def kept_page(browser: "Browser") -> Iterator["Page"]:
    """A page for most visitors: a new page takes a process and a second of processor time."""
    with _new_context(browser) as context:
        yield context.new_page()


def _new_context(browser: "Browser", **options: Any) -> "BrowserContext":
    context = browser.new_context(
        **{"viewport": {"width": 1280, "height": 900}, "locale": "en-GB", **options}
    )
    context.set_default_timeout(60_000)
    return context


Visit = Callable[[str], Visitor]


@pytest.fixture
def visit(kept_page: "Page") -> Iterator[Visit]:
    """Return a function that opens any server or folder in the shared page: `visit(url)`."""
    sent: list[Visitor] = []

    def send(url: str) -> Visitor:
        sent.append(Visitor(kept_page.context, url, kept_page))
        return sent[-1]

    yield send
    for visitor in reversed(sent):
        visitor.leave()
    assert [wrong for visitor in sent for wrong in visitor.wrong] == []


@pytest.fixture
def visitor(visit: Visit, server: ServerProcess) -> Visitor:
    """A visitor of the server that all tests share."""
    return visit(server.url)


@pytest.fixture
def new_visitor(browser: "Browser") -> Iterator[Callable[..., Visitor]]:
    """Make visitors with separate contexts: `new_visitor(url, locale="de")`."""
    visitors: list[Visitor] = []

    def make(url: str, **options: Any) -> Visitor:
        visitors.append(Visitor(_new_context(browser, **options), url))
        return visitors[-1]

    yield make
    for visitor in visitors:
        visitor.context.close()
    assert [wrong for visitor in visitors for wrong in visitor.wrong] == []


def expect(locator: "Locator") -> Any:
    """Playwright's waiting assertions; its `wait_for_function` violates the page's policy."""
    from playwright.sync_api import expect

    expect.set_options(timeout=60_000)  # a fault ends a test late; a slow machine must not
    return expect(locator)


def overflow(page: "Page") -> int:
    """Return the pixels that a page is wider than its window, after its charts are redrawn."""
    wide: int = page.evaluate(
        "async () => { const wide = () => document.documentElement.scrollWidth - innerWidth;"
        " for (let frame = 0; frame < 200 && wide() > 0; frame++) await new "
        "Promise(requestAnimationFrame);"
        " return wide(); }"
    )
    return wide


def serious(page: "Page", *, scheme: str = "light") -> list[str]:
    """Return the serious and critical findings of axe-core in a page, one line an element.

    The dark theme differs in its colours only, so only their contrast is checked there.
    """
    # By its source: a script element would be against the page's own policy.
    page.evaluate(AXE)
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if scheme == "dark":
        options["runOnly"] = {"type": "rule", "values": ["color-contrast"]}
    result: dict[str, Any] = page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in result["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def check_looks(page: "Page") -> None:
    """Check that a page fits each width and has no serious finding in either theme."""
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        for width in WIDTHS.values():
            page.set_viewport_size({"width": width, "height": 900})
            assert overflow(page) <= 0, "only tables and charts scroll sideways"
        assert serious(page, scheme=scheme) == []
