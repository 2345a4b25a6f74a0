"""Frequencies and recoveries of a real server, as JSON and as text."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess

from ldprecover import GRR, frequency_oracle
from ldprecover.protocols.wire import pack
from ldprecover_client import load_dataset


@pytest.fixture(scope="module")
def poisoned(server: ServerProcess) -> Any:
    """A GRR round of 4,000 genuine reports and 1,000 for one target."""
    items = list(load_dataset("cities").items)
    opened = server.open_round("grr", 3.0, items=items)
    oracle, rng = GRR(3.0, len(items)), np.random.default_rng(1)
    genuine = oracle.perturb(rng.integers(5, size=4000), rng)
    malicious = oracle.encode(np.full(1000, items.index("Reno, NV")), rng)
    for reports in (genuine, malicious):
        assert server.submit(opened["id"], pack(reports)).status_code == 202
    return opened


def test_frequencies_as_json_are_the_servers(
    on_server: Run, server: ServerProcess, poisoned: Any
) -> None:
    shown = on_server(f"result frequencies {poisoned['name']} --json").json
    assert shown == server.frequencies(poisoned["id"])


def test_frequencies_as_text_show_the_most_frequent_first(on_server: Run, poisoned: Any) -> None:
    result = on_server(f"result frequencies {poisoned['name']} --top 3").succeeds()
    lines = result.out.splitlines()
    assert lines[0] == f"{poisoned['name']}: 5,000 reports, grr, epsilon 3"
    assert lines[2].startswith("Reno, NV")
    assert "█" in lines[2]
    assert "… and 99 more items" in result.out
    assert "of honest reports 100 % (standard error 0 points)." in result.words
    assert "\x1b" not in result.out


def test_noise_comes_before_items_and_nothing_is_ranked(
    on_server: Run, server: ServerProcess
) -> None:
    """300 reports of uniform items at epsilon 0.5, by linear hashing."""
    items = [f"item {i}" for i in range(40)]
    opened = server.open_round("llh", 0.5, items=items)
    rng = np.random.default_rng(1)
    oracle = frequency_oracle("llh", 0.5, 40)
    reports = oracle.perturb(rng.integers(40, size=300), rng)
    assert server.submit(opened["id"], pack(reports)).status_code == 202
    for command in ("frequencies", "recover --method norm-sub"):
        lines = on_server(f"result {command} {opened['name']} --top 3").succeeds().out.splitlines()
        assert lines[1].startswith("Note: The noise exceeds")
        rows = [line.split()[:2] for line in lines if line.startswith("item ")]
        assert rows[-3:] == [["item", "0"], ["item", "1"], ["item", "2"]]


def test_recovery_as_text_marks_targets_and_has_notes(on_server: Run, poisoned: Any) -> None:
    line = f"result recover {poisoned['name']}"
    result = on_server(f"{line} --method ldprecover --top 2 --target 'Reno, NV'")
    assert result.out.startswith(f"{poisoned['name']}: 5,000 reports, ldprecover*, eta 0.2")
    assert "Reno, NV (target)" in result.out
    assert "Note: LDPRecover*" in result.out
    plain = on_server(f"{line} --method norm-sub")
    assert plain.out.startswith(f"{poisoned['name']}: 5,000 reports, norm-sub, ")
    assert "(target)" not in plain.out
    chosen = on_server(f"{line} --top 2").out
    assert chosen.startswith(f"{poisoned['name']}: 5,000 reports, unmix, ")
    assert "Note: auto chose unmix: it fits grr over 102 items." in " ".join(chosen.split())


SHARES = [0.75 if i == 5 else 0.25 / 101 for i in range(102)]
SHARES[0] += 1 - sum(SHARES)


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        (
            "--method ldprecover --eta 0.25 --target 'Reno, NV' --malicious-model exact",
            {"eta": 0.25, "targets": ["Reno, NV"], "malicious_model": "exact"},
        ),
        (
            "--method ldprecover --malicious-model custom --support shares.txt",
            {"malicious_model": "custom", "support": SHARES},
        ),
        (
            "--method k-means --option subsets=4 --option rate=0.25 --option seed=7",
            {"method": "k-means", "options": {"subsets": 4, "rate": 0.25, "seed": 7}},
        ),
    ],
)
def test_recovery_sends_its_options(
    on_server: Run, server: ServerProcess, poisoned: Any, options: str, fields: dict[str, Any]
) -> None:
    """The result is the server's; a support file has one share a line."""
    Path("shares.txt").write_text("".join(f"{share!r}\n" for share in SHARES))
    body = {"method": "ldprecover"} | fields
    expected = server.http.post(f"/rounds/{poisoned['id']}/recover", json=body).json()
    assert "recovered" in expected
    assert on_server(f"result recover {poisoned['name']} {options} --json").json == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [("0.5\nhalf\n", "shares.txt, line 2 must be a number"), ("inf\n", "line 1 must")],
)
def test_rejects_an_invalid_support(on_server: Run, poisoned: Any, text: str, message: str) -> None:
    Path("shares.txt").write_text(text)
    options = "--method ldprecover --malicious-model custom --support shares.txt"
    assert message in on_server(f"result recover {poisoned['name']} {options}").fails(2)


