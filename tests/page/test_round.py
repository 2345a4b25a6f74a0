"""The live view of a round: verdict, chart, and its methods and tests."""

import csv
import io
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.conftest import ServerProcess
from tests.page.conftest import Visitor, expect
from tests.page.rounds import CITIES, MARKUP, poisoned, raised, report, shares, verdict
from tests.page.test_rounds import give_key

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page, Route

NUMBERS = "Share of users by item"
POLL = 7000
"""Milliseconds after which the page has asked for reports and for counts again."""


@pytest.fixture(scope="module")
def attacked(server: ServerProcess) -> dict[str, Any]:
    """A poisoned round after two clean ones over the same items."""
    for _ in range(2):
        clean = server.open_round("oue", items=CITIES, epsilon=3.0)
        report(server, clean, 3000)
        server.close_round(clean["id"]).raise_for_status()
    return poisoned(server)


def table(page: "Page") -> list[list[str]]:
    """Return the visible rows of the table of frequencies, which is opened."""
    if not page.get_by_role("table", name=NUMBERS).is_visible():
        page.get_by_text(f"{NUMBERS}: the numbers").click()
    rows = page.get_by_role("table", name=NUMBERS).get_by_role("row")
    rows.nth(1).wait_for()
    cells = page.evaluate(
        "[...document.querySelectorAll('.rows[role=table] .line')]"
        ".map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    return [list(map(str, row)) for row in cells]


def number(text: str) -> float:
    """Return the frequency that a cell shows as per cent."""
    return float(text.replace("\u2212", "-").removesuffix(" %")) / 100


def wait_for_recovery(page: "Page", name: str = "ldprecover") -> None:
    """Wait for the recovery that a round's page asks for, in the legend of its chart."""
    page.locator(".legend").first.get_by_text(name, exact=True).wait_for()


def tile(page: "Page", title: str) -> "Locator":
    """Return one of the four tiles at the head of a round."""
    term = page.locator("dt", has_text=re.compile(f"^{re.escape(title)}"))
    return page.locator(".tile").filter(has=term)


def test_verdict_comes_first(visitor: Visitor, server: ServerProcess) -> None:
    """In the first screen: what the reports say of an attack, what to do, and the chart."""
    attacked = raised(server)
    page = visitor.open(f"#/rounds/{attacked['name']}", height=800)
    expect(tile(page, "Are they honest?")).to_contain_text("Near certain attack")
    answer = server.post(f"/rounds/{attacked['id']}/recover", json={"method": "auto"}).json()
    beta = math.floor(1000 * answer["conclusions"]["beta"]) / 10  # of one digit before the point
    expect(tile(page, "Malicious reports")).to_contain_text(f"at least {beta:g}\u00a0%")
    expect(tile(page, "Reports")).to_contain_text("4,400")
    suspects = answer["conclusions"]["suspects"]
    assert {each["item"] for each in suspects} == {19, 20, 21}
    lead = page.locator(".lead")
    expect(lead).to_contain_text("Near certain attack: at least")
    for each in suspects:
        expect(lead).to_contain_text(each["label"])
    page.get_by_text("Use the best estimate, not the numbers as collected").wait_for()
    page.locator(".legend").get_by_text("raised by malicious reports").wait_for()
    chart = page.get_by_role("img", name=NUMBERS)
    box = chart.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 800
    rows = table(page)
    assert rows[0] == [
        *("Item", "Best estimate", "As collected", "Collected ±"),
        *("Certified ≥", "Certified ≤", "Change"),
    ]
    estimates = [float(row[1].removesuffix(" %")) for row in rows[1:]]
    assert estimates == sorted(estimates, reverse=True)
    assert not page.get_by_role("heading", name="Compare methods").is_visible()


def test_kept_verdict_is_shown_at_first(visitor: Visitor, attacked: dict[str, Any]) -> None:
    """The server has it with the round, and the recovery too."""
    fields: dict[str, Any] = {"attack_probability": 0.4, "least_malicious_share": 0.0123}
    fields["sentences"] = ["town <b>11</b> may be raised.", "Be careful."]
    stored = verdict("possible", 0.08, raised=[19, 0], **fields)
    visitor.amend(f"**/rounds/{attacked['name']}", lambda body: body.update(verdict=stored))
    with visitor.page.expect_request("**/recover") as recover:
        page = visitor.open(f"#/rounds/{attacked['name']}")
    assert "prefer" not in recover.value.headers
    expect(tile(page, "Are they honest?")).to_contain_text("Attack possible")
    expect(tile(page, "Are they honest?")).to_contain_text("probability 40 %")
    expect(tile(page, "Malicious reports")).to_contain_text("at least 8\u00a0%")
    expect(tile(page, "Malicious reports")).to_contain_text("at least 1.2\u00a0% proven")
    expect(page.locator(".lead")).to_have_text("town <b>11</b> may be raised.")
    page.get_by_text("Be careful.", exact=True).wait_for()


@pytest.mark.parametrize(
    ("least", "proven"), [(0.0004, "less than 0.1\u00a0% proven"), (0.0, "seen, not proven ?")]
)
def test_proven_share_is_in_words(visitor: Visitor, least: float, proven: str) -> None:
    """A share below 0.1 % is neither "about" nor "at least" that."""
    page = visitor.open()
    text = page.evaluate(
        """async (verdict) => {
          const { tiles } = await import("/page/js/round/verdict.js");
          const { help } = await import("/page/js/help.js");
          const shown = tiles(help);
          shown.set({ n: 9, state: "closed", verdict, bar: null, collectedBar: null });
          return shown.root.children[2].innerText;
        }""",
        verdict("near_certain", 0.0007, attack_probability=0.99, least_malicious_share=least),
    )
    assert proven in text.replace("\n", " ")


def test_proven_share_larger_than_the_estimate_leads(visitor: Visitor) -> None:
    """The tile and the sentence say what is proven, unless the reports make an attack certain."""
    page = visitor.open()
    tiles, cases = page.evaluate(
        """async (verdict) => {
          const { maliciousShare, strongest, tiles } = await import("/page/js/round/verdict.js");
          const tile = (verdict) => {
            const shown = tiles();
            shown.set({ n: 9, state: "closed", verdict, bar: null, collectedBar: null });
            return [...shown.root.children[2].children].map((each) => each.textContent);
          };
          const unproven = { ...verdict, attack: "possible", least_malicious_share: 0 };
          const certain = { ...verdict, attack_probability: 0.99, malicious_share: 0.5 };
          const conclusions = (attack) => ({ attack, sentences: [attack] });
          const first = (verdict, attack, alarms = null) =>
            strongest(verdict, { proven: "proof", conclusions: conclusions(attack), alarms })[0];
          return [
            [tile(verdict), tile(unproven), [maliciousShare(verdict), maliciousShare(unproven)]],
            [
              first(verdict, "possible"), first(certain, "near_certain"),
              first(unproven, "none_seen", ["alarm"]), first(unproven, "possible", ["alarm"]),
              first(unproven, "none_seen"),
            ],
          ];
        }""",
        verdict("near_certain", least_malicious_share=0.987),
    )
    assert tiles == [
        ["Malicious reports", "at least 98\u00a0%", "proven at 95\u00a0%"],
        ["Malicious reports", "\u2013", "none proven"],
        ["at least 98\u00a0%", None],
    ]
    assert cases == ["proof", "near_certain", "alarm", "possible", "none_seen"]


def test_attack_that_cannot_be_seen_is_bounded(visitor: Visitor, server: ServerProcess) -> None:
    """By the certificate of 5 % of malicious reports, which the page asks for then."""
    opened = server.open_round("grr", items=["tea", "coffee", "water"])
    report(server, opened, 20_000)
    page = visitor.open(f"#/rounds/{opened['name']}")
    expect(tile(page, "Are they honest?")).to_contain_text("Attacks cannot be seen")
    expect(tile(page, "Are they honest?")).not_to_contain_text("probability")
    expect(tile(page, "Are they honest?")).to_contain_text("unseen: up to 11 points")
    answer = server.post(
        f"/rounds/{opened['id']}/certificate", json={"malicious_share": 0.05}
    ).json()
    finding = "The reports of this round could not show an attack."
    expect(page.locator(".lead")).to_contain_text(finding)
    expect(page.locator(".lead")).to_contain_text(f"points. {answer['sentences']['bound']}")


def test_alarm_and_proof_outweigh_what_a_recovery_concludes(visitor: Visitor) -> None:
    """As in the verdicts of the server."""
    page = visitor.open()
    words = page.evaluate(
        """async () => {
          const { verdictOf } = await import("/page/js/round/verdict.js");
          const word = (attack, least, isAlarmed) =>
            verdictOf({ conclusions: attack && { attack, suspects: [] } }, least, isAlarmed).attack;
          return [
            word(null, null, false), word("cannot_be_seen", 0, false), word("none_seen", 0, false),
            word("none_seen", 0, true), word("cannot_be_seen", 0.0999, false),
            word("possible", 0, false), word("near_certain", 0, false), word(null, 0.1, false),
          ];
        }"""
    )
    assert words == [
        *("cannot_be_seen", "cannot_be_seen", "none_seen"),
        *("possible", "possible", "possible", "near_certain", "near_certain"),
    ]


@pytest.mark.parametrize("is_known", [False, True])
def test_large_round_is_tested_on_demand(
    visitor: Visitor, attacked: dict[str, Any], is_known: bool
) -> None:
    """Also if the server has a verdict of the fewer reports that the round had."""
    lead = "More than 2,000,000 reports are tested only when you ask."
    stored = None
    if is_known:
        lead = "No attack is seen."
        stored = verdict("none_seen", reports=1_900_000, sentences=[lead, "Be careful."])
    visitor.amend(f"**/rounds/{attacked['name']}", lambda body: body.update(verdict=stored))
    visitor.amend("**/frequencies", lambda body: body.update(n=2_000_001))
    page = visitor.open(f"#/rounds/{attacked['name']}")
    expect(page.locator(".lead")).to_have_text(lead)
    if is_known:
        expect(tile(page, "Reports")).to_contain_text("tested at 1,900,000")
    assert not any(url.endswith("/recover") for url in visitor.requests)
    page.get_by_role("button", name="Test the reports").press("Enter")
    expect(tile(page, "Are they honest?")).to_contain_text("Near certain attack")


def test_first_rows_have_the_raised_items(visitor: Visitor) -> None:
    """Raised items take the places of the last of the others, below a gap."""
    page = visitor.open()
    shown = page.evaluate(
        """async () => {
          const { fewRows } = await import("/page/js/round/items.js");
          const all = Int32Array.from({ length: 30 }, (_, i) => i);
          return [[25, 3, 20], [], [29, 28, 27, 26, 25, 24, 23, 22, 21]].map((raised) => {
            const { order, gap } = fewRows(all, raised);
            return [Array.from(order), gap];
          });
        }"""
    )
    assert shown[0] == [[*range(11), 20, 25], 11]
    assert shown[1] == [[*range(13)], None]
    assert shown[2] == [[*range(5), *range(22, 30)], 5], "at most eight"


def test_round_updates_while_reports_arrive(visitor: Visitor, server: ServerProcess) -> None:
    opened = server.open_round("grr", items=["tea", "coffee", "water"], epsilon=4.0)
    visitor.page.clock.install()
    page = visitor.open(f"#/rounds/{opened['name']}")
    page.get_by_text("This round has no reports yet").wait_for()
    report(server, opened, 600)
    page.clock.fast_forward(POLL)
    expect(tile(page, "Reports")).to_contain_text("600")
    assert len(table(page)) == 4
    report(server, opened, 900, seed=2)
    page.clock.fast_forward(POLL)
    expect(tile(page, "Reports")).to_contain_text("1,500")
    expect(page.locator("figure > p").first).to_contain_text("1,500 reports")
    frequencies = server.frequencies(opened["id"])["frequencies"]
    head, *rows = table(page)  # its columns become more when the best estimate comes
    collected = next(i for i, title in enumerate(head) if title.startswith("As collected"))
    assert {row[0]: number(row[collected]) for row in rows} == {
        label: pytest.approx(value, abs=1e-4)
        for label, value in zip(("tea", "coffee", "water"), frequencies, strict=True)
    }


def test_click_or_tick_makes_target(visitor: Visitor, attacked: dict[str, Any]) -> None:
    page = visitor.open(f"#/rounds/{attacked['name']}?with=ldprecover&sort=index")
    wait_for_recovery(page)
    table(page)
    chart = page.get_by_role("group", name="Items of the chart")
    with page.expect_request(
        lambda request: (
            request.url.endswith("/recover") and '"targets":[1]' in (request.post_data or "")
        )
    ):
        chart.locator("canvas").click(position={"x": 300, "y": 28 + 26 * 1.5})
    assert "targets=1" in page.url
    box = page.get_by_role("checkbox", name="Target: Delhi")
    expect(box).to_be_checked()
    other = page.get_by_role("checkbox", name="Target: São Paulo")
    other.focus()
    page.keyboard.press("Space")
    page.wait_for_url("**targets=1%2C2**")
    expect(other).to_be_checked()
    assert (
        page.evaluate("document.activeElement.getAttribute('aria-label')") == "Target: São Paulo"
    ), "the focus stays"
    page.get_by_text("LDPRecover*, malicious model paper").wait_for()
    page.get_by_role("button", name="Clear the targets").click()
    expect(box).not_to_be_checked()
    assert "targets" not in page.url


def test_eta_changes_recovery(
    visitor: Visitor, server: ServerProcess, attacked: dict[str, Any]
) -> None:
    page = visitor.open(
        f"#/rounds/{attacked['name']}?with=ldprecover&targets=19,20,21&model=exact&sort=index"
    )
    page.get_by_text("η = 0.2, 3 targets.").wait_for()
    slider = page.get_by_role("slider", name="eta")
    slider.focus()
    for _ in range(10):
        page.keyboard.press("ArrowLeft")
    page.get_by_text("η = 0.1, 3 targets.").wait_for()
    assert "eta=0.1&" in f"{page.url}&"
    wait_for_recovery(page, "best estimate")
    body = {"eta": 0.1, "targets": [19, 20, 21], "malicious_model": "exact"}
    recovered = server.post(f"/rounds/{attacked['id']}/recover", json=body).json()["recovered"]
    shown = [number(row[4]) for row in table(page)[1:]]
    assert shown == [pytest.approx(value, abs=1e-4) for value in recovered[: len(shown)]]
    address = page.locator(".addresses a[href*='ldprecover&eta=0.1']").first.inner_text()
    assert server.get(address.removeprefix(server.url)).json()["recovered"] == recovered


def test_methods_are_compared_with_progress(visitor: Visitor, attacked: dict[str, Any]) -> None:
    page = visitor.open(f"#/rounds/{attacked['name']}?with=ldprecover,norm-sub")
    page.get_by_role("article").filter(has_text="norm-sub").wait_for()
    for group in ("Recommended", "Needs targets", "Research"):
        page.get_by_role("heading", name=group, exact=True).wait_for()
    page.get_by_label("unmix", exact=True).check()
    card = page.get_by_role("article").filter(has=page.get_by_role("heading", name="unmix"))
    card.get_by_text("What it concludes").wait_for()
    assert "Near certain attack: at least" in card.inner_text()
    assert "with=ldprecover%2Cnorm-sub%2Cunmix" in page.url
    wait_for_recovery(page, "unmix")
    assert table(page)[0][4:7] == ["Ldprecover", "Norm-sub", "Unmix"]
    assert not page.get_by_label("detection", exact=True).is_enabled(), "it needs targets"


def test_noise_is_named_once(visitor: Visitor, server: ServerProcess) -> None:
    opened = server.open_round("oue", items=CITIES, epsilon=0.2)
    report(server, opened, 300)
    page = visitor.open(f"#/rounds/{opened['name']}")
    expect(page.locator(".lead")).to_have_text(re.compile("^The reports of this round could"))
    expect(tile(page, "Are they honest?")).to_contain_text("Too few reports to rank")
    assert page.inner_text("main").lower().count("too few reports to rank") == 1
    assert "The noise exceeds" not in page.inner_text("main")
    assert [row[0] for row in table(page)[1:]] == list(CITIES)


def test_long_method_can_be_cancelled(visitor: Visitor, attacked: dict[str, Any]) -> None:
    def hold_unmix(route: "Route") -> None:
        if "unmix" not in (route.request.post_data or ""):
            route.continue_()

    visitor.context.route("**/recover", hold_unmix)
    page = visitor.open(f"#/rounds/{attacked['name']}?with=unmix")
    page.get_by_role("progressbar", name="Progress of unmix").wait_for()
    card = page.get_by_role("article").filter(has=page.get_by_role("heading", name="unmix"))
    with page.expect_event("requestfailed"):
        card.get_by_role("button", name="Cancel").click()
    card.get_by_role("button", name="Work it out again").wait_for()


def test_truth_stays_in_browser(
    visitor: Visitor, server: ServerProcess, attacked: dict[str, Any], tmp_path: Path
) -> None:
    truth = shares(26)
    file = tmp_path / "truth.csv"
    with file.open("w", newline="") as out:
        csv.writer(out).writerows(
            [
                ("label", "count"),
                *((label, round(1e6 * share)) for label, share in zip(CITIES, truth, strict=True)),
                ("nobody", 3),
            ]
        )
    page = visitor.open(
        f"#/rounds/{attacked['name']}?with=ldprecover,norm-sub&targets=19,20,21&model=exact"
    )
    page.get_by_text("η = 0.2, 3 targets.").wait_for()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(f"{request.url} {request.post_data}"))
    page.get_by_label("Truth file").set_input_files(file)
    page.get_by_text("26 items read. 1 label of the file is no item").wait_for()
    for name in ("best estimate", "ldprecover", "norm-sub"):
        wait_for_recovery(page, name)
    page.locator(f"button[aria-label='CSV: {NUMBERS}']:enabled").wait_for()
    page.get_by_text("false-alarm rate").wait_for()  # the last thing that is drawn
    rows = (
        page.get_by_role("region", name="Table: Scores against the truth")
        .get_by_role("row")
        .all_inner_texts()
    )
    assert [row.split("\t")[0] for row in rows[1:]] == [
        "as collected",
        "best estimate",
        "ldprecover",
        "norm-sub",
    ]
    frequencies = np.array(server.frequencies(attacked["id"])["frequencies"])
    assert float(rows[1].split("\t")[1]) == pytest.approx(
        np.mean((frequencies - truth) ** 2), rel=6e-3
    )
    assert number(rows[1].split("\t")[3]) == pytest.approx(
        (frequencies - truth)[19:22].sum(), abs=2e-4
    )
    assert "Truth" in table(page)[0]
    page.evaluate("fetch('healthz').then((answer) => answer.text())")  # what was due has been sent
    assert not [each for each in sent if "nobody" in each or "count" in each or "300000" in each]
    other = tmp_path / "other.csv"
    other.write_text("label,count\nLagos,many\n")
    page.get_by_label("Truth file").set_input_files(other)
    assert "could not be read" in page.get_by_role("alert").filter(has_text="file").inner_text()


