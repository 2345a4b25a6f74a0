"""The list of rounds, and the forms that open, close and delete them."""

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import ADMIN_KEY, ServerProcess
from tests.page.conftest import Visitor, expect, serious
from tests.page.rounds import CITIES, MARKUP, poisoned, report, verdict

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page, Route


def give_key(page: "Page", key: str = ADMIN_KEY) -> None:
    box = page.get_by_role("dialog", name="Access key")
    box.get_by_label("Key").fill(key)
    box.get_by_role("button", name="Use it").click()


def card(page: "Page", name: str) -> "Locator":
    """Return a round's card in the list."""
    return page.locator(".round").filter(has=page.get_by_role("link", name=name, exact=True))


def first_item(label: str, estimate: float, item: int = 0) -> dict[str, Any]:
    """Return one of the first items of a verdict."""
    return {"item": item, "label": label, "estimate": estimate}


def add_verdicts(visitor: Visitor, verdicts: dict[str, Any]) -> None:
    """Give rounds of the list verdicts, by name."""

    def change(body: Any) -> None:
        for round in body["rounds"]:
            round["verdict"] = verdicts.get(round["name"], round["verdict"])

    visitor.amend("**/rounds?**", change)


def test_rounds_are_listed_with_verdicts(visitor: Visitor, server: ServerProcess) -> None:
    """A list takes no analysis, and reads the counts of rows in view; each colour has its text."""
    opened = poisoned(server)
    few = server.open_round(items=CITIES, epsilon=1.0)
    report(server, few, 10)
    words = {
        "none_seen": "No visible attack seen",
        "cannot_be_seen": "Attacks cannot be seen",
        "possible": "Attack possible, at least 8\u00a0% malicious",
        "near_certain": "Near certain attack, at least 9.8\u00a0% malicious",
    }
    names = {attack: server.open_round()["name"] for attack in words}
    top = [first_item(f"{MARKUP} {i}", 0.4 / (1 + i), i) for i in range(3)]
    verdicts = {name: verdict(attack, 0.08, raised=[0], top=top) for attack, name in names.items()}
    verdicts[names["near_certain"]]["least_malicious_share"] = 0.0987
    add_verdicts(visitor, {**verdicts, opened["name"]: None})
    page = visitor.open("#/rounds")
    for attack, name in names.items():
        expect(card(page, name)).to_contain_text(words[attack])
        is_seen = attack in ("possible", "near_certain")
        expect(card(page, name).get_by_text("% malicious")).to_have_count(int(is_seen))
        expect(card(page, name)).to_contain_text(f"{MARKUP} 0 40\u00a0%, raised by fake reports")
    expect(card(page, opened["name"])).to_contain_text("4,400")
    expect(card(page, opened["name"])).to_contain_text("open since")
    expect(card(page, opened["name"]).locator(".top")).to_contain_text(re.compile(r"Lagos \d+\s%"))
    expect(card(page, few["name"]).locator(".top")).to_have_text("Too few reports to rank")
    reads = [url for url in visitor.requests if url.endswith(f"{opened['id']}/frequencies")]
    assert len(reads) == 1
    assert {url.rpartition("/")[2].partition("?")[0] for url in visitor.requests} & {
        "alarms",
        "recover",
        "stats",
    } == set()
    card(page, opened["name"]).click(position={"x": 400, "y": 12})
    page.get_by_role("heading", name=opened["name"]).wait_for()


def test_no_item_of_a_few_reports_has_more_than_all_users(
    visitor: Visitor, server: ServerProcess
) -> None:
    opened = server.open_round("grr", epsilon=0.5)
    for _ in range(3):
        assert server.post(f"/rounds/{opened['id']}/reports", json={"reports": [2]}).is_success
    assert max(server.get(f"/rounds/{opened['id']}/frequencies").json()["frequencies"]) > 1
    page = visitor.open("#/rounds")
    expect(card(page, opened["name"]).locator(".top")).to_have_text("Too few reports to rank")


