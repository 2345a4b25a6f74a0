"""The survey page in a real browser, from another origin than the server."""

import contextlib
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from tests.browsers import ARGUMENTS, CHROMIUM, launched
from tests.client.messages import round_message
from tests.client_js.conftest import CLIENT, open_form
from tests.conftest import ServerProcess
from tests.page.conftest import check_looks, overflow, serious

from ldprecover import RoundParameters, frequency_oracle
from ldprecover.estimation.theory import attacker_success_rate
from ldprecover.rounds.tickets import assigned_round

if TYPE_CHECKING:
    from playwright.sync_api import Browser

THANKS = "Thank you: your answer is counted."
REFUSED = (
    "An answer was sent from this browser already. A second one would tell more about you. "
    "Another person takes a private window or another browser."
)
EARLIER = "The answer given earlier in this browser is counted, and no new one."


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with launched() as browser:
        yield browser


class Visitor:
    """A browser context, with all console messages and script errors of its pages."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.wrong: list[str] = []
        context.set_default_timeout(60_000)
        context.on("console", lambda message: self.wrong.append(message.text))
        context.on("weberror", lambda error: self.wrong.append(str(error.error)))

    def open(self, url: str) -> Any:
        page = self.context.new_page()
        page.goto(url)
        return page


@pytest.fixture
def visitor(browser: "Browser") -> Iterator[Visitor]:
    with browser.new_context(locale="en-GB") as context:
        yield Visitor(context)


def kill(profile: Path) -> None:
    """Kill the browser of a profile, as a phone without memory does: it writes nothing more."""
    killed = 0
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if f"--user-data-dir={profile}\0".encode() in process.read_bytes():
                os.kill(int(process.parent.name), signal.SIGKILL)
                killed += 1
    assert killed
    for lock in profile.glob("Singleton*"):
        lock.unlink()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, site: str) -> Iterator[ServerProcess]:
    """A server that allows calls from the other origin's pages."""
    process = ServerProcess(tmp_path_factory.mktemp("service"), kernels="numpy", cors_origins=site)
    with contextlib.closing(process):
        process.start()
        yield process


def survey(site: str, service: ServerProcess, round_: str, **more: str) -> str:
    query = "".join(f"&{name}={value}" for name, value in more.items())
    return f"{site}/example/survey.html?server={service.url}&round={round_}{query}"


Begin = Callable[..., Any]


@pytest.fixture
def begin(visitor: Visitor, service: ServerProcess, site: str) -> Begin:
    """Open a round, and return a page with its survey."""
    return lambda *options, **fields: visitor.open(
        survey(site, service, service.open_round(*options, **fields)["id"])
    )


def press(page: Any, answer: str) -> None:
    page.get_by_label(answer, exact=True).check()
    page.get_by_role("button", name="Send").click()


def says(page: Any, words: str) -> None:
    page.get_by_role("status").filter(has_text=words).wait_for()


def test_survey_reports_once(visitor: Visitor, service: ServerProcess, site: str) -> None:
    opened = service.open_round(items=["soup", "salad", "<b>pasta</b>"])
    address = survey(site, service, opened["name"])
    page = visitor.open(address)
    page.get_by_role("button", name="Send").wait_for()
    assert page.get_by_role("radio").count() == 3
    assert page.get_by_label("<b>pasta</b>").input_value() == "<b>pasta</b>"
    press(page, "<b>pasta</b>")
    says(page, THANKS)
    assert page.locator("#form").is_hidden()
    assert page.locator("#status").evaluate("(each) => each === document.activeElement")
    page.reload()
    says(page, REFUSED)
    assert page.get_by_role("button", name="Send").count() == 0
    assert service.frequencies(opened["id"])["n"] == 1
    assert visitor.wrong == []


