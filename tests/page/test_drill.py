"""The drill in a real browser: form, score, map, and visitors without the token."""

import csv
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.conftest import ServerProcess
from tests.experiments.drill.conftest import DRILL_TOKEN, RunningDrill, running_drill
from tests.page.conftest import WIDTHS, Picture, Visit, Visitor, expect, overflow, serious

if TYPE_CHECKING:
    from playwright.sync_api import Page

ADDRESS = f"#/drill?token={DRILL_TOKEN}"
STATIC = {
    path.name: path.read_text(encoding="utf-8")
    for path in (files("ldprecover_experiments") / "drill" / "static").iterdir()
    if isinstance(path, Path)
}


@pytest.fixture(scope="module")
def running(server: ServerProcess) -> Iterator[RunningDrill]:
    """A drill in front of the server that all tests share."""
    with running_drill(server.url, server.admin_key, protocol="grr") as drill:
        yield drill


@pytest.fixture
def drill(running: RunningDrill) -> RunningDrill:
    """The drill without a last run, so that its form is open."""
    running.jobs.last = None
    return running


def test_drill_runs_from_form_to_score(
    drill: RunningDrill, visit: Visit, picture: Picture, tmp_path: Path
) -> None:
    visitor = visit(drill.url)
    shown = visitor.open(ADDRESS)
    run = shown.get_by_role("button", name="Run the drill")
    run.wait_for()
    assert DRILL_TOKEN not in shown.url
    assert not any(DRILL_TOKEN in url.partition("#")[0] for url in visitor.requests)
    assert shown.locator("nav a[aria-current=page]").inner_text() == "Drill"
    shown.get_by_role("combobox", name="Attack", exact=True).select_option("mga")
    shown.get_by_label("Malicious users, % of all").fill("7")
    shown.get_by_role("spinbutton", name="Targets", exact=True).fill("5")
    pictures(shown, picture, "drill-form")
    shown.get_by_text("Methods and further settings").click()
    for name in ("norm", "norm-mul", "rsn"):
        shown.get_by_label(f"{name}:").check()
    assert serious(shown) == []
    pictures(shown, picture, "drill-form-open")
    run.click()
    steps = shown.get_by_role("list").filter(has_text="open a round")
    expect(steps.get_by_role("listitem")).to_have_count(12)
    verdict = shown.get_by_role("region", name="Verdict", exact=True)
    verdict.wait_for(timeout=60_000)
    state = drill.http.get("/drill/run").json()
    result = state["result"]
    assert state["settings"]["beta"] == 0.07
    assert state["steps"][-1] == "recover by un-mixing told the targets"
    expect(verdict.get_by_role("heading")).to_have_text(result["headline"])
    expect(verdict.get_by_role("listitem")).to_have_text(result["details"])
    box = verdict.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 800, "the verdict is below the fold"
    errors = shown.get_by_role("region", name="Errors")
    names = [" = ".join(row["names"]) for row in result["rows"]]
    expect(errors.locator("tbody th")).to_have_text(names)
    assert "after the attack = norm" in names  # under grr
    certain = shown.locator("details").filter(has_text="What stays proven")
    certain.locator("summary").click()
    for when in ("before", "after"):
        leader = result["certificates"][when]["answers"][0]["sentence"]
        expect(certain).to_contain_text(f"{when.capitalize()} the attack: {leader}")
    expect(certain).to_contain_text("After the attack 102 of 102 true frequencies are within")
    expect(certain.get_by_role("row").last).to_contain_text("5 targets together")
    truth = downloaded(shown, "Truth as CSV", tmp_path)
    assert [row["label"] for row in truth] == result["items"]
    assert [float(row["frequency"]) for row in truth] == result["truth"]
    errors_file = downloaded(shown, "Errors as CSV", tmp_path)
    assert [row["estimate"] for row in errors_file] == names
    assert [float(row["mse"]) for row in errors_file] == [row["mse"] for row in result["rows"]]
    pictures(shown, picture, "drill-score")
    shown.reload()
    verdict.wait_for()  # the tab has kept the token
    shown.get_by_role("link", name=state["round"]).click()
    shown.get_by_role("heading", name=state["round"]).wait_for()
    assert "forged=0.07" in shown.url, "the round page must not assume less than the attack"


def downloaded(shown: "Page", button: str, folder: Path) -> list[dict[str, str]]:
    """Press a button, and return the rows of the CSV file that it downloads."""
    with shown.expect_download() as download:
        shown.get_by_role("button", name=button).click()
    path = folder / "downloaded.csv"
    download.value.save_as(path)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def pictures(shown: "Page", picture: Picture, name: str) -> None:
    """Check a view in both themes and widths, and take pictures of it."""
    for scheme in ("light", "dark"):
        shown.emulate_media(color_scheme=scheme)
        for width_name, width in WIDTHS.items():
            shown.set_viewport_size({"width": width, "height": 800})
            assert overflow(shown) <= 0, f"the page is wider than {width}"
            picture(shown, f"{name}-{width_name}-{scheme}")
        assert serious(shown, scheme=scheme) == []
    shown.emulate_media(color_scheme="light")
    shown.set_viewport_size({"width": WIDTHS["wide"], "height": 800})


def test_each_attack_has_a_sentence(drill: RunningDrill, visit: Visit) -> None:
    shown = visit(drill.url).open(ADDRESS)
    attack = shown.get_by_role("combobox", name="Attack", exact=True)
    choices = drill.http.get("/drill/options").json()["attacks"]
    for name, words in choices.items():
        attack.select_option(name)
        expect(attack).to_have_accessible_description(words["sentence"])
    shown.get_by_text("What each attack does").click()
    legend = shown.get_by_role("definition")
    expect(legend).to_have_text([words["sentence"] for words in choices.values()])


