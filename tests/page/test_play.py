"""The panel "Play an attack" on the page of a demo."""

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.cli.practice.conftest import token_of
from tests.page.conftest import Visit, Visitor, check_looks, expect

from ldprecover_attacker import ATTACKS
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


@pytest.fixture
def visitor(demo: PracticeServer, visit: Visit) -> Visitor:
    return visit(demo.url)


@pytest.fixture
def page(demo: PracticeServer, visitor: Visitor) -> "Page":
    return visitor.open(demo.link.removeprefix(f"{demo.url}/"))


def panel(page: "Page") -> "Locator":
    return page.get_by_role("region", name="Play an attack")


def test_play_leads_to_its_round_and_verdict(
    demo: PracticeServer, plays: Plays, visitor: Visitor, page: "Page"
) -> None:
    score = plays.state("demo")["score"]
    expect(panel(page).locator(".lead")).to_have_text(score["headline"])
    lesson = page.get_by_role("region", name="The lesson")
    expect(lesson).to_contain_text("158 fake reports raise ")
    expect(lesson).to_contain_text(f"{score['best']} takes them back to ")
    expect(lesson.get_by_text("▲ raised").locator("visible=true")).to_have_count(3)
    expect(lesson.get_by_role("img")).to_have_count(8)
    assert "attacked" in str(lesson.get_by_role("img").last.get_attribute("aria-label"))
    expect(panel(page).get_by_label("Malicious reports, % of all")).to_have_value("5")
    page.get_by_label("Malicious reports, % of all").fill("20")
    page.get_by_label("Targets").fill("2")
    panel(page).get_by_role("button", name="Play it").click()
    page.wait_for_url(lambda url: "/rounds/grr-" in url)
    expect(panel(page).locator(".lead")).to_contain_text("than projection alone")
    expect(panel(page)).to_contain_text("3,000 genuine and 750 malicious users reported.")
    expect(panel(page).get_by_role("listitem").last).to_contain_text("The targets: ")
    expect(page.locator("figure .legend").first).to_contain_text("truth")
    page.get_by_text("Methods and tests").click()
    expect(page.get_by_text("102 items read.")).to_be_visible()
    expect(page.get_by_role("table", name="Scores against the truth")).to_be_visible()
    check_looks(page)
    expect(page.get_by_role("button", name="Key: admin")).to_be_visible()
    requests = " ".join(visitor.requests)
    assert (token_of(demo) in requests, demo.key in requests) == (False, False)


def test_attacks_have_their_sentence_and_fields(plays: Plays, page: "Page") -> None:
    attack = page.get_by_role("combobox", name="Attack", exact=True)
    attacks = plays.state("demo")["attacks"]
    assert (list(attacks), attacks["mla"]["targeted"]) == (sorted(ATTACKS), False)
    for name, words in attacks.items():
        attack.select_option(name)
        expect(attack).to_have_accessible_description(words["sentence"])
        expect(page.get_by_label("Targets")).to_be_visible(visible=words["targeted"])


def test_invalid_play_shows_why(visitor: Visitor, page: "Page") -> None:
    visitor.expects = {422}
    page.get_by_role("combobox", name="Attack", exact=True).select_option("apa2")
    page.get_by_role("button", name="Play it").click()
    expect(panel(page).get_by_role("alert")).to_contain_text("apa2")


def test_panel_needs_the_token(visitor: Visitor) -> None:
    visitor.expects = {403}
    page = visitor.open("#/rounds/demo?demo=wrong")
    expect(page.locator(".tile").first).to_contain_text("3,158")
    page.wait_for_load_state("networkidle")
    assert panel(page).count() == 0
