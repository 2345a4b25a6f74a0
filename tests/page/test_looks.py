"""Every view, wide and narrow, light and dark: what axe-core finds, its size and its keyboard."""

from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import ServerProcess
from tests.page.conftest import SCHEMES, Visitor, check_looks, overflow, serious
from tests.page.rounds import CITIES, poisoned, report
from tests.page.test_forms import open_form

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def views(server: ServerProcess) -> dict[str, tuple[str, ...]]:
    """The address of each view, and texts that it has once it is complete."""
    for day in ("monday", "tuesday"):
        clean = server.open_round("oue", name=f"week-{day}", items=CITIES, epsilon=3.0)
        report(server, clean, 3000)
        server.close_round(clean["id"]).raise_for_status()
    opened = poisoned(server, name="week-wednesday")
    fresh = server.open_round("oue", items=CITIES)
    open_form(server, "fifty", 50)
    return {
        "rounds": ("#/rounds", "week-wednesday", "Lagos"),  # of a kept verdict
        "round": (
            f"#/rounds/{opened['name']}?targets=19,20,21&with=ldprecover,norm-sub,unmix",
            "Near certain attack",
            "certified, if at most",
            "What it concludes",
            "of the reports are malicious",
            "Earlier rounds that you know",
        ),
        "plan": ("#/plan?targets=10", "Protocols, the one to take first"),
        "open": ("#/open", "Nothing of this can be changed"),
        "fresh": (
            f"#/rounds/{fresh['name']}",
            "This round has no reports yet",
            "/page/survey.html",
        ),
        "form": ("#/forms/fifty", "50 questions"),
        "help": ("page/help.html", "Terms on this page"),
    }


@pytest.mark.parametrize("d", [5, 290])
def test_survey_is_accessible_and_fits(visitor: Visitor, server: ServerProcess, d: int) -> None:
    texts: dict[str, Any] = {"question": "Which did you buy last?", "title": "Shop"}
    items = [f"a product with a long name, {i}" for i in range(d - 1)] + [200 * "x"]
    opened = server.open_round(items=items, access="ticket", **texts)
    page = visitor.open(f"page/survey.html?round={opened['name']}")
    page.get_by_role("button", name="Send").click()
    page.get_by_text("Enter your ticket.").wait_for()
    if d > 14:
        page.get_by_role("combobox").press("ArrowDown")
    page.get_by_text("How private is this?").click()
    check_looks(page)


VIEWS = ["rounds", "round", "plan", "open", "fresh", "form", "help"]


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_is_accessible_at_double_size_and_by_keyboard(
    visitor: Visitor, views: dict[str, tuple[str, ...]], name: str
) -> None:
    path, *texts = views[name]
    visitor.page.emulate_media(color_scheme="light")
    page = visitor.open(path)
    for text in texts:
        page.get_by_text(text).first.wait_for()
    check_looks(page)
    if name == "plan":  # the last width is a phone's
        height = page.evaluate("document.documentElement.scrollHeight")
        assert height <= 3 * 844, "screens of a phone"
    page.set_viewport_size({"width": 1280, "height": 900})
    check_keyboard(page, has_button=name != "help")
    check_double_size(page)


def check_double_size(page: "Page") -> None:
    """As a browser at 200 %: half the CSS pixels; and with twice the text size."""
    page.set_viewport_size({"width": 640, "height": 450})
    for style in ("", "html { font-size: 200% !important; }"):
        if style:
            page.set_viewport_size({"width": 1280, "height": 900})
            page.evaluate(
                "(text) => { const sheet = new CSSStyleSheet(); sheet.replaceSync(text);"
                " document.adoptedStyleSheets = [sheet]; dispatchEvent(new "
                "Event('themechange')); }",
                style,
            )
        assert overflow(page) <= 0
        cut = page.evaluate(
            "[...document.querySelectorAll('main :is(p, h1, h2, li, button, label, "
            "dd)')].filter((each) =>"
            " each.offsetParent && getComputedStyle(each).overflow === 'hidden' && "
            "each.scrollWidth > each.clientWidth)"
            ".map((each) => each.textContent)"
        )
        assert cut == []


def check_keyboard(page: "Page", *, has_button: bool) -> None:
    """The tabulator reaches every control; the theme's button takes both keys."""
    # Only the rows in view of a long table exist.
    count = page.evaluate(
        "(() => { const left = new Set([...document.querySelectorAll('a[href], button, input, "
        'select, textarea, summary, [tabindex="0"]\')]'
        ".filter((each) => !each.disabled && each.checkVisibility() && !each.closest('.rows "
        ".line')));"
        " document.addEventListener('focusin', (event) => left.delete(event.target));"
        # A control that has gone meanwhile, as the button that cancels an analysis, is not missed.
        " window.unreached = () => [...left].filter((each) => each.checkVisibility());"
        " return left.size; })()"
    )
    for presses in range(4 * count + 60):
        page.keyboard.press("Tab")
        if presses % 20 == 19 and not page.evaluate("unreached().length"):
            break
    assert page.evaluate("unreached().map((each) => each.outerHTML)") == []
    for key in ("Enter", "Space") if has_button else ():
        page.get_by_role("button", name="theme").focus()
        before = page.evaluate("document.documentElement.dataset.theme")
        page.keyboard.press(key)
        assert page.evaluate("document.documentElement.dataset.theme") != before


def test_dialog_keeps_and_returns_focus(visitor: Visitor) -> None:
    page = visitor.open("#/rounds")
    page.get_by_role("button", name="Enter key").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    assert serious(page) == []
    assert page.evaluate("document.activeElement.name") == "key"
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    assert page.evaluate("document.activeElement.id") == "key"


def test_print_shows_figures_without_controls(
    visitor: Visitor, views: dict[str, tuple[str, ...]]
) -> None:
    path, *texts = views["round"]
    page = visitor.open(path)
    for text in texts:
        page.get_by_text(text).first.wait_for()
    page.get_by_text("Share of users by item: the numbers").click()
    pictures = set()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    try:
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme, media="print")
            for part in (".lead", ".tiles", ".paper canvas", "figure .rows .line"):
                assert page.locator(part).first.is_visible(), part
            controls = page.evaluate(
                "[...document.querySelectorAll('button, a.button, input, select, summary, nav')]"
                ".filter((each) => each.checkVisibility() && !each.closest('.rows'))"
                ".map((each) => each.outerHTML)"
            )
            assert controls == []
            assert overflow(page) <= 0
            pictures.add(page.locator(".paper canvas").first.evaluate("(each) => each.toDataURL()"))
        assert len(pictures) == 1, "the theme of the screen is not that of the paper"
        assert page.locator("figure .rows .line").count() == 1 + len(CITIES)
    finally:
        page.emulate_media(media="screen")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