def test_label_of_other_direction_keeps_the_numbers_apart(
    visitor: Visitor, server: ServerProcess
) -> None:
    """Neither Hebrew nor a character that overrides the direction moves the share."""
    hebrew, disguised = "שלום", "\u202eerehwyna %99"
    names = {server.open_round()["name"]: label for label in (hebrew, disguised)}
    leaders = {name: [first_item(label, 0.91)] for name, label in names.items()}
    add_verdicts(
        visitor, {name: verdict("possible", 0.08, top=top) for name, top in leaders.items()}
    )
    page = visitor.open("#/rounds")
    for name, label in names.items():
        leader = card(page, name).locator(".top")
        expect(leader).to_contain_text(label.strip("\u202e") + "\u2069 91\u00a0%")
        boxes = leader.evaluate(
            """(span) => [...span.childNodes].map((node) => {
                const range = document.createRange();
                range.selectNodeContents(node);
                return range.getBoundingClientRect().left;
            })"""
        )
        assert boxes == sorted(boxes)
        assert "\u202e" not in leader.inner_text()


def act(page: "Page", name: str, action: str) -> None:
    """Choose an action in the menu of a round."""
    page.get_by_role("button", name=f"Actions on {name}").press("Enter")
    page.locator(".popup").get_by_role("button", name=action).press("Enter")


def test_round_is_opened_closed_deleted(visitor: Visitor, server: ServerProcess) -> None:
    visitor.expects = {401}
    page = visitor.open("#/open")
    assert page.get_by_label("Protocol", exact=True).input_value() == "auto"
    page.get_by_label("Name").fill("made-here")
    page.get_by_label("Items, one a line").fill("tea\ncoffee\nwater\n")
    page.get_by_role("button", name="Open the round").click()
    give_key(page, "a-key-that-nobody-gave-out")
    box = page.get_by_role("dialog", name="Access key")
    box.get_by_text("The server does not know this key.").wait_for()
    give_key(page)
    page.get_by_role("heading", name="made-here").wait_for()
    assert "#/rounds/made-here" in page.url
    page.get_by_text("This round has no reports yet").wait_for()
    wish = {"domain_size": 3, "users": 10_000, "epsilon": 1}
    best = server.get("/plan", params=wish).json()["protocols"][0]["protocol"]
    assert server.get("/rounds/made-here").json()["protocol"] == best

    act(page, "made-here", "Close the round")
    page.get_by_role("dialog").get_by_role("button", name="Close the round").click()
    page.locator("header.title").get_by_text("closed").wait_for()
    assert server.get("/rounds/made-here").json()["state"] == "closed"

    act(page, "made-here", "Delete the round")
    box = page.get_by_role("dialog")
    box.get_by_label("To confirm").fill("made-her")
    box.get_by_role("button", name="Delete round and reports").click()
    assert "not made-here" in box.get_by_role("alert").inner_text()
    assert server.get("/rounds/made-here").status_code == 200
    box.get_by_label("To confirm").fill("made-here")
    box.get_by_role("button", name="Delete round and reports").click()
    page.get_by_role("heading", name="Rounds", exact=True).wait_for()
    assert server.get("/rounds/made-here").status_code == 404


def test_fresh_round_says_how_to_report(visitor: Visitor, server: ServerProcess) -> None:
    """The commands name this round and server, and the survey reports to it.

    A label with a dash comes last, behind "--", so that it is no option.
    """
    name = server.open_round("oue", items=["it's tea", "coffee"])["name"]
    page = visitor.open(f"#/rounds/{name}")
    page.get_by_role("img", name="QR code").wait_for()
    text = page.locator("main").inner_text()
    assert f"ldprecover sim users {name} --users 5000 --url {server.url}" in text
    assert f"ldprecover send value 'it'\\''s tea' {name} --url {server.url}" in text
    assert f'Reporter("{server.url}", "{name}").report("it\'s tea")' in text
    body = re.search(r"-d '(.*)'", text)
    assert body
    answer = server.post(f"/rounds/{name}/reports", json=json.loads(body[1]))
    assert answer.status_code == 202, "what is shown for curl is a report"
    address = page.get_by_role("link", name="Open the survey").get_attribute("href")
    assert address == f"{server.url}/page/survey.html?round={name}"
    name = server.open_round("oue", 2.5, items=["-5 to 0", "-x"], access="ticket")["name"]
    page = visitor.open(f"#/rounds/{name}")
    page.get_by_role("img", name="QR code").wait_for()
    text = page.locator("main").inner_text()
    assert f"ldprecover sim users {name} --tickets tickets.txt --url {server.url}" in text
    ticket = "--ticket TICKET --max-epsilon 2.5"
    assert f"value --url {server.url} {ticket} -- '-5 to 0' {name}\n" in text
    assert f'"{name}", ticket="TICKET", max_epsilon=2.5).report("-5 to 0")' in text
    assert "curl" not in text