def test_survey_shows_the_texts_of_the_round(begin: Begin, visitor: Visitor) -> None:
    texts: dict[str, Any] = {
        "question": "Which <b>soup</b>?",
        "title": "Lunch",
        "thanks": "Merci !",
    }
    page = begin(items=["pea", "leek"], **texts)
    page.get_by_role("heading", name="Which <b>soup</b>?").wait_for()
    assert page.locator("#question").get_attribute("lang") == ""
    assert page.title() == "Lunch"
    assert page.get_by_text("Lunch", exact=True).is_visible()
    press(page, "pea")
    says(page, "Merci !")
    entries = """async () => {
        const { Ledger, browserStore } = await import("/ldprecover.js");
        return (await new Ledger(browserStore()).entries()).map((each) => each.question);
    }"""
    assert page.evaluate(entries) == ["Which <b>soup</b>?"]
    page = begin(items=["pea", "leek"], title="Lunch")
    page.get_by_role("heading", name="Lunch").wait_for()
    assert visitor.wrong == []


def test_survey_speaks_the_language_of_its_round_or_of_the_browser(
    visitor: Visitor, service: ServerProcess, site: str
) -> None:
    """A ticket of a link is no field, and leaves the address; the focus scrolls nothing."""
    texts: dict[str, Any] = {"question": "Which (one)?", "language": "ar-EG", "access": "ticket"}
    opened = service.open_round("grr", items=["شاي", "tea"], **texts)
    (ticket,) = service.mint(f"/rounds/{opened['id']}", 1)
    page = visitor.open(f"{survey(site, service, opened['id'])}#ticket={ticket}")
    page.get_by_text("لا يزيد عدد الصحيح").wait_for()
    root = page.locator("html")
    assert [root.get_attribute(name) for name in ("lang", "dir")] == ["ar", "rtl"]
    assert page.locator("bdi").first.get_attribute("lang") == "ar-EG"
    alignment = page.locator("h1").evaluate("(each) => getComputedStyle(each).textAlign")
    assert alignment == "right", "an English question stands where Arabic begins"
    hundred = page.evaluate("new Intl.NumberFormat('ar-EG').format(100)")
    assert page.locator("#promise").inner_text().count(hundred) == 1
    assert page.get_by_label("تذكرتك").is_hidden()
    check_looks(page)
    tops = "['items', 'promise', 'privacy'].map((id) => document.getElementById(id).offsetTop)"
    assert page.evaluate(tops) == sorted(page.evaluate(tops))
    page.set_viewport_size({"width": 390, "height": 300})
    page.get_by_label("tea").check()
    page.get_by_role("button", name="إرسال").press("Enter")
    says(page, "شكرًا لك")
    assert page.evaluate("[scrollY, location.hash, document.activeElement.id]") == [0, "", "status"]
    plain = service.open_round(items=["soup", "salad"])
    with visitor.context.browser.new_context(locale="de-AT") as context:
        german = Visitor(context).open(survey(site, service, plain["id"]))
        german.get_by_role("button", name="Senden").wait_for()
        assert german.locator("html").get_attribute("lang") == "de"
    assert visitor.wrong == []


def test_shuffled_answer_is_reported_by_its_index_in_the_round(
    visitor: Visitor, service: ServerProcess, site: str
) -> None:
    """Random words of 0 rotate the list by one, and let GRR keep the item."""
    opened = service.open_round("grr", 2.0, items=["a", "b", "c", "d"])
    address = survey(site, service, opened["id"])
    page = visitor.open(address)
    page.get_by_role("radio").first.wait_for()
    assert page.get_by_text("random order").count() == 0
    page.add_init_script("Crypto.prototype.getRandomValues = (array) => array.fill(0)")
    page.goto(f"{address}&shuffle")
    page.get_by_text("The answers are in random order.").wait_for()
    assert page.get_by_role("radio").evaluate_all("all => all.map((each) => each.value)") == [
        *"bcda"
    ]
    press(page, "b")
    says(page, THANKS)
    assert service.frequencies(opened["id"])["counts"] == [0, 1, 0, 0]
    assert visitor.wrong == []


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_killed_browser_remembers_report(
    browser: "Browser", service: ServerProcess, site: str, tmp_path: Path
) -> None:
    opened = service.open_round("olh", items=["soup", "salad"])
    for words in (THANKS, REFUSED):
        context = browser.browser_type.launch_persistent_context(
            str(tmp_path), executable_path=CHROMIUM, args=ARGUMENTS
        )
        page = Visitor(context).open(survey(site, service, opened["id"]))
        if words == THANKS:
            press(page, "soup")
        says(page, words)
        kill(tmp_path)
        with contextlib.suppress(Exception):  # whatever its driver makes of that
            context.close()
    assert service.frequencies(opened["id"])["n"] == 1


