"""Forms in the list of rounds, and the view of one."""

from math import hypot
from pathlib import Path

from tests.conftest import ServerProcess
from tests.page.conftest import Visitor, expect
from tests.page.rounds import MARKUP, report
from tests.page.test_rounds import act, card, give_key

TABLE = f'\ufeff"Question","Item","As collected","Collected ±"\n"{MARKUP}0","\'=1",0.'


def open_form(server: ServerProcess, name: str, k: int) -> None:
    """Open a form of k questions, which clients draw."""
    rounds = [
        {"protocol": "grr", "epsilon": 1, "items": ["=1", MARKUP], "question": f"{MARKUP}{i}"}
        for i in range(k)
    ]
    new = {"name": name, "title": MARKUP, "assign": "client", "rounds": rounds}
    server.post("/forms", json=new, headers=server.admin).raise_for_status()


def test_form_is_one_card_and_has_a_view(visitor: Visitor, server: ServerProcess) -> None:
    """All its reports are in its first round, which is on the second page of the list."""
    oldest = server.open_round()
    open_form(server, "form", 3)
    open_form(server, "later", 50)
    open_form(server, "last", 48)
    report(server, server.get("/rounds/form-1").json(), 3000)
    page = visitor.open()
    expect(card(page, "form")).to_contain_text(f"{MARKUP}● Collecting3,000 reports, open")
    assert card(page, "form-2").count() == 0
    page.get_by_text("Older rounds").click()
    server.open_round()
    expect(card(page, oldest["name"])).to_contain_text("No reports")
    report(server, oldest, 5)
    expect(card(page, oldest["name"])).to_contain_text("5 reports")
    page.get_by_text("form", exact=True).click()
    plan = server.get("/plan?domain_size=2&epsilon=1&protocol=grr&users=1000").json()
    half = hypot(plan["accuracy"]["margin"], 1.96 * (2 / 3 / 4 / 1000) ** 0.5)
    margin = f"±\u00a0{100 * half:.2g}\u00a0points if all questions had equally many"
    expect(card(page, "form-1")).to_contain_text(margin)
    with page.expect_download() as download:
        page.get_by_text("Download CSV").click()
    assert Path(download.value.path()).read_text().startswith(TABLE)
    page.get_by_text("form-2").click()
    page.get_by_text("people answer it through its form").wait_for()
    assert page.get_by_text("⋯").count() == 0
    page.get_by_text("form form").click()
    act(page, "form", "Close the form")
    give_key(page)
    page.locator("dialog .main").click()
    expect(page.get_by_text("Open the survey")).to_be_hidden()
    act(page, "form", "Delete the form")
    page.get_by_label("To confirm").fill("form")
    page.locator("dialog .danger").click()
    card(page, "last").wait_for()
