"""`ledger` on reports to a real server."""

from pathlib import Path
from typing import Any


def test_the_ledger_lists_rounds_states_and_what_was_spent(
    on_server: Any, server: Any, nowhere: str
) -> None:
    first = server.open_round(epsilon=0.5, items=["a", "b"])
    closed = server.open_round(epsilon=1.0, items=["a", "b"])
    on_server("report", "a", "--round", first["name"])
    server.http.post(f"/rounds/{closed['id']}/close", headers=server.admin)
    on_server("report", "a", "--round", closed["name"])
    answer = on_server("ledger", "--json").json
    assert [(row["name"], row["epsilon"], row["state"]) for row in answer["reports"]] == [
        (first["name"], 0.5, "accepted"),
        (closed["name"], 1.0, "refused"),
    ]
    assert [row["round"] for row in answer["reports"]] == [first["id"], closed["id"]]
    assert "closed" in answer["reports"][1]["reason"]
    assert answer["epsilon_spent"] == 1.5
    shown = on_server("ledger", "--ledger", answer["ledger"])
    assert "2 reports: epsilon 1.5 spent in all" in shown.out
    for word in (first["name"], closed["name"], "accepted", "refused", server.url):
        assert word in shown.out


def test_looking_at_a_ledger_that_is_not_there_makes_none(run: Any, tmp_path: Path) -> None:
    result = run("ledger")
    path = tmp_path / "state" / "ldprecover" / "ledger.sqlite3"
    assert (result.code, result.out) == (
        0,
        f"No reports were sent from this machine: {path} is empty.\n",
    )
    assert run("ledger", "--json").json["reports"] == []
    named = run("ledger", "--ledger", "l.db")
    assert (named.code, named.error) == (2, "--ledger l.db: no such file")
    assert not (tmp_path / "l.db").exists()
    assert not (tmp_path / "state").exists()


def test_a_file_that_is_no_ledger_is_one_line(run: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a ledger")
    result = run("ledger", "--ledger", "notes.txt")
    assert result.code == 1
    assert "is not a ledger" in result.error
