"""Forms in the list of rounds, and the view of one."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ServerProcess
from tests.page.conftest import Visitor, check_looks, expect
from tests.page.rounds import MARKUP, report
from tests.page.test_rounds import act, card, give_key

from ldprecover.rounds.tickets import assigned_round
from ldprecover_cli import app as command

COLUMNS = '"question","item","recovered","frequency","standard_error"'
TABLE = f'\ufeff{COLUMNS}\n"{MARKUP}0","\'=1",0.'


def open_form(server: ServerProcess, name: str, k: int) -> None:
    """Open a form of k questions, which clients draw."""
    rounds = [
        {"protocol": "grr", "epsilon": 1, "items": ["=1", MARKUP], "question": f"{MARKUP}{i}"}
        for i in range(k)
    ]
    new = {"name": name, "title": MARKUP, "assign": "client", "rounds": rounds}
    server.post("/forms", json=new, headers=server.admin).raise_for_status()


def test_form_is_one_row_and_has_a_view(visitor: Visitor, server: ServerProcess) -> None:
    """All its reports are in its first round, which is on the second page of the list."""
    oldest = server.open_round()
    open_form(server, "form", 3)
    open_form(server, "later", 50)
    open_form(server, "last", 48)
    report(server, server.get("/rounds/form-1").json(), 3000)
    page = visitor.open()
    row = rf"{re.escape(MARKUP)}Form of 3 questions3,000(Collecting|Attacks cannot be seen)open"
    expect(card(page, "form")).to_contain_text(re.compile(row))  # with or without a first verdict
    assert card(page, "form-2").count() == 0
    page.get_by_text("Older rounds").click()
    server.open_round()
    expect(card(page, oldest["name"])).to_contain_text("0No reports yet")
    report(server, oldest, 5)
    expect(card(page, oldest["name"]).locator(".people")).to_have_text("5")
    page.get_by_text("form", exact=True).click()
    first, second = (page.locator(".questions > li").nth(i) for i in range(2))
    expect(first).to_contain_text("Most frequent: =1 6")
    expect(first).to_contain_text("The reports of this round could not show an attack.")
    expect(first.locator("canvas")).to_have_attribute("role", "img")
    expect(second).to_contain_text("No answers yet")
    expect(page.locator("main")).to_contain_text("5\u00a0% of all answers are then 14\u00a0% of")
    page.get_by_label("People asked").fill("4000")
    expect(page.locator("main")).to_contain_text("3,000 answers from 4,000 people (75\u00a0%)")
    check_looks(page)
    page.emulate_media(color_scheme="light")
    with page.expect_download() as download:
        page.get_by_text("Download CSV").click()
    assert Path(download.value.path()).read_text().startswith(TABLE)
    page.get_by_text("tests of form-2").click()
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


def test_form_of_tickets_says_once_that_nothing_is_ranked(
    visitor: Visitor, server: ServerProcess
) -> None:
    """Two reports a question; ε bounds what a ticket's hash tells, behind a "?"."""
    rounds = [
        {"protocol": "grr", "epsilon": 1, "items": ["a", "b"], "question": text} for text in "AB"
    ]
    new = {"name": "few", "assign": "ticket", "rounds": rounds}
    server.post("/forms", json=new, headers=server.admin).raise_for_status()
    form = server.get("/forms/few").json()
    tickets = server.post("/forms/few/tickets", json={"count": 9}, headers=server.admin).text
    for ticket in tickets.split():
        round = form["rounds"][assigned_round(ticket, 2)]["id"]
        headers = {"Authorization": f"Ticket {ticket}"}
        server.post(f"/rounds/{round}/reports", json={"reports": [0]}, headers=headers)
    page = visitor.open("#/forms/few?asked=12")
    expect(page.locator("main")).to_contain_text("9 answers from 12 tickets (75\u00a0%)")
    expect(page.get_by_text("Too few reports to rank").locator("visible=true")).to_have_count(1)
    assert "±" not in page.locator("main").inner_text()
    page.get_by_label("who can find an answer").click()
    expect(page.locator(".popup")).to_contain_text("salted with the ticket")


@pytest.mark.parametrize("tickets", ["", " --tickets 9"])
def test_preview_shows_each_question_and_sends_nothing(
    visitor: Visitor, server: ServerProcess, tmp_path: Path, capfd: Any, tickets: str
) -> None:
    file = tmp_path / "usage.toml"
    questions = (f'[[questions]]\nquestion = "{text}"\nitems = ["tea", "ä"]\n' for text in "AB")
    file.write_text("".join(questions))
    line = f"survey {file} --preview --url {server.url}{tickets}"
    assert command.run(line.split()) == 0
    link = capfd.readouterr().out.removeprefix("Preview: ").strip()
    page = visitor.open(link.removeprefix(f"{server.url}/"), width=390)
    page.get_by_role("heading", name="A").wait_for()
    page.get_by_text("Question 1 of 2: see the next.").click()
    page.get_by_role("heading", name="B").wait_for()
    page.get_by_label("ä").check()
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("status")).to_contain_text("your answer is counted")
    assert not [url for url in visitor.requests if url.startswith(f"{server.url}/forms")]
    assert not [url for url in visitor.requests if url.startswith(f"{server.url}/rounds")]
    assert page.evaluate("indexedDB.databases()") == []


def test_address_of_a_preview_that_was_cut_is_said_to_be(visitor: Visitor) -> None:
    page = visitor.open("page/survey.html#preview=eyJmb3J")
    page.get_by_text("The address of this preview is not whole: copy all of it.").wait_for()
