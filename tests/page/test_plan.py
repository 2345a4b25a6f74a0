"""The planner in a browser: plans, their address, and messages for impossible plans."""

from tests.conftest import ServerProcess
from tests.page.conftest import Visitor, expect

from ldprecover.planning import PlanRequest, accuracy, plan
from ldprecover.protocols import PROTOCOLS


def test_plan_is_shown(visitor: Visitor) -> None:
    shown = visitor.open("#/plan")
    shown.get_by_label("Work out").select_option("users")
    shown.locator("[name=error]").fill("0.25")
    planned = plan(PlanRequest(domain_size=102, epsilon=1.0, error=0.0025))
    for sentence in planned.sentences:
        shown.locator(".notice.good").get_by_text(sentence, exact=True).wait_for()
    rows = shown.get_by_role("region", name="Table: Protocols").locator("tbody tr")
    assert rows.count() == len(PROTOCOLS)
    assert rows.first.locator("td").first.inner_text() == planned.protocols[0].upper()
    assert "solve=users" in shown.url
    assert "error=0.25" in shown.url


def test_views_that_open_rounds_state_the_accuracy(visitor: Visitor, server: ServerProcess) -> None:
    sentence = str(accuracy(5, 1.0, 30))
    page = visitor.open("#/open?domain_size=5")
    page.get_by_label("Users that you expect").fill("30")
    page.get_by_text(sentence).wait_for()
    page = visitor.open(f"#/rounds/{server.open_round(domain_size=5)['name']}")
    page.get_by_label("How many people will answer?").fill("30")
    page.get_by_text(sentence).wait_for()


def test_plan_links_to_form_with_its_retention(visitor: Visitor) -> None:
    shown = visitor.open("#/plan?domain_size=490&users=1000000")
    shown.locator(".notice.good").get_by_text("no report need be stored").wait_for()
    row = shown.get_by_role("region", name="Table: Protocols").locator("tbody tr").first
    assert row.locator("td").all_inner_texts()[0::10] == ["LLH", "17.5 kB"]
    shown.get_by_role("link", name="Open this round").click()
    expect(shown.get_by_label("Protocol", exact=True)).to_have_value("llh")
    expect(shown.get_by_label("Or how many items", exact=True)).to_have_value("490")
    expect(shown.get_by_label("Epsilon")).to_have_value("1")
    expect(shown.get_by_label("Retention of reports")).to_have_value("none")
    expect(shown.get_by_label("Retention of reports")).to_be_visible()


def test_invalid_value_hides_old_plan_and_is_not_requested(visitor: Visitor) -> None:
    shown = visitor.open("#/plan")
    heading = shown.get_by_role("heading", name="Protocols, the one to take first")
    heading.wait_for()
    requests = sum("/plan?" in url for url in visitor.requests)
    shown.locator("[name=epsilon]").fill("11")
    expect(shown.locator("[role=alert]")).to_contain_text("Epsilon: ")
    expect(heading).to_be_hidden()
    assert sum("/plan?" in url for url in visitor.requests) == requests
    shown.locator("[name=epsilon]").fill("2")
    expect(heading).to_be_visible()
