"""The panel "Play an attack" on the page of a demo."""

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.cli.practice.conftest import token_of
from tests.conftest import ServerProcess
from tests.page.conftest import Visit, Visitor, check_looks, expect

from ldprecover_cli.practice.plays import Plays
from ldprecover_cli.practice.server import PracticeServer, practice_server
from ldprecover_experiments import Demo, DemoSettings

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


@pytest.fixture(scope="module")
def demo() -> Iterator[PracticeServer]:
    with practice_server("demo") as server:
        yield server


@pytest.fixture(scope="module", autouse=True)
def plays(demo: PracticeServer) -> Iterator[Plays]:
    """The plays of a demo's server after the demo."""
    settings = DemoSettings(users=3000, protocol="grr", epsilon=3.0, targets=3)
    with closing(Plays(demo, settings)) as plays:
        plays.finish("demo", Demo(settings).on(demo.url, demo.key))
        yield plays


def panel(page: "Page") -> "Locator":
    return page.get_by_role("region", name="Play an attack")


def test_play_leads_to_its_round_and_verdict(
    demo: PracticeServer, plays: Plays, visit: Visit
) -> None:
    visitor = visit(demo.url)
    page = visitor.open(demo.link.removeprefix(f"{demo.url}/"))
    score = plays.state("demo")["score"]
    expect(panel(page).locator(".lead")).to_have_text(score["headline"])
    expect(panel(page).get_by_label("Fake reports, % of all")).to_have_value("5")
    page.get_by_label("Fake reports, % of all").fill("20")
    page.get_by_label("Targets").fill("2")
    panel(page).get_by_role("button", name="Play it").click()
    page.wait_for_url(lambda url: "/rounds/grr-" in url)
    expect(panel(page).locator(".lead")).to_contain_text("than projection alone", timeout=60_000)
    state = plays.state(page.locator("h1").inner_text())
    assert (state["settings"]["beta"], state["settings"]["targets"]) == (0.2, 2)
    details = panel(page).get_by_role("listitem")
    expect(details).to_have_count(len(state["score"]["details"]) + 1)
    expect(details.last).to_contain_text("The targets: ")
    expect(page.locator("figure .legend").first).to_contain_text("truth")
    page.get_by_text("Methods and tests").click()
    expect(page.get_by_text("102 items read.")).to_be_visible()
    expect(page.get_by_role("table", name="Scores against the truth")).to_be_visible()
    check_looks(page)
    expect(page.get_by_role("button", name="Key: admin")).to_be_visible()
    secrets = (token_of(demo), demo.key)
    assert not any(secret in url for url in visitor.requests for secret in secrets)


def test_each_attack_has_a_sentence_and_its_fields(
    demo: PracticeServer, plays: Plays, visit: Visit
) -> None:
    page = visit(demo.url).open(demo.link.removeprefix(f"{demo.url}/"))
    attack = page.get_by_role("combobox", name="Attack", exact=True)
    for name, words in plays.state("demo")["attacks"].items():
        attack.select_option(name)
        expect(attack).to_have_accessible_description(words["sentence"])
        expect(page.get_by_label("Targets")).to_be_visible(visible=words["targeted"])


def test_invalid_play_shows_why(demo: PracticeServer, visit: Visit) -> None:
    visitor = visit(demo.url)
    visitor.expects = {422}
    page = visitor.open(demo.link.removeprefix(f"{demo.url}/"))
    page.get_by_role("combobox", name="Attack", exact=True).select_option("apa2")
    page.get_by_role("button", name="Play it").click()
    expect(panel(page).get_by_role("alert")).to_contain_text("apa2")


def test_panel_needs_the_token(demo: PracticeServer, visit: Visit) -> None:
    visitor = visit(demo.url)
    visitor.expects = {403}
    page = visitor.open("#/rounds/demo?demo=wrong")
    expect(page.locator(".tile").first).to_contain_text("3,158")
    page.wait_for_load_state("networkidle")
    assert panel(page).count() == 0


def test_ordinary_server_has_no_panel(server: ServerProcess, visitor: Visitor) -> None:
    name = server.open_round()["name"]
    visitor.expects = {404}
    page = visitor.open(f"#/rounds/{name}?demo=token")
    page.get_by_text("This round has no reports yet").wait_for()
    page.wait_for_load_state("networkidle")
    assert panel(page).count() == 0
    assert any("/truth" in url for url in visitor.requests)
