"""The list of rounds, and the forms that open, close and delete them."""

import re

import pytest
from tests.conftest import ADMIN_KEY, ServerProcess
from tests.page.conftest import Visitor, expect
from tests.page.rounds import poisoned


def give_key(page, key: str = ADMIN_KEY) -> None:
    box = page.get_by_role("dialog", name="Access key")
    box.get_by_label("Key").fill(key)
    box.get_by_role("button", name="Use it").click()


def test_rounds_are_listed_with_alarms(visitor: Visitor, server: ServerProcess) -> None:
    opened = poisoned(server, series="weekly")
    page = visitor.open("#/rounds")
    row = page.get_by_role("row").filter(
        has=page.get_by_role("link", name=opened["name"], exact=True)
    )
    row.get_by_text("support-size").wait_for()
    cells = row.get_by_role("cell")
    assert cells.all_inner_texts()[:5] == ["open", "OUE", "3", "24", "4,400"]
    row.get_by_role("link", name="weekly").click()
    page.get_by_role("heading", name="Series weekly").wait_for()


def test_round_is_opened_closed_deleted(visitor: Visitor, server: ServerProcess) -> None:
    visitor.expects = {401, 409}
    page = visitor.open("#/open")
    page.get_by_label("Name").fill("made-here")
    page.get_by_label("Protocol", exact=True).select_option("oue")
    page.get_by_label("Items, one label a line").fill("tea\ncoffee\nwater\n")
    page.get_by_role("button", name="Open the round").click()
    give_key(page, "a-key-that-nobody-gave-out")
    refused = page.get_by_role("alert")
    refused.wait_for()
    assert "key" in refused.inner_text()
    page.get_by_role("button", name="Key: in use").click()
    give_key(page)
    page.get_by_role("button", name="Open the round").click()
    page.get_by_role("heading", name="made-here").wait_for()
    assert "#/rounds/made-here" in page.url
    page.get_by_text("There are no reports yet").wait_for()

    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Close the round").click()
    page.get_by_text("closed", exact=True).wait_for()
    assert server.get("/rounds/made-here").json()["state"] == "closed"

    page.get_by_role("button", name="Delete").click()
    box = page.get_by_role("dialog")
    box.get_by_label("To confirm").fill("made-her")
    box.get_by_role("button", name="Delete round and reports").click()
    assert "not made-here" in box.get_by_role("alert").inner_text()
    assert server.get("/rounds/made-here").status_code == 200
    box.get_by_label("To confirm").fill("made-here")
    box.get_by_role("button", name="Delete round and reports").click()
    page.get_by_role("heading", name="Rounds", exact=True).wait_for()
    assert server.get("/rounds/made-here").status_code == 404


def test_form_shows_server_errors(visitor: Visitor, server: ServerProcess) -> None:
    visitor.expects = {409, 422}
    name = server.open_round()["name"]
    page = visitor.open("#/open")
    page.get_by_role("button", name="Key").click()
    give_key(page)
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Open the round").click()
    page.get_by_text(re.compile("items or domain_size")).wait_for()
    page.get_by_label("Number of items", exact=True).fill("4")
    page.get_by_role("button", name="Open the round").click()
    page.get_by_text(re.compile("name .*taken|taken", re.IGNORECASE)).wait_for()


def test_key_is_forgotten_with_page(visitor: Visitor) -> None:
    page = visitor.open("#/rounds")
    page.get_by_role("button", name="Key").click()
    give_key(page)
    page.get_by_role("button", name="Key: in use").wait_for()
    storage = page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    )
    assert ADMIN_KEY not in storage
    page.reload()
    page.get_by_role("button", name="Key", exact=True).wait_for()


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
    retention, protocol = page.get_by_label("Retention"), page.get_by_label("Protocol", exact=True)
    page.get_by_label("Number of items", exact=True).fill("490")
    expect(retention).to_be_hidden()
    page.get_by_role("button", name="Use llh").click()
    expect(retention).to_be_visible()
    expect(retention).to_have_value("none")
    protocol.select_option("olh")
    expect(retention).to_have_value("forever")
    retention.fill("7d")
    page.get_by_role("button", name="Use llh").click()
    expect(protocol).to_have_value("llh")
    expect(retention).to_have_value("7d")


def test_form_advises_protocol(visitor: Visitor, server: ServerProcess) -> None:
    page = visitor.open("#/open")
    page.get_by_text("It needs the items").wait_for()
    page.get_by_label("Items, one label a line").fill("tea\ncoffee\nwater")
    page.get_by_label("Epsilon").fill("2")
    page.get_by_label("Users that you expect").fill("5000")
    table = page.get_by_role("region", name="Table of protocols")
    wish = {"domain_size": 3, "users": 5000, "epsilon": 2}
    first = server.get("/plan", params=wish).json()["protocols"][0]
    row = table.get_by_role("row").nth(1)
    expect(row).to_contain_text(f"{first['protocol'].upper()} take this")
    points = float(f"{100 * first['standard_error']:.3g}")
    expect(row).to_contain_text(f"{points:g} points")
    row.get_by_role("button", name=f"Use {first['protocol']}").click()
    expect(page.get_by_label("Protocol", exact=True)).to_have_value(first["protocol"])
    page.get_by_role("link", name="All of the plan").click()
    page.get_by_role("heading", name="Plan a round").wait_for()
    page.go_back()
    page.get_by_role("heading", name="Open a round").wait_for()
