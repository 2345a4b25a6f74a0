"""`study`: its files and tables, what an interruption leaves, and invalid options."""

import csv
import hashlib
import json
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.docs.markdown import ROOT, Page
from tests.forked import start_python

from ldprecover_experiments import Results
from ldprecover_experiments.simulation import drawing
from ldprecover_experiments.studies import paper

SMALL = "--data cities --users 2000 --trials 1 --jobs 1"
OUT = Path("out")
ENDINGS = (".json", ".csv", ".tex", ".pdf", ".svg")


def rows(folder: Path = OUT) -> list[dict[str, Any]]:
    """Return a row for each outcome of the cells."""
    lines = [json.loads(line) for line in (folder / "cells.jsonl").read_text().splitlines()]
    return [line | line["cell"] | outcome for line in lines for outcome in line["outcomes"]]


@pytest.fixture
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no pictures: drawing takes half of the time."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda figure, file, **options: None)


@pytest.mark.usefixtures("_undrawn")
def test_figures_of_the_paper_have_its_numbers(run: Run) -> None:
    small = "--users 600 --trials 1 --jobs 1"
    fire = run(f"study paper fig6 {small} --output fire").succeeds()
    assert "sweep-eta (VI-D), error over the assumed eta: MSE, data fire" in fire.out
    assert {row["data"] for row in rows(Path("fire"))} == {"fire"}
    both = run(f"study paper fig4 table1 {small} --output both").succeeds()
    assert {row["data"] for row in rows(Path("both"))} == {"cities", "fire"}
    for name in ("table1 (Table I)", "fg (VI-C)"):
        assert name in both.out


@pytest.mark.usefixtures("forgets_modules", "_undrawn")
def test_study_takes_functions_of_a_module_beside_it(run: Run) -> None:
    page = Page(ROOT / "docs" / "how-to" / "experiments.md")
    text, code = (
        next(block.text for block in page.blocks if sign in block.text)
        for sign in ('"mine:send"', "def send(")
    )
    Path("beside").mkdir()
    Path("beside/mine.py").write_text(code)
    Path("beside/own.toml").write_text(f"users = 600\ntrials = 1\n{text}")
    result = run("study run beside/own.toml --output out --jobs 2").succeeds()
    assert "mine:clipped" in result.out
    assert "mine:aimed targets: 5 (crafted)" in result.out
    assert {row["refused"] for row in rows() if "refused" in row} == set()


def test_writes_cells_means_and_figures(run: Run) -> None:
    result = run(f"study paper table1 {SMALL} --trials 2 --output out").succeeds()
    assert result.err.count("\n") == 1
    assert "table1 (Table I), recovery of unpoisoned frequencies: MSE, data cities" in result.out
    names = {f"table1{end}" for end in ENDINGS}
    assert {file.name for file in OUT.iterdir()} == {"cells.jsonl", *names}
    assert (OUT / "table1.pdf").read_bytes().startswith(b"%PDF")
    assert b"<svg" in (OUT / "table1.svg").read_bytes()
    assert {row["n"] for row in rows()} == {2000}
    with (OUT / "table1.csv").open(newline="") as file:
        assert {row["trials"] for row in csv.DictReader(file)} == {"2"}


@pytest.mark.parametrize(("jobs", "times"), [("1", 1), ("2", 1), ("2", 2)])
def test_ctrl_c_leaves_whole_cells(forking: None, tmp_path: Path, jobs: str, times: int) -> None:
    """Interrupted once some of the 1,800 cells are in the file; again while it finishes others."""
    file = OUT / "cells.jsonl"
    line = f"study paper sweep-beta sweep-epsilon --data cities --trials 20 -o out --jobs {jobs}"
    process = start_python(
        *("-m", "ldprecover_cli", *line.split()), folder=tmp_path, environment=os.environ
    )
    while not file.exists() or file.stat().st_size < 20_000:
        assert process.poll() is None
        time.sleep(0.01)  # a file does not notify of its growth
    process.send_signal(signal.SIGINT)
    finishing = ""
    if times == 2:
        assert process.stderr is not None
        finishing = process.stderr.readline()
        process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    err = finishing + err
    assert (process.returncode, out) == (130, "")
    assert "cells were run; the same command continues" in err
    assert err.startswith("Finishing the cells under way") == (jobs == "2")
    cells = Counter(str(row["cell"]) for row in rows())
    assert 0 < len(cells) < 1_800
    assert set(cells.values()) <= {6, 8}


@pytest.mark.usefixtures("_undrawn")
def test_counts_a_column_of_a_file(run: Run) -> None:
    """Each row is one user."""
    towns = [f"town {i % 12}" for i in range(600)]
    Path("ipums.csv").write_text("\n".join(["CITY", *towns]) + "\n")
    run("study paper table1 --data ipums.csv --column CITY --trials 1 --jobs 1").succeeds()
    record = json.loads(Path("reproduction/table1.json").read_text())["record"]
    hashed = hashlib.sha256(Path("ipums.csv").read_bytes()).hexdigest()
    assert record["sha256"] == {"ipums.csv": hashed}
    assert {(row["data"], row["n"]) for row in rows(Path("reproduction"))} == {("ipums.csv", 600)}