def test_round_without_reports_has_no_estimates(on_server: Run, server: ServerProcess) -> None:
    at = f"{server.open_round('oue', 1.0)['name']}"
    assert "the round has no reports" in on_server(f"result frequencies {at}").out
    assert on_server(f"result frequencies {at} --json").json["frequencies"] is None
    assert "ldprecover sim users" in on_server(f"result recover {at}").fails(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--target reno", "did you mean 'Reno, NV'"),
        ("--method norm --option alpha", "--option takes a name and a value"),
        ("--method norm --option alpha=1 --option alpha=2", "--option alpha is given twice"),
        ("--support nowhere.txt", "there is no file nowhere.txt"),
        ("--method kmeans2", "whose LDPRECOVER_PLUGINS names the plugin"),
    ],
)
def test_rejects_invalid_recovery_options(
    on_server: Run, poisoned: Any, options: str, message: str
) -> None:
    assert message in on_server(f"result recover {poisoned['name']} {options}").fails(2)


def test_frequencies_of_a_round_for_numbers_have_their_mean(on_server: Run, name: str) -> None:
    on_server(f"round open {name} --epsilon 1 --item=-1 --item=1").succeeds()
    on_server(f"sim users {name} --users 500 --seed 1").succeeds()
    mean = on_server(f"result frequencies {name} --json").json["mean"]
    sentence = f"Mean of the users' numbers: {mean['value']:.4g} (95 %: {mean['low']:.4g} to "
    assert sentence in on_server(f"result frequencies {name}").out


def test_frequencies_are_written_for_a_spreadsheet(on_server: Run, name: str) -> None:
    on_server(f"round open {name} --epsilon 1 --item +1 --item", "Äpfel; rot")
    on_server(f"sim users {name} --users 50 --seed 1")
    expected = on_server(f"result frequencies {name} --json").json
    on_server(f"result frequencies {name} --output out.csv")
    assert Path("out.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    with Path("out.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["item"] for row in rows] == ["'+1", "Äpfel; rot"]
    assert [int(row["support"]) for row in rows] == expected["counts"]
    assert [float(row["frequency"]) for row in rows] == expected["frequencies"]
    again = on_server(f"result frequencies {name} --output out.csv").fails(2)
    assert again.startswith("cannot write out.csv: a file of this name exists")
    assert "ends in .csv" in on_server(f"result frequencies {name} -o out.ods").fails(2)


def test_recovery_is_written_for_data_frames(
    on_server: Run, poisoned: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"result recover {poisoned['name']} --method norm-sub"
    expected = on_server(f"{line} --json --output out.parquet").json
    on_server(f"{line} -o out.csv").succeeds()
    for frame in (pd.read_parquet("out.parquet"), pd.read_csv("out.csv", encoding="utf-8")):
        assert [*frame.columns[:3], frame.columns[5]] == ["item", "index", "poisoned", "recovered"]
        assert frame["item"].tolist() == expected["items"]
        assert frame["recovered"].tolist() == expected["recovered"]
    monkeypatch.setattr("ldprecover_cli.result.table_files.find_spec", lambda name: None)
    assert "ldprecover[parquet]" in on_server(f"{line} -o other.parquet").fails(1)