def test_html_label_is_text_in_page_and_csv(
    visitor: Visitor, attacked: dict[str, Any], tmp_path: Path
) -> None:
    page = visitor.open(f"#/rounds/{attacked['name']}?with=ldprecover&top=all&targets=6,7")
    wait_for_recovery(page)
    wait_for_recovery(page, "best estimate")
    table(page)
    page.get_by_role("checkbox", name=f"Target: {MARKUP}").wait_for()
    page.locator(f"button[aria-label='CSV: {NUMBERS}']:enabled").wait_for()
    assert page.locator("main b, main img").count() == 0
    with page.expect_download() as download:
        page.get_by_role("button", name=f"CSV: {NUMBERS}").click()
    download.value.save_as(tmp_path / "f.csv")
    rows = list(csv.reader(io.StringIO((tmp_path / "f.csv").read_text(encoding="utf-8-sig"))))
    assert rows[0] == [
        *("target", "item", "recovered", "frequency", "ldprecover", "standard_error"),
        *("certified_lower", "certified_upper", "change", "lower", "upper"),
    ]
    assert {row[1] for row in rows[1:]} == (set(CITIES) - {'=HYPERLINK("x")'}) | {
        '\'=HYPERLINK("x")'
    }
    with page.expect_download() as download:
        page.get_by_role("button", name=f"PNG: {NUMBERS}").click()
    download.value.save_as(tmp_path / "f.png")
    picture = (tmp_path / "f.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000


def test_page_csv_is_safe_and_reads_back(visitor: Visitor) -> None:
    page = visitor.open()
    labels = ["x;=1+1", "\uff1d1+1", "-->", "-1", "'-1", 'a "b"', "plain"]
    written = page.evaluate(
        """async (labels) => {
          const { csv } = await import("/page/js/chart/csv.js");
          const columns = [
            { title: "label", value: (i) => labels[i] }, { title: "count", value: (i) => i + 1 },
          ];
          return csv(columns, labels.keys());
        }""",
        labels,
    )
    cells = ["x;=1+1", "'\uff1d1+1", "'-->", "'-1", "'-1", 'a ""b""', "plain"]
    lines = [f'"{cell}",{i}\r\n' for i, cell in enumerate(cells, 1)]
    assert written == '"label","count"\r\n' + "".join(lines)
    del labels[4], lines[4]  # a label that is another's with an apostrophe keeps its own
    read = page.evaluate(
        """async ([text, labels]) => {
          const { readTruth } = await import("/page/js/round/truth.js");
          const { frequencies, unknown } = readTruth(text, labels);
          return [Array.from(frequencies, (f) => Math.round(23 * f)), unknown];
        }""",
        ["".join(lines), labels],
    )
    assert read == [[1, 2, 3, 4, 6, 7], 0]
    read = page.evaluate(
        """async () => {
          const { readTruth } = await import("/page/js/round/truth.js");
          const { frequencies } = readTruth("cafe\u0301,1\\nsoup,3", ["caf\u00e9", "soup"]);
          return Array.from(frequencies);
        }"""
    )
    assert read == [0.25, 0.75]


@pytest.mark.parametrize("name", ["constructor", "__proto__"])
def test_invalid_address_shows_defaults(
    visitor: Visitor, attacked: dict[str, Any], name: str
) -> None:
    page = visitor.open(f"#/rounds/{attacked['name']}?sort={name}&with={name}&top={name}&eta=1e999")
    assert len(table(page)) > 10
    page.get_by_role("button", name="Show all 26 items").click()
    assert page.get_by_label("Sort by").input_value() == "estimate"
    assert page.get_by_text("This page failed").count() == 0
    page = visitor.open(f"#/plan?solve={name}&attacker={name}")
    page.get_by_role("heading", name="Errors").or_(page.get_by_role("table")).first.wait_for()
    assert page.get_by_label("Work out").input_value() == "error"


def test_alarms_are_explained(visitor: Visitor, attacked: dict[str, Any]) -> None:
    page = visitor.open(f"#/rounds/{attacked['name']}?top=all")
    page.get_by_text("Methods and tests").click()
    card = page.locator("section").filter(has=page.get_by_role("heading", name="Alarms"))
    card.get_by_text("raised: honest users would hardly have sent these reports").wait_for()
    page.get_by_text("chi-squared of how many items each report supports").wait_for()


def test_protected_round_asks_for_key(visitor: Visitor, server: ServerProcess) -> None:
    visitor.expects = {401}
    opened = server.open_round("grr", read_access="key")
    report(server, opened, 100)
    page = visitor.open(f"#/rounds/{opened['name']}")
    page.get_by_text("This round's results need a key.").wait_for()
    page.get_by_role("button", name="Enter a key").click()
    give_key(page)
    page.get_by_role("img", name=NUMBERS).wait_for()


def test_refused_recovery_shows_reason(visitor: Visitor, attacked: dict[str, Any]) -> None:
    for path in ("**/recover", "**/alarms"):  # raised alarms would be the first sentence
        visitor.refuse(path, 503, "Too many analyses queued", "try again soon")
    page = visitor.open(f"#/rounds/{attacked['name']}?with=ldprecover")
    expect(page.locator(".lead")).to_contain_text("Too many analyses queued: try again soon.")
    card = page.get_by_role("article").filter(has=page.get_by_role("heading", name="ldprecover"))
    alert = card.get_by_role("alert")
    assert alert.inner_text() == "Too many analyses queued: try again soon."
    visitor.context.unroute("**/recover")
    card.get_by_role("button", name="Work it out again").click()
    page.get_by_text("η = 0.2.").wait_for()
    page.get_by_role("button", name="Test the reports").click()
    expect(tile(page, "Are they honest?")).to_contain_text("Near certain attack")


def test_clean_rounds_are_sent_to_method(visitor: Visitor, attacked: dict[str, Any]) -> None:
    page = visitor.open(f"#/rounds/{attacked['name']}?with=unmix")
    page.get_by_text("Earlier rounds that you know to be clean").click()
    box = page.locator("[name^=clean-]").first
    with page.expect_request(lambda request: '"history":["' in (request.post_data or "")):
        box.check()
    page.get_by_text("Probability that the earlier rounds predict this one").first.wait_for()
    assert "clean=" in page.url