STUDY = """
protocols = ["grr", "oue"]
users = 1000
trials = 2
attacks = ["mga"]
methods = ["norm-sub", {method = "fiad", name = "fiad of [red]"}]
"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("paper tables1", "there is no table or figure 'tables1'; did you mean 'table1'"),
        ("paper mse --output file", "cannot make the folder file"),
        ("paper mse --output other", "other/cells.jsonl is not a file of cells"),
        ("run bad.toml", "bad.toml: there is no key 'trails' of a study; did you mean 'trials'?"),
        ("paper mine.toml", "`ldprecover study run mine.toml` runs a study"),
        ("run mine.toml --output full --jobs 1", "cannot write to full/mine.json: it is a folder"),
        ("run advresary", "there is no file advresary; did you mean 'adversary'?"),
        ("run mine.toml --all", "--all needs --verify"),
        ("run series --verify out --rounds 2", "--rounds does not go with --verify"),
        ("run series --wide", "--wide is for figures, which series does not have"),
        ("run mine.toml --seed 1", "--seed is for adversary and series: this study has the key"),
    ],
)
def test_rejects_invalid_arguments(run: Run, arguments: str, message: str) -> None:
    Path("file").touch()
    Path("other").mkdir()
    Path("full", "mine.json").mkdir(parents=True)
    Path("other", "cells.jsonl").write_text('{"a": 1}\n')
    Path("mine.toml").write_text(STUDY, encoding="utf-8-sig")
    Path("bad.toml").write_text(STUDY + "trails = 3\n")
    result = run(f"study {arguments}")
    assert result.code == 2
    assert message in result.err.splitlines()[-1]


def test_verify_names_numbers_that_differ(run: Run) -> None:
    Path("users.txt").write_text("tea\nmilk\n" * 40 + "rum\n" * 20)
    keys = 'methods = ["norm-sub", "fiad"]\nprotocols = "grr"\nattacks = "none"\ntrials = 25\n'
    Path("mine.toml").write_text(f'{keys}data = "users.txt"\n')
    run("study run mine.toml --output out --jobs 1").succeeds()
    same = run("study run mine.toml --verify out --jobs 1").succeeds()
    assert same.err.splitlines()[-1] == "Ran 20 cells again: 0 differences above 1e-6."
    text = (OUT / "mine.json").read_text()
    results = json.loads(text)
    before = results["cells"][7]["outcomes"][2]["mse"]
    results["cells"][7]["outcomes"][2]["mse"] = before * (1 + 2e-6)
    results["cells"][8]["outcomes"][2]["mse"] *= 1 + 5e-7
    hashed = results["record"]["sha256"]
    assert hashed == {"users.txt": hashlib.sha256(Path("users.txt").read_bytes()).hexdigest()}
    results["cells"][0]["environment"] = hashed["users.txt"] = "other"
    (OUT / "mine.json").write_text(json.dumps(results))
    other = run("study run mine.toml --verify out --all --jobs 1")
    assert other.code == 1
    assert other.out == (
        "data users.txt, protocol grr, attack none, beta 0.0, epsilon 0.5, eta 0.2, questions 1, "
        "assign ticket, xi 0.0, trial 7, model none: mse of norm-sub was "
        f"{before * (1 + 2e-6)}, and is {before}\n"
    )
    assert "some cells were run by other; this is ldprecover" in other.err
    assert other.err.count("sha256: users.txt was other, and is") == 1
    Path("mine.toml").write_text(f'{keys}data = "users.txt"\n'.replace("25", "26"))
    more = run("study run mine.toml --verify out --all --jobs 1")
    (line,) = (line for line in more.out.splitlines() if "trial 25" in line)
    assert line.endswith("the results have no such cell")
    assert "study: trials was 25, and is 26" in more.err


@pytest.mark.usefixtures("forgets_modules")
def test_fault_of_a_plugin_is_named_with_its_cell(run: Run) -> None:
    Path("own.py").write_text("def boom(estimates, oracle):\n    raise KeyError('mine')\n")
    Path("mine.toml").write_text(STUDY.replace('"norm-sub"', '"own:boom"'))
    failed = run("study run mine.toml --jobs 1")
    assert failed.code == 1
    cell = "in the cell data cities, protocol grr"
    assert f"KeyError: 'mine' (in the method own:boom; {cell}" in failed.err


def test_played_rounds_are_written_and_verified(run: Run) -> None:
    result = run("study run series --rounds 1 --output out").succeeds()
    assert "series: 1 round of seed 0" in result.out
    assert {file.name for file in OUT.iterdir()} == {f"series{end}" for end in ENDINGS[:3]}
    again = run("study run series --verify out").succeeds()
    assert again.err.splitlines()[-1] == "Ran 1 cell again: 0 differences above 1e-6."
    (OUT / "series.json").write_text("{}")
    assert "not the results of a study" in run("study run series --verify out").fails(2)


def test_writes_cost_and_tables_without_matplotlib(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "find_spec", lambda name: None)
    Path("mine.toml").write_text(STUDY)
    result = run("study run mine.toml --output out --jobs 1").succeeds()
    cost = "4 cells, 8 recoveries, 4,212 reports to make; all other counts are drawn from their law"
    assert result.err.splitlines()[0] == f"mine: {cost}."
    for text in ("mine: MSE, data cities", "mine: FG, data cities", "fiad of [red]", "refused"):
        assert text in result.out
    assert len(Results.from_json((OUT / "mine.json").read_bytes()).cells) == 4
    assert "Figures need matplotlib: pip install 'ldprecover[experiments]'" in result.err
    names = {"cells.jsonl", "mine.json", "mine.csv", "mine.tex", "mine-fg.tex"}
    assert {file.name for file in OUT.iterdir()} == names


def test_help_names_every_table_and_figure(run: Run) -> None:
    words = run("study paper --help").out.replace(",", " ").split()
    assert {*paper.STUDIES} <= set(words)