def test_closed_round_without_reports_offers_nothing(
    visitor: Visitor, server: ServerProcess
) -> None:
    """In its own view, without a reload, and in the list."""
    name = server.open_round()["name"]
    page = visitor.open(f"#/rounds/{name}")
    page.get_by_role("img", name="QR code").wait_for()
    act(page, name, "Close the round")
    give_key(page)
    page.get_by_role("dialog").get_by_role("button", name="Close the round").click()
    for _ in range(2):
        page.get_by_text("This round was closed without reports.").wait_for()
        assert page.get_by_role("link", name="Open the survey").count() == 0
        assert page.locator("main pre").count() == 0
        page.reload()
    page = visitor.open("#/rounds")
    expect(card(page, name)).to_contain_text("Closed without reports")
    expect(card(page, name)).not_to_contain_text("No reports yet")


def test_title_and_question_are_shown(visitor: Visitor, server: ServerProcess) -> None:
    texts: dict[str, Any] = {"title": "Lunch", "question": "Which <b>soup</b>?"}
    name = server.open_round(items=["pea", "leek"], **texts)["name"]
    expect(card(visitor.open("#/rounds"), name)).to_contain_text("Lunch: Which <b>soup</b>?")
    page = visitor.open(f"#/rounds/{name}")
    page.get_by_text("Lunch: Which <b>soup</b>?").wait_for()


def test_survey_of_the_server_reports(
    new_visitor: Callable[..., Visitor], server: ServerProcess
) -> None:
    """It runs under the page's policy."""
    opened = server.open_round("grr", items=["tea", "coffee"])
    visitor = new_visitor(server.url)
    page = visitor.open(f"page/survey.html?round={opened['name']}")
    page.get_by_label("coffee").check()
    page.get_by_role("button", name="Send").click()
    page.get_by_text("Thank you: your answer is counted.").wait_for()
    assert server.get(f"/rounds/{opened['id']}").json()["n"] == 1


def test_empty_server_offers_a_sample_round(
    new_visitor: Callable[..., Visitor], tmp_path: Path
) -> None:
    process = ServerProcess(tmp_path, kernels="numpy", analyses=1)
    with contextlib.closing(process):
        process.start()
        visitor = new_visitor(process.url)
        visitor.expects = {401}
        visitor.open("#/rounds?key=of-before").get_by_text("the key of this link").wait_for()
        page = visitor.page
        page.keyboard.press("Escape")
        page.evaluate(f"location.hash = '#/rounds?key={ADMIN_KEY}'")  # without a reload
        page.get_by_role("button", name="Key: admin").wait_for()
        page.get_by_text("This server has no rounds yet.").wait_for()
        assert "key" not in page.url
        page.get_by_text("ldprecover demo", exact=True).wait_for()
        assert serious(page) == []
        page.get_by_role("button", name="Open a sample round").click()
        lead = page.locator(".lead").filter(has_text="Near certain attack")
        expect(lead).to_contain_text("raise dumplings; pancakes and pie")
        page.goto("about:blank")  # which polls no more when the server is gone


def test_form_shows_server_errors(visitor: Visitor, server: ServerProcess) -> None:
    visitor.expects = {409, 422}
    name = server.open_round()["name"]
    page = visitor.open("#/open")
    page.get_by_role("button", name="Enter key").click()
    give_key(page)
    page.get_by_role("dialog").wait_for(state="detached")
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Open the round").click()
    page.get_by_text("A round needs items").wait_for()
    page.get_by_label("Or how many items", exact=True).fill("4")
    expect(page.get_by_text("A round needs items")).to_have_count(0)
    page.get_by_role("button", name="Open the round").click()
    page.get_by_text(re.compile("name .*taken|taken", re.IGNORECASE)).wait_for()


def test_key_is_forgotten_with_page(visitor: Visitor) -> None:
    page = visitor.open("#/rounds")
    page.get_by_role("button", name="Enter key").click()
    give_key(page)
    page.get_by_role("button", name="Key: admin").wait_for()
    storage = page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    )
    assert ADMIN_KEY not in storage
    page.reload()
    page.get_by_role("button", name="Enter key").wait_for()