def test_long_bar_is_drawn_broken(drill: RunningDrill, visit: Visit) -> None:
    shown = visit(drill.url).open(ADDRESS)
    form = {"protocol": "oue", "beta": 0.3, "attack": "mga", "methods": [], "epsilon": 2}
    assert drill.http.post("/drill/run", json=form).status_code == 202
    drill.ended()
    errors = shown.get_by_role("region", name="Errors")
    errors.wait_for()
    rows = drill.http.get("/drill/run").json()["result"]["rows"]
    before, after, projection = (row["harm"] for row in rows)
    assert before == 1
    assert after > 1.4 * projection
    expect(errors.locator("i.broken")).to_have_count(1)
    widths = [bar.bounding_box() for bar in errors.locator("i").all()]
    pixels = [box["width"] for box in widths if box]
    assert pixels[2] / pixels[1] == pytest.approx(1 / 1.4, rel=0.02)
    assert pixels[0] / pixels[2] == pytest.approx(1 / projection, rel=0.1)


def test_map_of_attacks_is_drawn(
    drill: RunningDrill, visit: Visit, picture: Picture, tmp_path: Path
) -> None:
    visitor = visit(drill.url)
    shown = visitor.open(f"#/drill?what=map&token={DRILL_TOKEN}")
    users = shown.get_by_role("spinbutton", name="Genuine users")
    expect(users).to_have_value("20000")
    users.fill("500")
    shown.get_by_role("combobox", name="Protocol").select_option("llh")
    shown.get_by_role("button", name="Draw the map").click()
    verdict = shown.get_by_role("region", name="Verdict", exact=True)
    verdict.wait_for(timeout=60_000)
    state = drill.http.get("/drill/run").json()
    assert (state["settings"]["users"], state["settings"]["protocol"]) == (500, "llh")
    expect(verdict.get_by_role("heading")).to_have_text(state["result"]["headline"])
    rows = state["result"]["rows"]
    played = [row for row in rows if row["cells"]["norm-sub"]["mse"] is not None]
    assert {row["attack"] for row in rows} - {row["attack"] for row in played} == {"APA2"}
    expect(shown.locator(".drill-map tbody th")).to_have_text(
        [*(row["title"] for row in played), "on average"]
    )
    map_file = downloaded(shown, "CSV", tmp_path)
    ratios = [row["cells"]["unmix counts"]["times"] for row in played]
    assert [float(row["un-mixing of counts"]) for row in map_file] == ratios
    shown.get_by_text("why a number is missing").click()
    expect(shown.get_by_text("Not played: raise targets, by coins (APA2)")).to_be_visible()
    pictures(shown, picture, "drill-map")


def test_button_cancels_drill(drill: RunningDrill, visit: Visit) -> None:
    shown = visit(drill.url).open(ADDRESS)
    shown.get_by_role("button", name="All attacks").click()
    shown.get_by_role("spinbutton", name="Genuine users").fill("20000")
    shown.get_by_text("Methods and further settings").click()
    shown.get_by_label("Trials of each attack").fill("10")
    shown.get_by_role("button", name="Draw the map").press("Enter")
    cancel = shown.get_by_role("button", name="Cancel")
    expect(cancel).to_be_focused()
    expect(shown.locator("[aria-current=step]")).to_have_count(1)
    cancel.press("Enter")
    shown.get_by_text("The drill was cancelled").wait_for(timeout=60_000)
    expect(shown.locator("summary").first).to_be_focused()
    assert drill.ended()["state"] == "cancelled"


def test_invalid_drill_shows_message(drill: RunningDrill, visit: Visit) -> None:
    visitor = visit(drill.url)
    visitor.expects = {422}
    shown = visitor.open(ADDRESS)
    shown.get_by_role("combobox", name="Attack", exact=True).select_option("apa2")
    shown.get_by_role("button", name="Run the drill").click()
    message = shown.locator("main [role=alert]")
    message.wait_for()
    assert "apa2" in message.inner_text() or "grr" in message.inner_text()


def test_missing_or_wrong_token_shows_where_it_is(drill: RunningDrill, visit: Visit) -> None:
    visitor = visit(drill.url)
    visitor.expects = {403}
    shown = visitor.open("#/drill")
    message, button = (
        shown.locator("main [role=alert]"),
        shown.get_by_role("button", name="Run the drill"),
    )
    message.wait_for()
    assert "lacks the drill's token" in message.inner_text()
    assert button.count() == 0
    visitor.open(ADDRESS)
    button.wait_for()
    shown.evaluate("location.hash = '#/drill?token=another'")
    message.wait_for()
    assert "lacks the drill's token" in message.inner_text()
    shown.reload()
    button.wait_for()  # a wrong token does not replace the right one


def test_plain_server_has_no_drill(visitor: Visitor) -> None:
    shown = visitor.open("#/rounds")
    shown.get_by_role("heading", name="Rounds", exact=True).wait_for()
    assert shown.locator("nav").get_by_text("Drill").count() == 0
    assert not any("drill" in url for url in visitor.requests)


def test_drill_scripts_follow_page_rules(server: ServerProcess) -> None:
    """Imports exist, only the page's module fetches, and no text is parsed as HTML."""
    for name, text in STATIC.items():
        for module in re.findall(r"""(?:from|import)\s*\(?\s*"([^"]+)"\)?""", text):
            if module.startswith("./"):
                assert module[2:] in STATIC, (name, module)
            else:
                assert server.get(module).status_code == 200, (name, module)
        assert not re.search(r"\bfetch\(|XMLHttpRequest|EventSource|WebSocket", text), name
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text
        ), name
