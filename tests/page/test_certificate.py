"""What a round proves whatever malicious reports say: sentences, bands and the assumed share."""

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import numpy as np
import pytest
from tests.conftest import ServerProcess
from tests.page.conftest import Visitor, expect
from tests.page.rounds import CITIES, report

from ldprecover.protocols import wire

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page, Route

SLIDER = "Share of malicious reports at most"
CERTIFICATE = "**/certificate"


@pytest.fixture(scope="module")
def honest(server: ServerProcess) -> dict[str, Any]:
    """A round of 20,000 honest reports, which prove that the first item leads."""
    opened = server.open_round("oue", items=CITIES, epsilon=3.0)
    report(server, opened, 20_000)
    return opened


@pytest.fixture(scope="module")
def attacked(server: ServerProcess) -> dict[str, Any]:
    """A round of 4,000 honest reports, and 400 that support every item."""
    opened = server.open_round("oue", items=CITIES, epsilon=3.0)
    report(server, opened, 4000)
    every = np.packbits(np.ones((400, len(CITIES)), bool), axis=1, bitorder="little")
    assert server.submit(opened["id"], wire.pack(every)).status_code == 202
    return opened


def certificate(server: ServerProcess, round: dict[str, Any], **fields: Any) -> Any:
    """Return the server's certificate, by default what the page asks for."""
    body = {"malicious_share": 0.01, "questions": [{"top": 1}]} | fields
    response = server.post(f"/rounds/{round['id']}/certificate", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def panel(page: "Page") -> "Locator":
    return page.locator("section").filter(has=page.get_by_role("heading", name="What is proven"))


def proven(page: "Page") -> list[tuple[float, float]]:
    """Return the certified ends of the intervals that the table shows, which is opened."""
    table = page.get_by_role("table", name="Share of users by item")
    if not table.is_visible():
        page.get_by_text("Share of users by item: the numbers").click()
        table.wait_for()
    head, *rows = page.evaluate(
        "[...document.querySelectorAll('.rows[role=table] .line')]"
        ".map((row) => [...row.children].slice(-3, -1).map((cell) => cell.textContent))"
    )
    assert head == ["Certified ≥", "Certified ≤"]
    ends = [[float(cell.removesuffix(" %")) / 100 for cell in row] for row in rows]
    return [(low, high) for low, high in ends]


def wait_for_best_estimate(page: "Page") -> None:
    page.locator(".legend").get_by_text("best estimate", exact=True).wait_for()


def share_of(url: str) -> list[str] | None:
    return parse_qs(url.partition("?")[2]).get("malicious")


def test_shows_sentences_and_intervals_of_the_server(
    visitor: Visitor, server: ServerProcess, honest: dict[str, Any]
) -> None:
    page = visitor.open(f"#/rounds/{honest['name']}?malicious=0.01&sort=index&targets=2,1")
    answered = certificate(server, honest, questions=[{"top": 1}, {"items": [1, 2]}])
    sentences = answered["sentences"]
    for text in (*sentences["answers"], sentences["bound"], answered["assumption"]):
        panel(page).get_by_text(text, exact=True).wait_for()
    page.locator(".legend").get_by_text("certified, if at most 1\u00a0% are malicious").wait_for()
    wait_for_best_estimate(page)
    ends = list(zip(answered["lower"], answered["upper"], strict=True))
    shown = proven(page)
    assert len(shown) > 10
    assert shown == [pytest.approx(pair, abs=1e-4) for pair in ends[: len(shown)]]
    canvas = page.get_by_role("img", name="Grey marks are bounds")
    canvas.hover(position={"x": 400, "y": 40})
    page.get_by_text(
        "certified {:.2f} % to {:.2f} %".format(*(100 * end for end in ends[0]))
    ).wait_for()
    page.evaluate("fetch('healthz').then((answer) => answer.text())")  # what was due has been asked
    assert sum(url.endswith("/certificate") for url in visitor.requests) == 1


def test_keys_move_the_assumed_share(
    visitor: Visitor, server: ServerProcess, honest: dict[str, Any]
) -> None:
    page = visitor.open(f"#/rounds/{honest['name']}?with=norm-sub&sort=index")
    panel(page).get_by_text("That holds").wait_for()
    assert share_of(page.url) is None
    slider = page.get_by_role("slider", name=SLIDER)
    expect(slider).to_have_attribute("aria-valuetext", "1\u00a0%: 200 of 20,000 reports")
    slider.focus()
    for key in ("End", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
    panel(page).get_by_text("10\u00a0%: 2,000 of 20,000 reports").wait_for()
    expect(page.locator("#live")).to_contain_text("Lagos leads")
    assert share_of(page.url) == ["0.1"]
    visitor.expects = {404}
    page.evaluate("location.hash = '#/rounds/none'")  # of which nothing is said
    expect(page.locator("#live")).to_be_empty()


def test_later_share_aborts_the_request_of_the_earlier(
    visitor: Visitor, honest: dict[str, Any]
) -> None:
    page = visitor.open(f"#/rounds/{honest['name']}?with=norm-sub")
    panel(page).get_by_text("That holds").wait_for()
    page.get_by_text("alarms raised.").wait_for()
    routes: list[Route] = []
    visitor.context.route(CERTIFICATE, lambda route: routes.append(route))
    slider = page.get_by_role("slider", name=SLIDER)
    slider.focus()
    with page.expect_request(CERTIFICATE):
        page.keyboard.press("End")
    with page.expect_event("requestfailed", lambda request: "certificate" in request.url):
        page.keyboard.press("Home")
    while len(routes) < 2:
        page.wait_for_timeout(10)  # routes are appended while the page's events are handled
    assert [json.loads(route.request.post_data or "")["malicious_share"] for route in routes] == [
        0.2,
        0,
    ]
    routes[1].continue_()
    page.locator(".legend").get_by_text("certified, if at most 0\u00a0% are malicious").wait_for()


def test_share_is_chosen_by_what_is_proven(
    visitor: Visitor, server: ServerProcess, attacked: dict[str, Any]
) -> None:
    """Where the viewer has set none, it is somewhat above the estimated and the proven one."""
    page = visitor.open(f"#/rounds/{attacked['name']}")
    legend = page.locator(".legend").get_by_text("certified, if at most")
    legend.wait_for()
    wait_for_best_estimate(page)
    answer = server.post(f"/rounds/{attacked['id']}/recover", json={"method": "auto"}).json()
    beta = answer["conclusions"]["beta"]
    share = float(re.findall(r"[\d.]+", legend.inner_text())[0]) / 100
    assert beta < share < 2 * beta
    least = certificate(server, attacked, malicious_share=0.2)["least_malicious_share"]
    assert 0 < least < share
    expect(page.locator(".tile").nth(2)).to_contain_text("proven")


def test_impossible_share_proposes_a_larger_one(
    visitor: Visitor, server: ServerProcess, attacked: dict[str, Any]
) -> None:
    visitor.expects = {409}
    page = visitor.open(f"#/rounds/{attacked['name']}?malicious=0.01&sort=index")
    panel(page).get_by_text("they prove that at least").wait_for()
    assert page.locator(".legend").get_by_text("certified").count() == 0
    least = certificate(server, attacked, malicious_share=0.2)["least_malicious_share"]
    button = panel(page).get_by_role("button", name="Assume at most")
    share = float(button.inner_text().split()[-2]) / 100
    assert 0.01 < 2 * least < share
    button.click()
    answered = certificate(server, attacked, malicious_share=share)
    panel(page).get_by_text(answered["assumption"], exact=True).wait_for()
    assert share_of(page.url) == [str(share)]
    assert page.evaluate("document.activeElement.name") == "malicious"
    assumed = f"at most {100 * share:.3g}\u00a0% are malicious"
    page.locator(".legend").get_by_text(assumed).wait_for()


def test_failed_recovery_hides_no_proof(visitor: Visitor, server: ServerProcess) -> None:
    """The reason of the failure is shown until the certificate proves a malicious share."""
    visitor.expects = {409}
    opened = server.open_round("oue", items=CITIES, epsilon=3.0)
    every = np.packbits(np.ones((4000, len(CITIES)), bool), axis=1, bitorder="little")
    assert server.submit(opened["id"], wire.pack(every)).status_code == 202
    waiting: list[Route] = []
    released = False

    def hold(route: "Route") -> None:
        if released:
            route.continue_()
        else:
            waiting.append(route)

    visitor.context.route("**/certificate", hold)
    visitor.refuse("**/recover", 422, "Invalid parameter", "nothing is left")
    page = visitor.open(f"#/rounds/{opened['name']}")
    lead = page.locator(".lead")
    expect(lead).to_contain_text("The test failed: Invalid parameter: nothing is left")
    released = True
    for route in waiting:
        route.continue_()
    expect(lead).to_contain_text("they prove that at least")
    page.get_by_role("button", name="Test the reports").wait_for()


def test_busy_server_is_asked_again(visitor: Visitor, honest: dict[str, Any]) -> None:
    visitor.refuse(CERTIFICATE, 503, "Too many analyses queued", "try again soon")
    page = visitor.open(f"#/rounds/{honest['name']}?with=norm-sub")
    panel(page).get_by_text("Too many analyses queued: try again soon.").wait_for()
    visitor.context.unroute(CERTIFICATE)
    panel(page).get_by_role("button", name="Try again").click()
    panel(page).get_by_text("That holds").wait_for()


def test_protocol_that_is_not_certified_shows_no_panel(
    visitor: Visitor, honest: dict[str, Any]
) -> None:
    visitor.refuse(CERTIFICATE, 422, "Invalid parameter", "toy lacks one q for all items")
    page = visitor.open(f"#/rounds/{honest['name']}?with=norm-sub")
    page.get_by_role("article").get_by_text("The nearest probability distribution").wait_for()
    expect(panel(page)).to_be_hidden()
    page.get_by_text("Share of users by item: the numbers").click()
    expect(page.get_by_role("table", name="Share of users by item")).not_to_contain_text(
        "Certified"
    )


def test_legend_and_files_wait_for_the_band(visitor: Visitor, honest: dict[str, Any]) -> None:
    routes: list[Route] = []
    visitor.context.route(CERTIFICATE, lambda route: routes.append(route))
    visitor.context.route("**/alarms", lambda _: None)  # else their answer would draw once more
    with visitor.page.expect_request(CERTIFICATE):
        page = visitor.open(f"#/rounds/{honest['name']}")
    file = page.get_by_role("button", name="CSV: Share of users by item")
    assert file.is_disabled()
    legend = page.locator(".legend").first
    assert "certified, being worked out" in legend.inner_text()
    routes[0].continue_()
    expect(legend).to_contain_text("certified, if at most 1\u00a0%")
    expect(file).to_be_enabled()


def test_band_does_not_move_the_axis(visitor: Visitor) -> None:
    """A band that comes after the values is cut at the end of the axis."""
    page = visitor.open()
    before, after, ends = page.evaluate(
        """async () => {
          const { dots } = await import("/page/js/chart/dots.js");
          const values = { name: "v", colour: "recovered", mark: "dot", values: [0.5, 0.2] };
          const band = { name: "b", colour: "quiet", mark: "band", values: [],
            low: [0, 0], high: [1, 0.3] };
          const what = { labels: ["", ""], order: [0, 1], chosen: new Set(), room: 0.3 };
          const rows = [28 + 13, 28 + 26 + 13];
          const show = (...series) => {
            const plot = document.createElement("div");
            document.body.append(plot);
            dots({ plot, setLegend() {} }, new AbortController().signal)({ ...what, series });
            const canvas = plot.querySelector("canvas");
            const { width, height } = canvas;
            const scale = width / parseFloat(canvas.style.width);
            const pixels = new Uint32Array(
              canvas.getContext("2d").getImageData(0, 0, width, height).data.buffer);
            const line = (y) => {
              const start = Math.round(y * scale) * width;
              return Array.from(pixels.slice(start, start + width));
            };
            const blue = rows.map((y) => line(y).indexOf(0xffb27200));
            const end = (y) => line(y).slice(-17 * scale, -12 * scale).join();
            const ends = rows.map((y) => end(y) !== end(y + 10));
            return { blue, ends };
          };
          const [before, after] = [show(values), show(values, band)];
          return [before.blue, after.blue, after.ends];
        }"""
    )
    assert before == after
    assert min(before) > 0
    assert ends == [True, False]
