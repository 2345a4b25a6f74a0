"""`reproduce` at the terminal: its files, its tables, going on after an interruption, and what it
refuses.
"""

import csv
import importlib.util
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.forked import start_python

from ldprecover_cli import reproduce_output
from ldprecover_experiments import Results, paper, run_file
from ldprecover_experiments.runs import Work

SMALL = ("--data", "cities", "--users", "2000", "--trials", "2", "--jobs", "1")


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "cells.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def without_seconds(folder: Path) -> list[dict[str, str]]:
    return sorted(({**row, "seconds": ""} for row in rows(folder)), key=str)


@pytest.fixture
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are empty files: half of what these runs take is drawing."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda figure, file, **options: None)


def test_a_table_leaves_results_means_and_a_picture_of_each_figure(
    run: Any, tmp_path: Path
) -> None:
    result = run("reproduce", "table1", "mse", *SMALL, "--out", "out")
    assert (result.code, result.err.count("\n")) == (0, 1)
    assert "table1 (Table I): recovery of unpoisoned frequencies; cities, MSE" in result.out
    out = tmp_path / "out"
    assert {file.name for file in out.iterdir()} == {
        *("cells.csv", "cells.parquet", "summary.csv", "mse.png", "mse.svg"),
    }
    assert (out / "mse.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (out / "mse.svg").read_bytes()
    cells = rows(out)
    assert tuple(cells[0]) == run_file.COLUMNS
    parquet = pq.read_table(out / "cells.parquet").to_pylist()
    assert [row["mse"] for row in parquet] == [float(row["mse"]) for row in cells]
    assert [row["fg"] for row in parquet] == [
        float(row["fg"]) if row["fg"] else None for row in cells
    ]
    assert {row["n"] for row in parquet} == {2000}


@pytest.mark.usefixtures("_undrawn")
def test_means_are_those_of_the_cells(run: Any, tmp_path: Path) -> None:
    run("reproduce", "mse", *SMALL, "--out", "out")
    setting = ("protocol", "attack", "model", "method")
    trials: dict[tuple[str, ...], list[float]] = {}
    for row in rows(tmp_path / "out"):
        trials.setdefault(tuple(row[key] for key in setting), []).append(float(row["mse"]))
    with (tmp_path / "out" / "summary.csv").open(newline="") as file:
        means = {tuple(row[key] for key in setting): row for row in csv.DictReader(file)}
    assert means.keys() == trials.keys()
    for key, values in trials.items():
        assert float(means[key]["mse"]) == pytest.approx(sum(values) / len(values), rel=1e-3)
        assert means[key]["trials"] == "2"


def test_the_seed_alone_decides_the_numbers_not_the_processes(run: Any, tmp_path: Path) -> None:
    """With one process and with two; pictures too are the same to the byte. Another seed gives
    others.
    """
    arguments = ("reproduce", "malicious", "--data", "cities", "--users", "2000", "--trials", "1")
    for folder, more in (
        ("one", ("--jobs", "1")),
        ("two", ("--jobs", "2")),
        ("other", ("--seed", "1", "--jobs", "1")),
    ):
        assert run(*arguments, *more, "--out", folder).code == 0
    assert without_seconds(tmp_path / "one") == without_seconds(tmp_path / "two")
    for name in ("malicious.png", "malicious.svg", "summary.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    one, other = ([row["mse"] for row in rows(tmp_path / name)] for name in ("one", "other"))
    assert len(one) == len(other)
    # Only what answers 1/d, or recovers from the same few counts, may come out the same.
    assert sum(a == b for a, b in zip(one, other, strict=True)) < len(one) / 10


@pytest.mark.usefixtures("_undrawn")
def test_finished_cells_are_not_run_again(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("reproduce", "mse", *SMALL, "--out", "out")
    before = (tmp_path / "out" / "cells.csv").read_bytes()

    def never(*arguments: object) -> None:
        raise AssertionError

    monkeypatch.setattr("ldprecover_experiments.runs.Work.run", never)
    assert (
        run("reproduce", "mse", "fg", *SMALL, "--out", "out").code == 0
    )  # whose cells are among those of mse
    assert (tmp_path / "out" / "cells.csv").read_bytes() == before


@pytest.mark.parametrize("lost", [1, 40, 400, 4_000])
def test_resumes_from_a_truncated_file(run: Any, tmp_path: Path, lost: int) -> None:
    """What is left of a cell is dropped, the cell is run again, and comes out the same."""
    run("reproduce", "table1", *SMALL, "--out", "out")
    whole = without_seconds(tmp_path / "out")
    file = tmp_path / "out" / "cells.csv"
    file.write_bytes(file.read_bytes()[:-lost])
    assert run("reproduce", "table1", *SMALL, "--out", "out").code == 0
    assert without_seconds(tmp_path / "out") == whole


def test_more_trials_keep_those_there_are(run: Any, tmp_path: Path) -> None:
    run("reproduce", "table1", *SMALL, "--out", "out")
    fewer = without_seconds(tmp_path / "out")
    run("reproduce", "table1", *SMALL, "--trials", "3", "--out", "out")
    assert [row for row in without_seconds(tmp_path / "out") if row["trial"] != "2"] == fewer


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_leaves_a_file_to_go_on_from(forking: None, tmp_path: Path, jobs: str) -> None:
    """Interrupted once some cells are in the file, of 1,800. What is in it then is whole cells."""
    file = tmp_path / "out" / "cells.csv"
    sweeps = ["sweep-beta", "sweep-epsilon", "--data", "cities", "--trials", "20", "--out", "out"]
    process = start_python(
        *("-m", "ldprecover_cli", "reproduce", *sweeps, "--jobs", jobs),
        folder=tmp_path,
        environment=os.environ,
    )
    while not file.exists() or file.stat().st_size < 20_000:
        assert process.poll() is None
        time.sleep(0.01)  # a file says nothing of its growth
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert "cells were run; the same command continues" in err
    assert err.startswith("Finishing the cells under way") == (jobs == "2")
    found = Counter(
        tuple(row[column] for column in run_file.COLUMNS[:13]) for row in rows(tmp_path / "out")
    )
    assert 0 < len(found) < 1_800
    assert all(
        int(row["methods"]) == found[tuple(row[c] for c in run_file.COLUMNS[:13])]
        for row in rows(tmp_path / "out")
    )


def test_a_folder_in_the_place_of_a_file_is_one_line(run: Any, tmp_path: Path) -> None:
    (tmp_path / "out" / "summary.csv").mkdir(parents=True)
    result = run("reproduce", "table1", *SMALL, "--out", "out")
    assert (result.code, result.error) == (1, "cannot write out/summary.csv: Is a directory")
    assert not list((tmp_path / "out").glob(".*"))


def test_a_terminal_shows_how_far_the_cells_are(watched: Callable[..., Any]) -> None:
    shown = watched("reproduce", "table1", *SMALL, "--out", "out")
    code, out = shown.ended()
    assert code == 0
    assert "16/16" in shown.shown
    assert "table1" in out


def test_columns_of_a_user_s_own_file_are_counted(run: Any, tmp_path: Path) -> None:
    """One row a user: all of them report, no more and no fewer."""
    people = [f"town {i % 12}" for i in range(600)]
    Path("ipums.csv").write_text("\n".join(["CITY", *people]) + "\n")
    assert (
        run("reproduce", "table1", "--data", "ipums.csv", "--column", "CITY", "--trials", "1").code
        == 0
    )
    assert {(row["data"], row["n"]) for row in rows(tmp_path / "reproduction")} == {
        ("ipums.csv", "600")
    }


def test_data_sets_of_one_name_are_told_apart_by_counts(run: Any, tmp_path: Path) -> None:
    for count in (50, 60):
        Path("data.csv").write_text(
            "\n".join(["item,count", *(f"{i},{count + i}" for i in range(12))]) + "\n"
        )
        run("reproduce", "table1", "--data", "data.csv", "--trials", "1", "--out", "out")
    assert len({row["digest"] for row in rows(tmp_path / "out")}) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tables1",), "there is no table or figure 'tables1'; did you mean 'table1'"),
        (("mse", "--data", "nowhere.csv"), "there is no file nowhere.csv"),
        (("mse", "--data", "cities", "--data", "cities"), "two data sets are called cities"),
        (("km", "--over-http"), "none of these cells can go over HTTP"),
        (("mse", "--data", "few.csv"), "few.csv has 10 items; the experiments need more than 10"),
        (("mse", "--out", "few.csv"), "cannot make the folder few.csv"),
        (("mse", "--out", "other"), "other/cells.csv is not a file of cells"),
        (("mse", "--trials", "0"), "--trials"),
    ],
    ids=" ".join,
)
def test_usage_error_is_one_line_with_exit_code_2(
    run: Any, arguments: tuple[str, ...], said: str
) -> None:
    Path("few.csv").write_text("\n".join(["item,count", *(f"{i},5" for i in range(10))]) + "\n")
    Path("other").mkdir()
    Path("other", "cells.csv").write_text("a,b\n1,2\n")
    result = run("reproduce", *arguments)
    assert result.code == 2
    assert said in result.err.splitlines()[-1]


@pytest.mark.parametrize("package", ["matplotlib", "pyarrow"])
def test_a_missing_package_is_named_before_anything_is_run(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: str
) -> None:
    def find(name: str) -> object:
        return None if name == package else importlib.util.find_spec(name)

    monkeypatch.setattr(reproduce_output, "find_spec", find)
    error = run("reproduce", "mse").error
    assert (
        error
        == f"reproduce needs {package}: install it with `pip install 'ldprecover[experiments]'`"
    )
    assert not list(tmp_path.iterdir())


def test_over_http_omits_cells_without_reports(run: Any, tmp_path: Path) -> None:
    """A server of the command's own; table, picture and means are of the cells that are left."""
    result = run(
        "reproduce", "mse", "--data", "cities", "--users", "500", "--trials", "1", "--over-http"
    )
    assert result.code == 0
    assert "cannot go over HTTP and are left out" in result.err
    found = {
        (row["protocol"], row["attack"], row["model"], row["door"])
        for row in rows(tmp_path / "reproduction")
    }
    assert {key for key in found if key[0] == "olh"} == {
        ("olh", "mga", model, "http") for model in ("crafted", "sampled")
    }
    assert "olh mga (crafted)" in result.out
    assert "olh manip" not in result.out
    assert (tmp_path / "reproduction" / "mse.png").exists()


STUDY = """
protocols = ["grr", "oue"]
users = 1000
trials = 2
attacks = ["mga"]
methods = ["norm-sub", {method = "fiad", name = "fiad of [red]"}]
"""


def test_study_prints_cost_and_writes_json_and_table(run: Any, tmp_path: Path) -> None:
    Path("mine.toml").write_text(STUDY)
    result = run("reproduce", "mine.toml", "--out", "out", "--jobs", "1")
    assert result.code == 0
    cost = (
        "mine: 4 cells, 8 recoveries, 4,212 reports to make; all other counts are drawn from "
        "their law."
    )
    assert result.err.splitlines()[0] == cost
    assert "mine: MSE, data cities" in result.out
    assert "mine: FG, data cities" in result.out
    assert "fiad of [red]" in result.out
    assert "refused" in result.out
    kept = Results.from_json((tmp_path / "out" / "mine.json").read_bytes())
    assert kept.to_json() == (tmp_path / "out" / "mine.json").read_text().strip()
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"cells.csv", "mine.json"}