def test_origin_that_is_not_listed_is_told_so(
    visitor: Visitor, server: ServerProcess, site: str
) -> None:
    """A browser says nothing of the reason to a page, so the page names what it may be."""
    opened = server.open_round(items=["soup", "salad"])
    page = visitor.context.new_page()
    page.clock.install()
    page.goto(survey(site, server, opened["id"]))
    lead = page.locator("#lead")
    while not lead.filter(has_text="The server does not reply to this page").count():
        page.clock.run_for(1000)  # which ends the pauses between the tries
    assert "LDPRECOVER_CORS_ORIGINS (CORS)" in lead.inner_text()
    assert site in lead.inner_text()


def test_two_pages_make_one_report(visitor: Visitor, service: ServerProcess, site: str) -> None:
    opened = service.open_round("hr", items=["soup", "salad"])
    pages = [visitor.open(survey(site, service, opened["id"])) for _ in range(2)]
    for page in pages:
        page.get_by_label("soup").check()
        page.evaluate("setTimeout(() => document.querySelector('button').click(), 300)")
    for page in pages:
        page.wait_for_function(
            f"{[THANKS, REFUSED, EARLIER]}.includes("
            "document.getElementById('status').textContent.trim())"
        )
    assert service.frequencies(opened["id"])["n"] == 1


def test_survey_of_closed_round_shows_no_form(
    visitor: Visitor, service: ServerProcess, site: str
) -> None:
    """Nothing is perturbed; who had the form open reads once that the round is closed."""
    opened = service.open_round("grr", items=["soup", "salad"])
    page = visitor.open(survey(site, service, opened["id"]))
    page.get_by_label("soup").check()
    service.close_round(opened["id"]).raise_for_status()
    page.get_by_role("button", name="Send").click()
    says(page, "This survey is closed, and the answer of this browser is not counted.")
    page.reload()
    says(page, "This survey is closed, and the answer of this browser is not counted.")
    late = service.open_round("grr", items=["soup", "salad"])
    service.close_round(late["id"]).raise_for_status()
    page = visitor.open(survey(site, service, late["name"]))
    page.get_by_text("This survey is closed: it takes no more answers.").wait_for()
    assert page.get_by_role("button", name="Send").count() == 0


def test_survey_of_many_items_is_searched(begin: Begin, visitor: Visitor) -> None:
    items = ["Łódź", "São Paulo", "Sao Tome", *map("Straße {}".format, range(9_997))]
    page = begin("olh", items=items)
    field = page.get_by_role("combobox", name="Your answer")
    options = page.get_by_role("option")
    field.fill("STRASSE 99")
    page.get_by_text("108 of 10,000 answers, the first 50 are shown").wait_for()
    assert options.all_inner_texts()[:2] == ["Straße 99", "Straße 990"]
    field.fill("paulo")
    field.press("Enter")  # chooses nothing, since no option is active
    page.get_by_text("Choose one of the answers").wait_for()
    assert field.get_attribute("aria-invalid") == "true"
    assert field.evaluate("(each) => each === document.activeElement")
    for text, keys, chosen in (
        ("lodz", ["ArrowDown", "Enter"], "Łódź"),
        ("sao", ["ArrowUp", "Enter"], "Sao Tome"),
        ("sao", ["ArrowDown", "ArrowDown", "ArrowDown", "Enter"], "São Paulo"),
        ("sao", ["Escape"], "sao"),
        ("sao", ["Escape", "Escape"], ""),
    ):
        field.fill(text)
        for key in keys:
            field.press(key)
        assert (field.input_value(), options.count()) == (chosen, 0)
        assert field.get_attribute("aria-expanded") == "false"
    field.fill("sao")
    options.filter(has_text="São Paulo").click()
    assert field.input_value() == "São Paulo"
    field.fill("são tomé")  # typed out: the one answer with these letters
    page.get_by_text("Chosen: Sao Tome").wait_for()
    assert options.count() == 0
    page.get_by_role("button", name="Send").click()
    says(page, THANKS)
    assert visitor.wrong == []


