"""`ldprecover survey`: from a file to a link, or to one link a person."""

import csv
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Terminal
from tests.conftest import ServerProcess

from ldprecover_cli.errors import UsageError
from ldprecover_cli.result.table_files import write_table
from ldprecover_client import Reporter

QUESTION = "Which of these did you buy last?"


@pytest.fixture
def products() -> Path:
    """A list of 290 products as a spreadsheet on Windows writes it."""
    lines = ["Nr;Produkt", *(f"{i};Käse Nr. {i}" for i in range(290))]
    path = Path("products.csv")
    path.write_text("\r\n".join(lines), encoding="cp1252")
    return path


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
    assert "290 items: Käse Nr. 0; Käse Nr. 1; Käse Nr. 2; …; Käse Nr. 289." in result.err
    assert "With 5,000 people each share is ± 5.4 points (95 %)" in result.err
    shown = on_server(f"round show {name} --json").json
    assert (shown["question"], shown["title"], shown["access"]) == (QUESTION, "Shop", "open")
    assert shown["items"][289] == "Käse Nr. 289"


def test_writes_a_link_for_each_ticket(
    on_server: Run, server: ServerProcess, name: str, tmp_path: Path
) -> None:
    Path("food.txt").write_text("soup\nsalad\n")
    line = f"survey food.txt --name {name} --tickets 3 -o links.csv --json"
    opened = on_server(line, "--question", QUESTION).json
    with Path("links.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert Path("links.csv").stat().st_mode & 0o077 == 0
    survey = f"{server.url}/page/survey.html?round={name}#ticket="
    assert [row["link"] for row in rows] == [survey + row["ticket"] for row in rows]
    assert len({row["ticket"] for row in rows}) == 3
    Reporter(server.url, opened["id"], ticket=rows[0]["ticket"]).report("soup")
    assert "links.csv: it exists" in on_server(line, "--question", QUESTION).fails(2)
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
        ("--tickets 2 --output links.xlsx", "a file that ends in .csv, not links.xlsx"),
        ("--epsilon 3", "no report above 2: take that or less"),
    ],
)
def test_rejects_what_no_survey_can_do(on_server: Run, options: str, message: str) -> None:
    Path("food.txt").write_text("soup\nsalad\n")
    assert message in on_server(f"survey food.txt --question Q {options}").fails(2)
