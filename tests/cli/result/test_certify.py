"""`certify` and the certificate of `recompute`: one certificate, on line and off line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess

from ldprecover import OUE
from ldprecover.protocols.wire import pack

ITEMS = ["New York, NY", "Chicago, IL", "Reno, NV", "A;B"]
QUESTIONS = (
    "--malicious-share 0.01 --confidence 0.9 --items 'Chicago, IL;Reno, NV' --items 'A;B' "
    "--ahead 'New York, NY; Chicago, IL' --top 2 --top 1"
)
REQUEST = {
    "confidence": 0.9,
    "malicious_share": 0.01,
    "questions": [
        {"items": ["Chicago, IL", "Reno, NV"]},
        {"items": ["A;B"]},
        {"ahead": ["New York, NY", "Chicago, IL"]},
        {"top": 2},
        {"top": 1},
    ],
}


@pytest.fixture(scope="module")
def counted(server: ServerProcess) -> Any:
    """A round of 40,000 honest reports."""
    opened = server.open_round("oue", 1.0, items=ITEMS)
    oracle, rng = OUE(1.0, 4), np.random.default_rng(1)
    reports = oracle.perturb(rng.choice(3, 40_000, p=[0.6, 0.3, 0.1]), rng)
    assert server.submit(opened["id"], pack(reports)).status_code == 202
    return opened


def test_certificate_as_json_is_the_servers(
    on_server: Run, server: ServerProcess, counted: Any
) -> None:
    shown = on_server(f"result certify {counted['name']} {QUESTIONS} --json").json
    assert shown == server.post(f"/rounds/{counted['id']}/certificate", json=REQUEST).json()


def test_recompute_from_reports_gives_the_servers_certificate(
    on_server: Run, server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow", reason="no file of reports is written")
    monkeypatch.setenv("LDPRECOVER_DATABASE_URL", server.database_url)
    opened = server.open_round("oue", 1.0, items=ITEMS)
    oracle, rng = OUE(1.0, 4), np.random.default_rng(1)
    reports = oracle.perturb(rng.choice(3, 4_000, p=[0.6, 0.3, 0.1]), rng)
    assert server.submit(opened["id"], pack(reports)).status_code == 202
    line = f"result certify {opened['name']} {QUESTIONS} --reports"
    assert "The round is open" in on_server(line).fails(1)
    on_server(f"file reports {opened['name']} --output open.parquet").succeeds()
    opened_round = on_server(f"file recompute open.parquet {QUESTIONS}").json
    assert "needs the seed of one closed round" in opened_round["notes"][-1]
    offline = opened_round["certificate"]
    assert offline == on_server(f"result certify {opened['name']} {QUESTIONS} --json").json
    assert server.close_round(opened["id"]).status_code == 200
    published = on_server(f"{line} --json").json
    assert published["from_reports"]
    on_server(f"file reports {opened['name']} --output closed").succeeds()
    assert on_server(f"file recompute closed {QUESTIONS}").json["certificate"] == published
    on_server(f"round export {opened['name']} --output closed.json").succeeds()
    from_counts = on_server(f"file recompute closed.json {QUESTIONS}").json
    assert from_counts["certificate"] == offline
    assert "All reports were read" in on_server(line).succeeds().words


def test_certificate_as_text(on_server: Run, counted: Any) -> None:
    line = f"result certify {counted['name']} {QUESTIONS}"
    result, sentences = on_server(line).succeeds(), on_server(f"{line} --json").json["sentences"]
    assert result.words.startswith(
        f"{counted['name']} If at most 1 % of the 40,000 reports are malicious, all of this holds "
        "together, with a confidence of 90 %, whatever these reports are;"
    )
    assert " ".join([*sentences["answers"], sentences["bound"]]) in result.words
    rows = [line for line in result.out.splitlines() if line.startswith(("New York, NY  ", "A;B"))]
    assert len(rows) == 2
    assert rows[0].split()[-2] == "to"


def test_labels_without_commas_are_separated_by_them(on_server: Run, lunch: Any) -> None:
    for line in ("--items soup,salad", "--ahead 'soup, salad'"):
        shown = on_server(f"result certify {lunch['name']} --malicious-share 0.01 {line}")
        assert "The round has no reports" in shown.fails(1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", "give either --malicious-share or --malicious-tickets"),
        ("--malicious-share 0.1 --ahead soup", "--ahead takes two items, as A,B or 'A;B', not 1"),
        ("--malicious-tickets 3", "takes reports without tickets"),
    ],
)
def test_errors_of_certify(
    on_server: Run, server: ServerProcess, lunch: Any, options: str, words: str
) -> None:
    assert server.submit(lunch["id"], pack(np.zeros(4, np.int64))).status_code == 202
    assert words in on_server(f"result certify {lunch['name']} {options}").fails(2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--top 1", "--items, --ahead, --top and --mean-above need --malicious-share"),
        ("--malicious-share 0.1 --items soap", "no item of the round is called 'soap'"),
        (
            "--malicious-share 0",
            "nothing is certified if at most 0 % of all reports are malicious: they ",
        ),
    ],
)
def test_errors_of_recompute(
    on_server: Run, server: ServerProcess, lunch: Any, options: str, words: str
) -> None:
    malicious = np.zeros(2000, np.int64)
    assert server.submit(lunch["id"], pack(malicious)).status_code == 202
    Path("round.json").write_bytes(server.get(f"/rounds/{lunch['id']}/export").content)
    assert words in on_server(f"file recompute round.json {options}").fails(2)
