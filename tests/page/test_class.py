"""A class: the teacher's panel on this machine, and phones on the network over plain http."""

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from tests.cli.practice.conftest import ROUND
from tests.page.conftest import Visitor, check_looks, expect, overflow, serious

from ldprecover_cli.practice.lesson import Lesson
from ldprecover_cli.practice.network import network_address
from ldprecover_cli.practice.server import PracticeServer, practice_server
from ldprecover_client import Client, submit_reports

CAR = "by car".ljust(300, "x")  # as long as a label may be


@pytest.fixture
def server() -> Iterator[PracticeServer]:
    address = network_address()
    if address is None:
        pytest.skip("this machine has no network")
    with practice_server("class", practice=True, address=address) as server:
        Lesson(server, ROUND.model_copy(update={"items": ["on foot", CAR]}))
        yield server


def test_phone_answers_and_the_teacher_attacks_and_recovers(
    server: PracticeServer, new_visitor: Callable[..., Visitor]
) -> None:
    page = new_visitor(server.url).open(server.link.removeprefix(f"{server.url}/"))
    panel = page.get_by_role("region", name="Class")
    expect(panel).to_contain_text("0 reports")
    phone = new_visitor(server.public)
    survey = phone.open("", width=390)
    assert survey.evaluate("isSecureContext") is False
    expect(survey.get_by_text("others on this network")).to_be_visible()
    survey.get_by_label("on foot").check()
    survey.get_by_role("button", name="Send").click()
    expect(survey.get_by_role("status")).to_contain_text("Thank you")
    expect(panel).to_contain_text("1 report")
    assert (overflow(survey), serious(survey)) == (0, [])
    faking = phone.open("page/fake.html", width=390)
    faking.get_by_role("button", name=CAR).click()
    expect(faking.get_by_role("status")).to_have_text(f"Sent: a fake report that raises “{CAR}”.")
    assert (overflow(faking), serious(faking)) == (0, [])
    for _ in range(6):
        submit_reports(server.url, "class", np.zeros(1, "<u4"))
    panel.get_by_role("button", name="Attack").click()
    expect(panel.get_by_role("status")).to_have_text(
        "3 of the first 10 reports are known to be fake."
    )
    panel.get_by_text("The truth, by a show of hands").click()
    panel.get_by_role("spinbutton", name="on foot").fill("7")
    panel.get_by_role("button", name="Recover").click()
    expect(panel.get_by_role("status")).to_contain_text("Other cheats are not counted.")
    row = panel.get_by_role("img", name=re.compile(f"^{CAR}: told"))
    expect(row).to_have_attribute("aria-label", re.compile(r"recovered \d+.%$"))
    expect(panel.get_by_text(f"3 fake reports raise {CAR[:39]}… from")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollHeight") <= 1.5 * 900
    check_looks(page)

    with Client(server.url, key=server.key) as client:
        client.close_round("class")
    phone.expects = {409}
    faking.get_by_role("button", name=CAR).click()
    expect(faking.get_by_role("status")).to_contain_text("The round is closed")