@pytest.mark.parametrize(
    ("protocol", "epsilon", "d", "sentence"),
    [
        ("grr", 1.0, 30, "at most 9 of 100 such answers are true. Of 100 drawn at random, 3 would"),
        ("oue", 1.0, 290, "at most 10 times of 1,000 on average, and 3 times without it."),
        ("grr", 2.0, 2, "protects you little"),
    ],
)
def test_survey_promises_what_holds(
    begin: Begin, protocol: str, epsilon: float, d: int, sentence: str
) -> None:
    page = begin(protocol, epsilon, domain_size=d)
    page.get_by_text(sentence).wait_for()
    page.get_by_text("How private is this?").click()
    times = float(f"{math.exp(epsilon):.3g}")
    exact = page.locator("#exact").inner_text()
    assert f"at most {times:g} times as likely" in exact
    rate = 100 * attacker_success_rate(frequency_oracle(protocol, epsilon, d))
    assert f"guesses right in {rate:.3g}% of cases, and in {100 / d:.3g}% without" in exact


def test_survey_of_too_high_epsilon_shows_no_form(begin: Begin) -> None:
    page = begin("grr", 3.0)
    page.get_by_text("This survey asks for ε = 3. This page sends nothing above 2.").wait_for()
    assert page.get_by_role("button", name="Send").count() == 0


def test_survey_sends_kept_report_and_no_new_answer(
    visitor: Visitor, service: ServerProcess, site: str
) -> None:
    """A used ticket leaves the report pending; another person opens another ticket's link.

    Random words of 0 let GRR keep the item, so that the two reports differ.
    """
    no_chance = "Crypto.prototype.getRandomValues = (array) => array.fill(0)"
    visitor.context.add_init_script(no_chance)
    opened = service.open_round("grr", items=["soup", "salad"], access="ticket")
    used, unused = service.mint(f"/rounds/{opened['id']}", 2)
    address = survey(site, service, opened["id"])
    with visitor.context.browser.new_context() as context:
        context.add_init_script(no_chance)
        first = Visitor(context).open(f"{address}#ticket={used}")
        press(first, "soup")
        says(first, THANKS)
    page = visitor.open(address)
    field = page.get_by_label("Your ticket")
    page.get_by_label("salad").check()
    for text, fault in (("", "Enter your ticket."), ("nonsense", "a ticket has 22 characters")):
        field.fill(text)
        page.get_by_role("button", name="Send").click()
        page.get_by_text(fault).wait_for()
    page.get_by_role("button", name="Send").wait_for()
    field.fill(f" {used[:-1]}{'A' if used[-1] != 'A' else 'Q'} ")
    for _ in range(2):
        page.get_by_role("button").click()
        says(page, "This is no ticket of this survey.")
        assert page.get_by_role("radio").count() == 0
    field.fill(used)
    page.get_by_role("button").click()
    says(page, "This ticket was used already, for another answer.")
    page = visitor.open(f"{address}#ticket={unused}")
    says(page, "An answer given earlier in this browser has not arrived.")
    says(page, "The button sends the kept answer under this ticket, and no new one.")
    says(page, "Another person takes a private window")
    assert page.get_by_label("Your ticket").input_value() == unused
    assert page.get_by_role("radio").count() == 0
    page.get_by_role("button", name="Send the kept answer").click()
    says(page, EARLIER)
    assert service.frequencies(opened["id"])["counts"] == [1, 1]


