"""The drill in a real browser: form, score, map, and visitors without the token."""

import csv
import re
from collections.abc import Iterator
from importlib.resources import files
from itertools import product
from pathlib import Path

import pytest
from tests.conftest import ServerProcess
from tests.experiments.drill.conftest import DRILL_TOKEN, RunningDrill, running_drill
from tests.page.conftest import WIDTHS, Picture, Visit, Visitor, expect, overflow, serious

ADDRESS = f"#/drill?token={DRILL_TOKEN}"
STATIC = {
    path.name: path.read_text(encoding="utf-8")
    for path in (files("ldprecover_experiments") / "drill" / "static").iterdir()
    if isinstance(path, Path)
}


@pytest.fixture(scope="module")
def drill(server: ServerProcess) -> Iterator[RunningDrill]:
    """A drill in front of the server that all tests share."""
    with running_drill(server.url, server.admin_key, protocol="grr") as drill:
        yield drill


def test_drill_runs_from_form_to_score(
    drill: RunningDrill, visit: Visit, picture: Picture, tmp_path: Path
) -> None:
    visitor = visit(drill.url)
    shown = visitor.open(ADDRESS)
    shown.get_by_role("button", name="Run the drill").wait_for()
    assert DRILL_TOKEN not in shown.url
    assert not any(DRILL_TOKEN in url.partition("#")[0] for url in visitor.requests)
    assert shown.locator("nav a[aria-current=page]").inner_text() == "Drill"
    shown.get_by_role("combobox", name="Attack", exact=True).select_option("mga")
    shown.get_by_role("spinbutton", name="Targets", exact=True).fill("5")
    shown.get_by_text("Methods that recover").click()
    shown.get_by_label("rsn:").check()
    assert serious(shown) == []
    for name, width in WIDTHS.items():
        shown.set_viewport_size({"width": width, "height": 900})
        picture(shown, f"drill-form-{name}")
    shown.get_by_role("button", name="Run the drill").click()
    shown.get_by_role("heading", name="Score").wait_for(timeout=60_000)
    state = drill.http.get("/drill/run").json()
    message = shown.get_by_role("region", name="What came of it").inner_text()
    for row in state["result"]["rows"][1:]:
        assert f"{row['name']}: {row['says']}" in message
    rows = shown.locator("figure").first.locator("tbody tr")
    names = [
        "genuine",
        "poisoned",
        "projection alone",
        "ldprecover",
        "ldprecover, told the targets",
        "rsn",
    ]
    assert [
        text for text in rows.locator("td:first-child").all_inner_texts() if text in names
    ] == names
    certain = shown.get_by_role("region", name="What stays certain", exact=True)
    certificates = state["result"]["certificates"]
    for when, name in (("Before", "before"), ("After", "after")):
        sentence = certificates[name]["answers"][0]["sentence"]
        expect(certain).to_contain_text(f"{when} the attack: {sentence}")
    expect(certain).to_contain_text("After it, 102 of 102 true frequencies are within")
    expect(certain.get_by_role("row").last).to_contain_text("5 targets together")
    shown.get_by_text("Proven before and after the attack: the numbers").click()
    place = state["result"]["targets"][0]
    ends = [
        certificates[when][end][place]
        for when, end in product(("before", "after"), ("lower", "upper"))
    ]
    row = (
        shown.get_by_role("table", name="Proven before and after")
        .get_by_role("row")
        .filter(has_text=state["result"]["items"][place])
    )
    row.wait_for()
    cells = row.get_by_role("cell").all_inner_texts()[1:5]
    shares = [float(cell.removesuffix(" %")) / 100 for cell in cells]
    assert shares == pytest.approx(ends, abs=1e-4)
    with shown.expect_download() as download:
        shown.get_by_role("button", name="Truth as CSV").click()
    download.value.save_as(tmp_path / "truth.csv")
    with (tmp_path / "truth.csv").open(encoding="utf-8", newline="") as file:
        truth = list(csv.DictReader(file))
    assert [row["label"] for row in truth] == state["result"]["items"]
    assert [float(row["frequency"]) for row in truth] == state["result"]["columns"]["true"]
    for scheme in ("light", "dark"):
        shown.emulate_media(color_scheme=scheme)
        for name, width in WIDTHS.items():
            shown.set_viewport_size({"width": width, "height": 900})
            assert overflow(shown) <= 0, f"the page is wider than {width}"
            picture(shown, f"drill-score-{name}-{scheme}")
        assert serious(shown, scheme=scheme) == []
    shown.reload()
    shown.get_by_role("heading", name="Score").wait_for()  # the tab has kept the token
    shown.get_by_role("link", name=state["round"]).click()
    shown.get_by_label("Truth file").set_input_files(tmp_path / "truth.csv")
    shown.get_by_text("102 items read.").wait_for()
    shown.get_by_label("ldprecover", exact=True).check()
    scores = shown.get_by_role("region", name="Scores against the truth").get_by_role("row")
    expect(scores.filter(has_text="ldprecover")).to_have_count(1)
    mse = {row.split("\t")[0]: float(row.split("\t")[1]) for row in scores.all_inner_texts()[1:]}
    by_name = {row["name"]: row["mse"] for row in state["result"]["rows"]}
    assert mse["ldprecover"] == pytest.approx(by_name["ldprecover, told the targets"], rel=6e-3)
    assert mse["norm-sub"] == pytest.approx(by_name["projection alone"], rel=6e-3)


def test_map_of_attacks_is_drawn(drill: RunningDrill, visit: Visit, picture: Picture) -> None:
    visitor = visit(drill.url)
    shown = visitor.open(f"#/drill?what=map&token={DRILL_TOKEN}")
    shown.get_by_role("spinbutton", name="Genuine users").fill("500")
    shown.get_by_role("button", name="Draw the map").click()
    shown.get_by_role("heading", name="All attacks", exact=True).wait_for(timeout=60_000)
    state = drill.http.get("/drill/run").json()
    assert state["settings"]["users"] == 500
    shown.get_by_text("Times better than the projection alone: the numbers").click()
    attacks = shown.locator("figure tbody tr td:first-child").all_inner_texts()
    assert attacks == [row["attack"] for row in state["result"]["rows"]]
    for scheme in ("light", "dark"):
        shown.emulate_media(color_scheme=scheme)
        assert serious(shown, scheme=scheme) == []
        for name, width in WIDTHS.items():
            shown.set_viewport_size({"width": width, "height": 900})
            picture(shown, f"drill-map-{name}-{scheme}")


def test_button_cancels_drill(drill: RunningDrill, visit: Visit) -> None:
    shown = visit(drill.url).open(ADDRESS)
    shown.get_by_role("button", name="All attacks").click()
    shown.get_by_role("spinbutton", name="Genuine users").fill("20000")
    shown.get_by_label("Trials of each attack").fill("10")
    shown.get_by_role("button", name="Draw the map").press("Enter")
    shown.get_by_role("button", name="Cancel").press("Enter")
    shown.get_by_text("The drill was cancelled").wait_for(timeout=60_000)
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
