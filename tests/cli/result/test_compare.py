"""`result compare`: sentences, attacks first, and tables of a series."""

import csv
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess

from ldprecover import GRR, OUE
from ldprecover.protocols.wire import pack

BEFORE, AFTER = [0.4, 0.3, 0.2, 0.1], [0.1, 0.3, 0.2, 0.4]
ITEMS = ["a", "b", "c", "d"]
_names = (f"compared{i}" for i in count())


def series_of(server: ServerProcess, *shares: list[float], n: int = 4_000, fakes: int = 0) -> str:
    """Open rounds of n honest reports, and `fakes` of all items in the last; return the series."""
    name, oracle, rng = next(_names), OUE(2.0, 4), np.random.default_rng(1)
    for i, each in enumerate(shares):
        fields = {"items": ITEMS, "series": name, "name": f"{name}-{i + 1}"}
        id = server.open_round("oue", 2.0, **fields)["id"]
        reports = oracle.perturb(rng.choice(4, n, p=each), rng)
        if i + 1 == len(shares):
            reports = np.concatenate([reports, np.full((fakes, 1), 15, reports.dtype)])
        assert server.submit(id, pack(reports)).status_code == 202
        server.close_round(id)
    return name


def forms_of(server: ServerProcess, *shares: list[float], answered: int = 2) -> str:
    """Open forms of two questions, of which some are answered; return the series."""
    name, oracle, rng = next(_names), GRR(3.0, 4), np.random.default_rng(1)
    questions = [
        {"protocol": "grr", "epsilon": 3.0, "items": ITEMS, "question": f"Which {i}?"}
        for i in range(2)
    ]
    for each in shares:
        body = {"assign": "client", "series": name, "rounds": questions}
        form = server.post("/forms", json=body, headers=server.admin).json()
        for round in form["rounds"][:answered]:
            reports = oracle.perturb(rng.choice(4, 2_000, p=each), rng)
            assert server.submit(round["id"], pack(reports)).status_code == 202
        server.post(f"/forms/{form['id']}/close", headers=server.admin)
    return name


def test_what_changed_is_said_in_sentences_with_the_proven_first(
    on_server: Run, server: ServerProcess, tmp_path: Path
) -> None:
    name = series_of(server, BEFORE, AFTER)
    answer = on_server(f"result compare {name}-2 --json").json
    result = on_server(f"result compare {name}-2 -o {tmp_path / 'x.csv'}").succeeds()
    lines = result.out.splitlines()
    assert lines[0] == f"{name}-2 since number 1: 4,000 and 4,000 reports"
    assert lines[1].startswith(f"{name}-2: No attack of a visible kind seen")
    rows = [line.split(maxsplit=1) for line in lines if line.split()[0] in ITEMS]
    assert {(label, words.split()[0]) for label, words in rows[:2]} == {
        ("a", "fell"),
        ("d", "rose"),
    }
    low, high = (f"{100 * answer[end][3]:+.1f}" for end in ("lower", "upper"))
    change = f"{100 * answer['changes'][3]:.1f}"
    assert f"rose by {change} points: between {low} and {high} points; certified" in result.words
    assert {words.split(":")[0] for _, words in rows[2:]} == {"no change proven"}
    assert "All intervals hold together with 95 %, if no report is malicious." in result.words
    with (tmp_path / "x.csv").open(encoding="utf-8-sig") as file:
        table = list(csv.DictReader(file))
    assert [float(row["change"]) for row in table] == answer["changes"]
    assert [row["word"] for row in table] == answer["words"]
    named = on_server(f"result compare {name}-2 --since {name}-1 --top 1").succeeds()
    assert f"{name}-2 since {name}-1:" in named.out
    assert "… and 3 more items" in named.out


def test_attack_comes_before_changes_that_it_may_have_made(
    on_server: Run, server: ServerProcess
) -> None:
    name = series_of(server, BEFORE, BEFORE, fakes=800)
    result = on_server(f"result compare {name}-2").succeeds()
    assert result.out.splitlines()[1].startswith(f"{name}-2: Near certain attack")
    assert "rose" not in result.out
    assert "of the reports of each side are malicious" in result.words


def test_windows_say_which_rounds_they_have(on_server: Run, server: ServerProcess) -> None:
    name = series_of(server, BEFORE, BEFORE, AFTER, AFTER, AFTER, n=500)
    server.delete_round(f"{name}-4")
    together = "Rounds counted together: numbers 3 to 5, without 4, deleted."
    for command in (
        "frequencies",
        "recover",
        "certify --malicious-share 0.1",
        "compare",
    ):
        result = on_server(f"result {command} {name}-5 --window 3").succeeds()
        assert together in result.words, command
    assert "Rounds counted together: numbers 1 to 2." in result.words


def test_form_is_compared_question_by_question(on_server: Run, server: ServerProcess) -> None:
    current = series_of(server, BEFORE)
    name = forms_of(server, BEFORE, AFTER, answered=1)
    assert f"{current}-1 (the current one)" in on_server("result frequencies").out
    result = on_server(f"result compare {name}-2").succeeds()
    assert "Which 0?" in result.out
    assert f"{name}-2-2: 0 reports" in result.words
    assert "The reports of this round could not show an attack." in result.words
    table = on_server(f"result compare --series {name}").succeeds()
    assert "Which 0?" in table.out
    assert "The intervals of 1 comparison hold together" in table.words
    error = on_server(f"result compare {name}-2 --since {name}-1-1").fails(2)
    assert error.startswith("--since is for one question")


@pytest.mark.parametrize("options", ["--since x", "x"])
def test_series_takes_no_round(on_server: Run, options: str) -> None:
    assert "not both" in on_server(f"result compare --series usage {options}").fails(2)


def test_series_is_a_table_whose_intervals_hold_together(
    on_server: Run, server: ServerProcess, tmp_path: Path
) -> None:
    """Three windows of two rounds are compared with the one before and with the first."""
    name = series_of(server, *4 * [BEFORE], *3 * [AFTER], n=1_500)
    result = on_server(f"result compare --series {name} --window 2 -o {tmp_path / 'x.csv'}")
    lines = result.succeeds().out.splitlines()
    assert lines[0].endswith(" of 2 rounds each, by number in the series")
    assert lines[1].split() == ["item", "3", "5", "7", "since", "3"]
    assert [line.split()[-1] for line in lines[2:6] if line[0] in "ad"] == ["rose", "fell"]
    assert "The intervals of 3 comparisons hold together with 95 %." in result.words
    changes = on_server(f"result compare --series {name} --window 2 --json").json["changes"]
    numbers = [(each["since_numbers"][-1], each["numbers"][-1]) for each in changes]
    assert numbers == [(3, 5), (5, 7), (3, 7)]
    assert {each["confidence"] for each in changes} == {1 - 0.05 / 3}
    with (tmp_path / "x.csv").open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["number"]) for row in rows[::4]] == [5, 7, 7]
    assert [float(row["lower"]) for row in rows[4:8]] == changes[1]["lower"]
    few = on_server(f"result compare --series {name} --window 7").fails(1)
    assert "no two windows of 7 rounds with reports" in few


def test_series_of_forms_has_a_table_for_each_question(
    on_server: Run, server: ServerProcess
) -> None:
    name = forms_of(server, BEFORE, AFTER)
    result = on_server(f"result compare --series {name}").succeeds()
    assert "Which 0?" in result.out
    assert "Which 1?" in result.out
    assert "of 2 comparisons" in result.words