def test_a_study_goes_on_and_other_methods_run_anew(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More trials keep those there are."""
    ran: list[int] = []
    work = Work.run

    def counted(self: Work, cell: Any) -> Any:
        ran.append(cell.trial)
        return work(self, cell)

    monkeypatch.setattr(Work, "run", counted)
    shown = []
    for text in (
        STUDY,
        STUDY,
        STUDY.replace("trials = 2", "trials = 3"),
        STUDY.replace('"norm-sub"', '"norm-cut"'),
    ):
        Path("mine.toml").write_text(text)
        shown.append(run("reproduce", "mine.toml", "--out", "out", "--jobs", "1").out)
        ran.append(-1)
    assert ran == [0, 1, 0, 1, -1, -1, 2, 2, -1, 0, 1, 0, 1, -1]
    assert shown[0] == shown[1] != shown[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("bad.toml",), "bad.toml: there is no key 'trails' of a study; did you mean 'trials'?"),
        (("nowhere.toml",), "cannot read nowhere.toml: No such file or directory"),
        (("mine.toml", "mse"), "name one study"),
        (("mine.toml", "--trials", "3"), "--trials is for the paper's tables and figures"),
        (("mine.toml", "--over-http"), "--over-http is for the paper's tables and figures"),
        (("mine.toml", "--out", "mine.toml"), "cannot make the folder mine.toml"),
    ],
    ids=" ".join,
)
def test_invalid_study_is_one_line_with_exit_code_2(
    run: Any, arguments: tuple[str, ...], said: str
) -> None:
    Path("mine.toml").write_text(STUDY)
    Path("bad.toml").write_text(STUDY + "trails = 3\n")
    result = run("reproduce", *arguments)
    assert result.code == 2
    assert said in result.err.splitlines()[-1]


def test_a_study_needs_no_pictures(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce_output, "find_spec", lambda name: None)
    Path("mine.toml").write_text(STUDY)
    assert run("reproduce", "mine.toml", "--jobs", "1").code == 0


def test_a_column_of_a_parquet_file_is_counted(run: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"CITY": [f"town {i % 12}" for i in range(600)]}), "ipums.parquet")
    assert (
        run(
            "reproduce", "table1", "--data", "ipums.parquet", "--column", "CITY", "--trials", "1"
        ).code
        == 0
    )
    assert {(row["data"], row["n"]) for row in rows(tmp_path / "reproduction")} == {
        ("ipums.parquet", "600")
    }


def test_the_help_names_every_table_and_figure(run: Any) -> None:
    words = run("reproduce", "--help").out.replace(",", " ").split()
    assert set(paper.EXPERIMENTS) <= set(words)


PART = (
    *("reproduce", "unmix", "--users", "2000", "--trials", "1", "--jobs", "1", "--out", "out"),
    *(
        "--only",
        "data=geometric",
        "--only",
        "part=base,targets",
        "--only",
        "attack=none,MGA",
        "--only",
        "method=mle",
    ),
)


def test_evaluation_prints_cost_and_writes_its_files(run: Any, tmp_path: Path) -> None:
    result = run(*PART)
    assert result.code == 0
    # Six cells of the base; 3, 7, 14 targets of three protocols, for 30 are more than half of the
    # items.
    assert result.err.splitlines()[0].startswith("15 cells of 3 methods and ")
    assert "overall: n settings" in result.out
    out = tmp_path / "out"
    pictures = {f"unmix-{part}.{kind}" for part in ("base", "targets") for kind in ("png", "svg")}
    tables = {"cells.csv", "cells.parquet", "summary.csv", "unmix.json", "unmix.md"}
    assert {file.name for file in out.iterdir()} == pictures | tables
    text = (out / "unmix.md").read_text()
    assert "by targets: n settings" in text
    assert "| floor, counts |" in text
    kept = Results.from_json((out / "unmix.json").read_bytes())
    assert kept.methods[2:5] == ["ldprecover", "norm-sub", "mle"]


@pytest.mark.usefixtures("_undrawn")
def test_evaluation_resumes_from_its_folder(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*PART)
    tables = (tmp_path / "out" / "unmix.md").read_bytes()

    def never(*arguments: object) -> None:
        raise AssertionError

    monkeypatch.setattr("ldprecover_experiments.runs.Work.run", never)
    assert run(*PART).code == 0
    assert (tmp_path / "out" / "unmix.md").read_bytes() == tables


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("unmix", "mse"), "unmix is run alone"),
        (("unmix", "--over-http"), "unmix is run alone, and not over HTTP"),
        (("mse", "--only", "data=cities"), "--only is for unmix"),
        (
            ("unmix", "--only", "attak=MGA"),
            "--only is KEY=NAME[,NAME], not 'attak=MGA'; did you mean 'attack'",
        ),
        (("unmix", "--only", "attack"), "--only is KEY=NAME[,NAME], not 'attack'"),
        (
            ("unmix", "--only", "attack=bribe", "--only", "data=geometric"),
            "there is no attack 'bribe'; there are none",
        ),
        (("unmix", "--only", "data=nowhere"), "there is no file nowhere"),
    ],
    ids=" ".join,
)
def test_invalid_evaluation_is_one_line_with_exit_code_2(
    run: Any, arguments: tuple[str, ...], said: str
) -> None:
    result = run("reproduce", *arguments)
    assert result.code == 2
    assert said in result.err.splitlines()[-1]
