"""What a method concludes, at a terminal and from exports: un-mixing of a round with a clean
past.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldprecover import GRR
from ldprecover.protocols.wire import pack
from ldprecover_cli.app import run
from ldprecover_cli.conclusions import sentences

D = 40
SHARES = 0.9 ** np.arange(D) / (0.9 ** np.arange(D)).sum()


@pytest.fixture(scope="module")
def rounds(server: Any) -> tuple[Any, Any]:
    """A clean closed GRR round, and one of which a tenth of the reports are of item 30."""
    oracle, rng = GRR(2.0, D), np.random.default_rng(1)
    found = []
    for malicious in (0, 500):
        opened = server.open_round("grr", 2.0, items=[f"city {i}" for i in range(D)])
        genuine = oracle.perturb(rng.choice(D, 4500, p=SHARES), rng)
        for reports in (genuine, oracle.encode(np.full(malicious, 30), rng)):
            if len(reports):
                assert server.submit(opened["id"], pack(reports)).status_code == 202
        found.append(opened)
    server.http.post(f"/rounds/{found[0]['id']}/close", headers=server.admin).raise_for_status()
    return found[0], found[1]


def test_a_terminal_shows_intervals_and_what_is_concluded(on_server: Any, rounds: Any) -> None:
    clean, poisoned = rounds
    how = ("--round", poisoned["name"], "--method", "unmix", "--history", clean["name"])
    answer = on_server("recover", *how, "--json").json
    result = on_server("recover", *how, "--top", "3")
    lines = result.out.splitlines()
    assert "95 % interval" in lines[1]
    first = int(np.argmax(answer["recovered"]))
    concluded = answer["conclusions"]
    assert (
        f"{100 * concluded['lower'][first]:.2f} to {100 * concluded['upper'][first]:.2f}"
        in lines[2]
    )
    words = " ".join(result.out.split())
    for sentence in sentences(concluded):
        assert sentence in words
    assert f"Probability of an attack: {concluded['attack_probability']:.2f}" in words
    assert "predict this one" in words


def test_exports_carry_the_same_conclusions(
    server: Any, rounds: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """GRR's reports say no more than their counts, so that the server has nothing an export
    lacks.
    """
    files = []
    for round in rounds:
        files.append(tmp_path / f"{round['name']}.json")
        assert run(["export", round["id"], "--url", server.url, "--output", str(files[-1])]) == 0
    capsys.readouterr()
    assert run(["recompute", str(files[1]), "--method", "unmix", "--history", str(files[0])]) == 0
    found = json.loads(capsys.readouterr().out)
    fields = {"method": "unmix", "history": [rounds[0]["name"]]}
    answer = server.http.post(f"/rounds/{rounds[1]['id']}/recover", json=fields).json()
    assert found["recovered"] == pytest.approx(answer["recovered"], abs=1e-12)
    for name, expected in answer["conclusions"].items():
        if name not in ("suspects", "dropped"):
            assert found["conclusions"][name] == pytest.approx(expected, abs=1e-9), name
    assert [each["label"] for each in found["conclusions"]["suspects"]] == [
        each["label"] for each in answer["conclusions"]["suspects"]
    ]
    assert run(["recompute", str(files[1]), "--method", "unmix", "--history", str(files[1])]) == 2
    assert "a round cannot be its own history" in capsys.readouterr().err


def test_every_conclusion_has_its_sentence() -> None:
    concluded = {
        "attack_probability": 0.987,
        "beta": 0.05,
        "beta_low": 0.04,
        "beta_high": 0.06,
        "suspects": [{"item": i, "label": f"x{i}", "probability": 0.9} for i in range(12)],
        "dropped": [{"screen": "sizes", "what": "of sizes next to impossible", "reports": 1}],
        "history_weight": 0.5,
    }
    assert list(sentences(concluded)) == [
        (
            "Probability of an attack: 0.99; share of malicious reports that shows 5.0 % (4.0 % to "
            "6.0 %)."
        ),
        "Raised by reports, with probability: "
        + ", ".join(f"x{i} (0.90)" for i in range(10))
        + " and 2 more.",
        "Left out by the filter sizes: 1 report, of sizes next to impossible.",
        "Probability that the earlier rounds predict this one: 0.50.",
    ]
    nothing = dict.fromkeys(concluded, None) | {"suspects": [], "dropped": []}
    assert list(sentences(nothing)) == []