def test_survey_says_at_the_start_that_no_report_can_be_made(
    visitor: Visitor, service: ServerProcess, site: str
) -> None:
    """Two reports of epsilon 2 are all that a ledger allows."""
    rounds = [service.open_round("grr", 2.0, items=["soup", "salad"]) for _ in range(3)]
    for opened in rounds[:2]:
        page = visitor.open(survey(site, service, opened["id"]))
        press(page, "soup")
        says(page, THANKS)
    page = visitor.open(survey(site, service, rounds[2]["id"]))
    page.get_by_text("(The total ε would be 6, above 4.)").wait_for()
    assert page.get_by_role("button", name="Send").count() == 0
    page.goto(survey(site, service, "missing"))
    page.get_by_text("There is no survey under this link").wait_for()
    page.add_init_script("delete Window.prototype.indexedDB; delete window.indexedDB")
    page.goto(survey(site, service, rounds[0]["id"]))
    page.get_by_text("An answer needs a browser that stores data").wait_for()


def test_survey_of_a_form_asks_the_drawn_question_alone(
    visitor: Visitor, service: ServerProcess, site: str
) -> None:
    id, (ticket, *tickets) = open_form(service, "ticket")
    index = assigned_round(ticket, 3)
    other = next(each for each in tickets if assigned_round(each, 3) != index)
    address = f"{site}/example/survey.html?server={service.url}&form="
    page = visitor.open(f"{address}{id}")
    page.set_viewport_size({"width": 390, "height": 700})
    page.get_by_role("button", name="Show the question").press("Enter")
    page.get_by_text("Enter your ticket.").wait_for()
    assert serious(page) == []
    page.keyboard.type(ticket)
    page.keyboard.press("Enter")
    page.get_by_text("This is one of 3 questions. Your ticket drew it").wait_for()
    page.get_by_text("How private is this?").click()
    assert (serious(page), overflow(page)) == ([], 0)
    forged = f"{ticket[:22]}.{other[23:]}"  # which assigns another question, and binds nothing
    page.goto(f"{address}{id}#ticket={forged}")
    page.get_by_role("heading", name="xyz"[assigned_round(other, 3)]).wait_for()
    assert page.get_by_label("Your ticket").is_hidden()
    press(page, "soup")
    says(page, "This is no ticket of this survey.")
    assert page.get_by_label("Your ticket").is_visible()
    says(page, "only under a ticket for the same question, and no new one. With a ticket for")
    page.goto(f"{address}{id}#ticket={ticket}")
    says(page, "This ticket is for another question of this survey. The button sends the kept")
    page.goto(f"{address}{id}#ticket={other}")
    page.get_by_role("button", name="Send the kept answer").click()
    says(page, EARLIER)
    assert service.get(f"/forms/{id}").json()["rounds"][assigned_round(other, 3)]["n"] == 1
    page.goto(f"{address}{id}#ticket={ticket}")
    says(page, REFUSED)
    page.goto(f"{address}%20")
    page.get_by_text("There is no survey under this link").wait_for()
    id, _ = open_form(service, "client")
    page.goto(f"{address}{id}")
    page.get_by_text("This device drew it, and you answer no other").wait_for()
    press(page, "soup")
    says(page, THANKS)
    visitor.open(f"{address}{id}").get_by_text(REFUSED).wait_for()


def test_survey_says_that_it_tries_again(
    visitor: Visitor, service: ServerProcess, site: str
) -> None:
    opened = service.open_round(items=["soup", "salad"])
    page = visitor.context.new_page()
    page.clock.install()
    page.goto(survey(site, service, opened["id"]))
    page.get_by_label("soup").wait_for()
    page.route("**/reports", lambda route: route.abort())
    with page.expect_request("**/reports"):
        press(page, "soup")
    page.clock.run_for(5_000)
    says(page, "No reply yet: this page tries again.")


