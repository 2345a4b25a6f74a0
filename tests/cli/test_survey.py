"""`ldprecover survey`: from a file to a link, or to one link a person."""

import csv
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Terminal
from tests.conftest import ServerProcess

from ldprecover.planning import plan_form
from ldprecover_cli.errors import UsageError
from ldprecover_cli.result.table_files import write_table
from ldprecover_client import Client, Ledger, Reporter

QUESTION = "Which of these did you buy last?"


@pytest.fixture
def products() -> Path:
    """A list of 290 products as a spreadsheet on Windows writes it."""
    lines = ["Nr;Produkt", *(f"{i};{'Käse' if i > 9 else 'Brot'} Nr. {i}" for i in range(290))]
    path = Path("products.csv")
    path.write_text("\r\n".join(lines), encoding="cp1252")
    return path


def read_links() -> list[dict[str, str]]:
    with Path("links.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_opens_a_round_and_prints_its_link(
    on_server: Run, server: ServerProcess, products: Path, name: str
) -> None:
    options = "--column Produkt --encoding cp1252 --users 5000 --title Shop"
    result = on_server(f"survey {products} --name {name} {options}", "--question", QUESTION)
    assert result.succeeds().out.splitlines() == [
        f"{name} is open.",
        f"Survey: {server.url}/page/survey.html?round={name}",
        f"To see its results: ldprecover result frequencies {name} -o results.csv",
    ]
    assert "290 items: Käse Nr. 10; Käse Nr. 11; Käse Nr. 12; …; Käse Nr. 289." in result.err
    assert "With 5,000 people each share is ± 5.3 points (95 %)" in result.err
    shown = on_server(f"round show {name} --json").json
    assert (shown["question"], shown["title"], shown["access"]) == (QUESTION, "Shop", "open")
    assert shown["items"][289] == "Käse Nr. 289"


def test_odd_answers_are_refused_or_asked_about(
    on_server: Run, form: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("food.txt").write_text("soup\nsalad\nTotal\n")
    Path("lists/editors.csv").write_text("Name,Nr\nvim,1\nK?te,2\n")
    lines = f"survey food.txt --name {name} --question Q --users {10**6}", f"survey {form}"
    for line, odd in zip(lines, ("food.txt, line 3: 'Total'", "line 3: 'K?te'"), strict=True):
        assert odd in on_server(line).fails(2)
        on_server(f"{line} --as-is --name {name}{line[7]}").succeeds()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for answer, code in (("n", 2), ("y", 0)):
        monkeypatch.setattr("sys.stdin", Terminal(f"{answer}\n"))
        result = on_server(lines[0])
        assert (result.code, "'Total' may be a sum" in result.err) == (code, True)
    assert on_server(f"round show {name} --json").json["items"][2] == "Total"


def test_writes_a_link_for_each_ticket(
    on_server: Run, server: ServerProcess, name: str, tmp_path: Path
) -> None:
    Path("food.txt").write_text("soup\nsalad\n")
    line = f"survey food.txt --name {name} --tickets 3 -o links.csv --json"
    opened = on_server(line, "--question", QUESTION).json
    rows = read_links()
    assert Path("links.csv").stat().st_mode & 0o077 == 0
    survey = f"{server.url}/page/survey.html?round={name}#ticket="
    assert [row["link"] for row in rows] == [survey + row["ticket"] for row in rows]
    assert len({row["ticket"] for row in rows}) == 3
    Reporter(server.url, opened["id"], ticket=f"{rows[0]['ticket']}\r").report("soup")
    assert "links.csv: a file of this name exists" in on_server(line, "--question", QUESTION).fails(
        2
    )
    Path("links.csv").write_text("\n".join(["link;ticket", *(f";{r['ticket']}" for r in rows[1:])]))
    assert "2 genuine users" in on_server(f"sim users {name} --tickets links.csv").succeeds().out


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Files take no more than 20,000 bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_opens_no_round_if_it_cannot_create_the_file(on_server: Run, name: str) -> None:
    Path("food.txt").write_text("soup\nsalad\n")
    line = f"survey food.txt --name {name} --question Q --tickets 2 -o absent/links.csv"
    assert "cannot write absent/links.csv" in on_server(line).err
    assert on_server(f"round show {name}").code == 1


@pytest.mark.usefixtures("full_disk")
def test_full_disk_leaves_no_cut_file(on_server: Run, name: str) -> None:
    Path("food.txt").write_text("soup\nsalad\n")
    result = on_server(f"survey food.txt --name {name} --question Q --tickets 500")
    assert result.code == 2
    assert f"`ldprecover admin ticket {name} --count 500` makes its tickets." in result.err
    with pytest.raises(UsageError, match="large"):
        write_table(Path("results.csv"), {"item": ["label"] * 5000})
    assert {path.name for path in Path().iterdir()} == {"food.txt"}


def test_asks_on_a_terminal_where_noise_exceeds_the_average(
    on_server: Run, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    Path("food.txt").write_text("soup\nsalad\nother\n")
    line = f"survey food.txt --name {name} --question Which? --users"
    for users, answer, code in ((10, "n", 1), (10, "y", 0)):
        monkeypatch.setattr("sys.stdin", Terminal(f"{answer}\n"))
        assert on_server(f"{line} {users}").code == code
        assert on_server(f"round show {name}").code == code
    monkeypatch.setattr("sys.stdin", Terminal(""))
    assert on_server(f"survey food.txt --question Which? --users {10**6}").code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--output links.csv", "--output is for the links of --tickets"),
        ("--tickets 2 --output links.xlsx", "a file that ends in .csv"),
        ("--epsilon 3", "no report above 2: take that or less"),
    ],
)
def test_rejects_what_no_survey_can_do(on_server: Run, options: str, message: str) -> None:
    Path("food.txt").write_text("soup\nsalad\n")
    assert message in on_server(f"survey food.txt --question Q {options}").fails(2)


