"""The view of a series, and its row in the list of rounds."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
from tests.conftest import ServerProcess
from tests.page.conftest import Visitor, check_looks, expect
from tests.page.rounds import CITIES, verdict

from ldprecover import frequency_oracle
from ldprecover.protocols import wire

ROUNDS = 4
QUESTION = "Which city?"


def open_series(server: ServerProcess, name: str, n: int) -> list[dict[str, Any]]:
    """Open four rounds of 26 items, in whose last two the first item falls by 30 points."""
    rng = np.random.default_rng(2)
    settings = {"items": CITIES, "question": QUESTION, "series": name, "name": f"{name}-1"}
    rounds = [server.open_round("oue", 3.0, **settings)]
    oracle = frequency_oracle("oue", 3.0, len(CITIES))
    for number in range(1, ROUNDS + 1):
        if number > 1:
            path, body = f"/series/{name}/next", {"number": number}
            rounds.append(server.post(path, json=body, headers=server.admin).json())
        shares = np.full(len(CITIES), 0.3 / (len(CITIES) - 2))
        shares[:2] = (0.5, 0.2) if number < 3 else (0.2, 0.5)
        reports = oracle.perturb(rng.choice(len(CITIES), size=n, p=shares), rng)
        assert server.submit(rounds[-1]["id"], wire.pack(reports)).status_code == 202
    return rounds


def test_series_has_lines_verdicts_and_changes(visitor: Visitor, server: ServerProcess) -> None:
    """Its changes of 30 points have standard errors of 1.6: z is 18, where 3.1 is needed."""
    rounds = open_series(server, "cities", 3000)
    names = [each["name"] for each in rounds]
    top = [{"item": 0, "label": "Lagos", "estimate": 0.5}]
    verdicts = {
        name: verdict("near_certain" if name == names[1] else "none_seen", 0.1, top=top)
        for name in names
    }

    def add(body: Any) -> None:
        for round in body.get("rounds", []):
            round["verdict"] = verdicts.get(round["name"], round["verdict"])

    server.open_round(name="new-1", series="new")
    page = visitor.open("#/series/new")
    expect(page.locator(".lead")).to_have_text("No reports yet.")
    expect(page.get_by_text("What changed")).to_be_hidden()
    visitor.amend("**/rounds?**", add)
    page = visitor.open("#/rounds")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="cities", exact=True))
    expect(row).to_contain_text("Near certain attack in 1 of 4 rounds")
    expect(row).to_contain_text("3,000")
    expect(row.locator("svg.spark polyline")).to_have_count(1)
    row.get_by_role("link").click()
    expect(page.locator("header.title")).to_contain_text("Series of 4 rounds · OUE · ε = 3")
    expect(page.locator("header.title")).to_contain_text(QUESTION)
    strip = page.get_by_role("list", name="Verdicts of the rounds").get_by_role("link")
    expect(strip).to_have_text(["1 ●", "2 ▲", "3 ●", "4 ●"])
    expect(page.locator("main")).to_contain_text("Near certain attack in 2.")
    expect(page.locator(".lead")).to_contain_text("From round 3 to round 4: no change is proven.")
    page.get_by_label("Compared with round").fill("1")
    page.get_by_label("Compared with round").blur()
    expect(page.locator(".lead")).to_contain_text("From round 1 to round 4: ")
    expect(page.locator(".lead")).to_contain_text("Lagos fell by ")
    changed = page.get_by_role("region", name="Table: What changed").get_by_role("row")
    expect(changed).to_have_count(13)
    expect(changed.filter(has_text="Delhi")).to_contain_text("rose: between +")
    page.get_by_label("Rounds added up in a point").fill("2")
    page.get_by_label("Rounds added up in a point").blur()
    page.get_by_label("Compared with round").fill("")
    page.get_by_label("Compared with round").blur()
    expect(page.locator(".lead")).to_contain_text("From rounds 1, 2 to rounds 3, 4: ")
    page.wait_for_url("**/#/series/cities?window=2")
    page.get_by_role("button", name="Show more items").click()
    expect(changed).to_have_count(len(CITIES) + 1)
    expect(page.locator("figure canvas")).to_have_attribute("role", "img")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    path = Path(download.value.path())
    table = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
    assert len(table) == 1 + ROUNDS * len(CITIES)
    assert table[0] == ["number", "item", "frequency", "standard_error", "n", "attack"]
    sums = {int(number): int(n) for number, _, _, _, n, _ in table[1:]}
    assert sums == {1: 3000, 2: 6000, 3: 6000, 4: 6000}
    check_looks(page)
    strip.nth(1).click()
    expect(page.get_by_text("number 2 of the series cities")).to_be_visible()