def test_forgotten_key_takes_the_estimates_away(visitor: Visitor, server: ServerProcess) -> None:
    """No request that waits is sent without it."""
    for _ in range(3):
        report(server, server.open_round(read_access="key"), 10)
    name = server.open_round(read_access="key")["name"]
    verdicts = {name: verdict("none_seen", 0, top=[first_item("secret", 0.4)])}
    add_verdicts(visitor, verdicts)
    waiting: list[Route] = []
    visitor.context.route("**/frequencies", lambda route: waiting.append(route))
    page = visitor.open("#/rounds")
    page.get_by_role("button", name="Enter key").click()
    give_key(page)
    expect(card(page, name).locator(".top")).to_contain_text("secret")
    verdicts.clear()  # without a key the server shows none
    page.get_by_role("button", name="Key: admin").click()
    page.get_by_role("button", name="Forget the key").click()
    expect(card(page, name).locator(".top")).to_be_empty()
    visitor.context.unroute("**/frequencies")
    for route in waiting:
        route.continue_()
    with page.expect_response("**/rounds?**"):
        pass


def test_dead_server_shows_message(visitor: Visitor) -> None:
    visitor.expects = {0}
    visitor.page.clock.install()
    page = visitor.open("#/rounds")
    page.get_by_role("heading", name="Rounds", exact=True).wait_for()
    visitor.context.route("**/rounds?**", lambda route: route.abort())
    page.clock.fast_forward(10_000)
    page.get_by_text("The server cannot be reached").wait_for()
    visitor.context.unroute("**/rounds?**")
    page.clock.fast_forward(10_000)
    page.get_by_text("The server cannot be reached").wait_for(state="hidden")


@pytest.mark.parametrize("path", ["#/rounds/nothing", "#/rounds/a%2Fb", "#/rounds/%ff"])
def test_missing_round_shows_message(visitor: Visitor, path: str) -> None:
    visitor.expects = {404, 405}
    page = visitor.open(path)
    assert page.get_by_role("alert").inner_text()
    page.get_by_role("link", name="All rounds").click()
    page.get_by_role("heading", name="Rounds", exact=True).wait_for()


def test_form_proposes_retention_of_protocol(visitor: Visitor) -> None:
    page = visitor.open("#/open")
    retention, protocol = (
        page.get_by_label("Retention of reports"),
        page.get_by_label("Protocol", exact=True),
    )
    page.get_by_label("Or how many items", exact=True).fill("490")
    expect(retention).to_be_hidden()
    page.get_by_role("button", name="Use llh").click()
    expect(retention).to_be_visible()
    expect(retention).to_have_value("none")
    protocol.select_option("olh")
    expect(retention).to_have_value("forever")
    retention.select_option("none")
    protocol.select_option("oue")
    expect(retention).to_have_value("none")


def test_form_advises_protocol(visitor: Visitor, server: ServerProcess) -> None:
    page = visitor.open("#/open")
    page.get_by_text("the advice on protocols stands here").wait_for()
    page.get_by_label("Items, one a line").fill("te\u0301a\ncoffee\nt\u00e9a")
    page.get_by_text("Twice: t\u00e9a").wait_for()
    page.get_by_label("Items, one a line").fill("tea\ncoffee\nwater")
    page.get_by_label("Epsilon").fill("2")
    page.get_by_label("Users that you expect").fill("5000")
    table = page.get_by_role("region", name="Table: Protocols")
    wish = {"domain_size": 3, "users": 5000, "epsilon": 2}
    first = server.get("/plan", params=wish).json()["protocols"][0]
    row = table.get_by_role("row").nth(1)
    expect(row).to_contain_text(f"{first['protocol'].upper()} recommended")
    expect(page.locator(".lead")).to_contain_text(f"auto takes {first['protocol'].upper()}")
    row.get_by_role("button", name=f"Use {first['protocol']}").click()
    expect(page.get_by_label("Protocol", exact=True)).to_have_value(first["protocol"])
    page.get_by_role("link", name="All of the plan").click()
    page.get_by_role("heading", name="Plan a round").wait_for()
    page.go_back()
    page.get_by_role("heading", name="Open a round").wait_for()