FORM = """
title = "Usage"
users = 3000
[[questions]]
question = "Which system?"
items = ["Linux", "macOS", "Windows"]
[[questions]]
question = "Which editor?"
file = "editors.csv"
column = "Name"
items = ["other"]
"""


@pytest.fixture
def form() -> Path:
    Path("lists").mkdir()
    Path("lists/editors.csv").write_text("Name,Nr\nvim,1\nemacs,2\n")
    file = Path("lists/usage.toml")
    file.write_text(FORM)
    return file


def test_form_of_tickets_is_opened_answered_read_closed_and_deleted(
    on_server: Run, server: ServerProcess, form: Path, name: str
) -> None:
    form.write_text(f'read_access = "key"{FORM}')
    opened = on_server(f"survey {form} --name {name} --tickets 4").succeeds()
    with Client(server.url) as client:
        assert {round.read_access for round in client.form(name).rounds} == {"key"}
    assert opened.err.count("With 4 people each share is") == 2
    assert "2. Which editor?\n3 items: vim; emacs; other.\n" in opened.err
    assert f"up to {100 * plan_form([3, 3], 1.0, 4).gains_chosen[0]:.3g} points" in opened.err
    links = read_links()
    assert links[0]["link"].startswith(f"{server.url}/page/survey.html?form={name}#ticket=")
    added = on_server(f"admin ticket {name} --count 1").succeeds().out.strip()
    answers = {"Which system?": "macOS", "Which editor?": "vim"}
    for ticket in (*(link["ticket"] for link in links), added):
        Reporter(server.url, form=name, ticket=ticket, ledger=Ledger.in_memory()).report(answers)
    assert on_server(f"round close {name}").out == f"{name} is closed, with 5 reports.\n"
    on_server(f"result frequencies {name} -o results.csv").succeeds()
    header, *_, other = Path("results.csv").read_text(encoding="utf-8-sig").splitlines()
    assert header.startswith('"question","item","index"')
    assert other.startswith('"Which editor?","other",2,')
    missing = on_server(f"result frequencies {name}x --json").fails(1)
    assert missing.startswith(f"no round or form is called '{name}x': did you mean '{name}'")
    for command in ("round close", "round delete -y", "admin ticket --count 1"):
        assert "name the form instead" in on_server(f"{command} {name}-1").fails(1)
    deleted = on_server(f"round delete {name} -y").succeeds().out
    assert deleted == f"Deleted the form {name} and its 5 reports.\n"


