"""How long the page keeps a browser busy, by the browser's own account of its tasks."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import ServerProcess
from tests.page.conftest import Visitor
from tests.page.rounds import report

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page

# The machine may be slow, and busy with other tests. So what counts is the processor time of the
# page's own thread, as a multiple of the time that a known piece of work takes it.
_TASK_SECONDS = "TaskDuration"
_WORK = """(() => {
  const place = document.createElement("table");
  document.body.append(place);
  for (let i = 0; i < 1000; i++) {
    const row = place.insertRow();
    for (const text of [i, "an item", i / 7]) row.insertCell().textContent = text;
  }
  place.getBoundingClientRect();
  place.remove();
})()"""


def busy(session: "CDPSession") -> float:
    """Seconds of work of the page's main thread."""
    metrics: dict[str, Any] = session.send("Performance.getMetrics")
    return next(each["value"] for each in metrics["metrics"] if each["name"] == _TASK_SECONDS)


def known_work(page: "Page", session: "CDPSession") -> float:
    """Seconds that a table of 1,000 rows takes here and now, the least of three."""

    def once() -> float:
        before = busy(session)
        page.evaluate(_WORK)
        return busy(session) - before

    return min(once() for _ in range(3))


def accounted(page: "Page") -> "CDPSession":
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return session


@pytest.fixture(scope="module")
def thousand(server: ServerProcess) -> dict[str, Any]:
    opened = server.open_round("grr", epsilon=3.0, domain_size=1000)
    report(server, opened, 20_000, 500, (990, 991))
    return opened


@pytest.fixture(scope="module")
def ten_thousand(server: ServerProcess) -> dict[str, Any]:
    opened = server.open_round("grr", epsilon=5.0, domain_size=10_000)
    report(server, opened, 50_000, 500, (9000, 9001))
    return opened


def test_first_view_is_little_work(
    new_visitor: Callable[..., Visitor], server: ServerProcess, thousand: dict[str, Any]
) -> None:
    visitor = new_visitor(server.url)
    page = visitor.page
    page.goto("about:blank")
    session = accounted(page)
    before = busy(session)
    page.goto(f"{visitor.url}/#/rounds/{thousand['name']}")
    page.get_by_role("heading", name=thousand["name"]).wait_for()
    spent = busy(session) - before
    assert spent < 8 * known_work(page, session)


def test_ten_thousand_items_have_no_long_task(
    visitor: Visitor, ten_thousand: dict[str, Any]
) -> None:
    page = visitor.open(f"#/rounds/{ten_thousand['name']}?with=ldprecover&top=all")
    table = page.get_by_role("table", name="Share of users by item")
    page.get_by_text("Share of users by item: the numbers").click()
    table.wait_for()
    page.get_by_text(re.compile("alarms? raised")).first.wait_for()
    page.get_by_text("η = 0.2").wait_for()
    page.get_by_text("certified, if at most").wait_for()
    page.locator("button[aria-label='CSV: Share of users by item']:enabled").wait_for()
    session = accounted(page)
    spent = []

    def step(act: str) -> None:
        before = busy(session)
        page.evaluate(act)
        page.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        spent.append((busy(session) - before, act))

    for place in (".rows[role=table]", ".rows[role=group]"):
        for part in (0.1, 0.5, 1, 0):
            step(
                f"(() => {{ const it = document.querySelector('{place}');"
                f" it.scrollTop = {part} * it.scrollHeight; }})()"
            )
    for text in ("9", "90", "900", "9001", ""):
        step(
            "(() => { const it = document.querySelector('[name=find]');"
            f" it.value = '{text}'; it.dispatchEvent(new Event('input')); }})()"
        )
        assert table.get_by_role("row").nth(1).is_visible()
    assert max(spent)[0] < 3 * known_work(page, session), max(spent)
    assert table.get_attribute("aria-rowcount") == "10001"
    assert page.locator(".rows[role=table] .line").count() < 60


@pytest.fixture
def watching(
    new_visitor: Callable[..., Visitor], server: ServerProcess
) -> tuple[Visitor, "Page", str]:
    """A visitor who has all of an open round on the page, and the round's id."""
    opened = server.open_round("grr", epsilon=1.0, domain_size=8)
    report(server, opened, 200)
    visitor = new_visitor(server.url)
    page = visitor.page
    page.clock.install()
    page.goto(f"{visitor.url}/#/rounds/{opened['name']}")
    page.locator("button[aria-label='CSV: Share of users by item']:enabled").wait_for()
    page.get_by_text("Methods and tests").click()
    page.get_by_text("false-alarm rate").wait_for()
    page.get_by_role("heading", name="Needs targets").wait_for()
    return visitor, page, opened["id"]


def test_watching_page_polls_every_three_seconds(watching: tuple[Visitor, "Page", str]) -> None:
    visitor, page, id = watching
    with page.expect_response("**/stats"):
        page.clock.pause_at(page.evaluate("Date.now()") + 5000)
    before = len(visitor.requests)

    def asked() -> list[str]:
        return [url.rpartition("/")[2] for url in visitor.requests[before:]]

    for times in range(1, 4):
        seconds = 0
        while asked().count("stats") < times:
            page.clock.fast_forward(1000)
            page.evaluate(
                "fetch('healthz').then((answer) => answer.text())"
            )  # what was due has been asked by then
            seconds += 1
            assert seconds < 20
        assert seconds >= 3
    assert set(asked()) <= {"stats", id, "healthz"}, "the round itself now and then, and no counts"


def test_hidden_page_polls_nothing(watching: tuple[Visitor, "Page", str]) -> None:
    visitor, page, _ = watching
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    # A request that was sent before is recorded before this one.
    page.evaluate("fetch('healthz').then((answer) => answer.text())")
    before = len(visitor.requests)
    for _ in range(3):
        page.clock.fast_forward(60_000)
    assert len(visitor.requests) == before
    with page.expect_response("**/stats"):
        page.evaluate(
            "Object.defineProperty(document, 'hidden', {value: false});"
            "document.dispatchEvent(new Event('visibilitychange'))"
        )