def test_classic_script_reports_with_local_storage(
    visitor: Visitor, service: ServerProcess, site: str, classic_script: Path
) -> None:
    assert classic_script.read_text(
        encoding="utf-8"
    ).isascii()  # so a page of any encoding reads it alike
    opened = service.open_round()
    page = visitor.open(f"{site}/example/survey.css")
    page.add_script_tag(path=classic_script)
    same_names = """async () => {
        const names = Object.keys(await import("/ldprecover.js"));
        return names.sort().join() === Object.keys(LDPRecover).sort().join();
    }"""
    assert page.evaluate(same_names)
    report = """async ([url, round]) => {
        const { Ledger, Reporter, localStore } = LDPRecover;
        const reporter = new Reporter(url, round, { ledger: new Ledger(localStore()) });
        return reporter.report(0).then((receipt) => receipt.state, (error) => error.name);
    }"""
    results = [page.evaluate(report, [service.url, opened["id"]]) for _ in range(2)]
    assert results == ["accepted", "AlreadyReportedError"]
    assert "ldprecover-ledger" in page.evaluate("Object.keys(localStorage)")


def test_page_over_plain_http_reports_to_practice_rounds(visitor: Visitor) -> None:
    """Chromium gives a page of another host no `crypto.subtle` and no Web Locks."""
    rounds = {
        str(practice): RoundParameters("grr", 4.0, ("soup", "salad"), practice=practice)
        for practice in (False, True)
    }
    reports: list[bytes] = []

    def serve(route: Any) -> None:
        path = urlsplit(route.request.url).path
        if route.request.method == "POST":
            reports.append(route.request.post_data_buffer)
            route.fulfill(status=202, json={"round": "True", "accepted": 1, "duplicate": False})
        elif path.startswith("/rounds/"):
            id = path.split("/")[2]
            practice = rounds[id].practice
            route.fulfill(json=round_message(rounds[id], id=id, practice=practice))
        else:
            route.fulfill(path=CLIENT / path[1:])

    visitor.context.route("http://survey.test/**", serve)
    survey = "http://survey.test/example/survey.html?round="
    page = visitor.open(f"{survey}False")
    page.get_by_text("Over plain http only practice surveys may be answered").wait_for()
    assert not page.evaluate("crypto.subtle || navigator.locks")
    assert page.get_by_role("button", name="Send").count() == 0
    page.goto(f"{survey}True")
    page.get_by_text("Practice: others on this network could change this page").wait_for()
    press(page, "soup")
    says(page, THANKS)
    assert reports in ([b"\0\0\0\0"], [b"\1\0\0\0"])
    page.reload()
    says(page, REFUSED)


def test_pages_share_one_answer_to_a_series(
    visitor: Visitor, service: ServerProcess, site: str
) -> None:
    """Four pages of one browser; the first answer of a period of a second is due immediately."""
    fields: dict[str, Any] = {"protocol": "grr", "epsilon": 1.0, "items": ["a", "b", "c"]}
    opened = service.open_round(**fields, series="plotter", question="Which system?")
    program = """async (url) => {
        const { Usage } = await import("/ldprecover.js");
        const form = { question: "Which system?", items: ["b", "a"] };
        window.usage = new Usage(url, "plotter", form, { every: 1 / 86400, clock: () => 1e12 });
    }"""
    pages = [visitor.open(site) for _ in range(4)]
    for page in pages:
        page.evaluate(program, service.url)
    for page in pages:
        page.evaluate("() => { window.answered = usage.report('a'); }")
    for page in pages:
        page.evaluate("() => window.answered")
    assert service.frequencies(opened["id"])["n"] == 1
    assert "accepted" in pages[0].evaluate("() => usage.log()")
    assert visitor.wrong == []