def test_form_is_rehearsed_and_read_question_by_question(
    on_server: Run, server: ServerProcess, form: Path, name: str
) -> None:
    """A third question keeps its name when the first two are attacked, and has no reports."""
    form.write_text(f'{FORM}[[questions]]\nquestion = "Why?"\nitems = ["fun", "other"]\n')
    on_server(f"survey {form} --name {name}").succeeds()
    empty = on_server(f"result recover {name}").fails(1)
    assert empty == "no question of the form has reports; `ldprecover sim users` makes some"
    assert "Question: Why?\nNo estimates yet" in on_server(f"result frequencies {name}").out
    line = f"sim attack mga {name} --users 70 --target vim --target macOS --seed 1 --json"
    sent = on_server(line).json
    assert [(part["accepted"], part["targets"]) for part in sent["rounds"]] == [
        (35, ["macOS"]),
        (35, ["vim"]),
    ]
    assert on_server(line).json["duplicates"] == 70
    first, second, third = on_server(f"result recover {name} -o out.csv").out.split("Question: ")[
        1:
    ]
    assert "macOS" in first
    assert "emacs" in second
    assert third == "Why?\n"
    assert len(Path("out.csv").read_text(encoding="utf-8-sig").splitlines()) == 1 + 3 + 3
    assert len(on_server(f"result recover {name} --json").json["rounds"]) == 2
    users = f"sim users {name} --users 800 --seed 1"
    assert on_server(users).succeeds().out == f"800 genuine users reported to {name}.\n"
    assert on_server(f"{users} --json").json["duplicates"] == 800
    with Client(server.url) as client:
        numbers = [round.n for round in client.form(name).rounds]
    # Binomial: sd 13.3, six of which are passed less than once in 10^8.
    assert max(abs(n - 800 / 3 - m) for n, m in zip(numbers, (35, 35, 0), strict=True)) < 80
    attack = on_server(f"sim attack mga {name} --target other --beta 0.2").succeeds().out
    assert f"\n{name}-3: " in attack
    assert f"{name}-1: " not in attack


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("result recover {} --target vim", "--target is for one question: name its round, such as"),
        ("result alarms {}", " is a form: name one of its rounds, such as"),
        ("sim users {} --users 5 --dataset fire", "--dataset is for one question"),
        ("sim users {} --tickets t.txt", "takes no tickets: leave out --tickets"),
        ("sim attack mga {} --users 5 --target vi", "no item of the round is called 'vi'"),
        ("send value vim {}", "in this order, as 'A;B': Which system?; Which editor?"),
        ("send value 'Linux;vi' {}", "Which editor? no item of the round is called 'vi'; did you"),
    ],
)
def test_says_what_a_form_takes(
    on_server: Run, form: Path, name: str, line: str, message: str
) -> None:
    Path("t.txt").write_text(f"{'w' * 22}.{'w' * 22}\n")
    on_server(f"survey {form} --name {name}").succeeds()
    result = on_server(line.format(name))
    assert message in result.error
    assert f"{name}: 0 reports" in on_server(f"result frequencies {name}").out


def test_one_value_of_a_form_is_sent_and_only_once(on_server: Run, form: Path, name: str) -> None:
    on_server(f"survey {form} --name {name}").succeeds()
    line = f"send value 'Linux; vim' {name}"
    assert f"Accepted by round {name}-" in on_server(line).succeeds().out
    assert "has your report" in on_server(line).fails(1)
    assert f"{name}: 1 report to 2 questions" in on_server(f"result frequencies {name}").out


def test_form_without_tickets_has_one_link(
    on_server: Run, server: ServerProcess, form: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    line = f"survey {form} --name {name} --shuffle"
    assert on_server(f"{line} --users 20").code == 1  # some shares drown
    shown = on_server(line)
    assert f"{server.url}/page/survey.html?form={name}&shuffle\n" in shown.out
    assert "of 2 questions: each device draws it, so attackers choose." in shown.err
    opened = on_server(f"survey {form} --json").json
    assert (opened["assign"], opened["title"]) == ("client", "Usage")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "Usage"', "title = 5", "usage.toml: title must be a valid string, not 5"),
        ("users = 3000", "epsilon = true", "epsilon must be a valid number, not True"),
        ("title", "[[questions]]\ntitle", "stand above the first [[questions]]"),
        ("editor", "system", "question 2: question must be another than those before it"),
        ("title", "titel", "usage.toml: there is no key 'titel' of a form; did you mean 'title'?"),
        ("column", "kolumn", "question 2: there is no key 'kolumn' of a question"),
        (', "macOS", "Windows"', "", "question 1: items must be at least two, not 1"),
        ('column = "Name"', "", "of the items with the key column"),
        ("users = 3000", "users = 1", "users must be an integer from 2, not 1"),
        ("users = 3000", "tickets = 0", "'--tickets': must be greater than or equal to 1, not 0"),
        ("users = 3000", "users", "usage.toml: Expected '=' after a key"),
        (FORM, "", "usage.toml: a form needs the key 'questions'"),
        (FORM, "questions = []", "the number of questions must be an integer from 1 to 50, not 0"),
    ],
)
def test_names_what_is_wrong_in_the_file_of_a_form(
    run: Run, form: Path, old: str, new: str, message: str
) -> None:
    form.write_text(FORM.replace(old, new))
    assert message in run(f"survey {form}").fails(2)


def test_takes_a_form_in_utf_8_only(run: Run, form: Path) -> None:
    assert "there is no file usage.TOML" in run("survey usage.TOML").fails(2)
    form.write_text(FORM, encoding="utf-16")
    assert "save it as UTF-8" in run(f"survey {form.rename('usage.TOML')}").fails(2)
