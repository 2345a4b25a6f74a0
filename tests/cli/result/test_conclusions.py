"""Conclusions of un-mixing with a clean past, at a terminal and from exports."""

from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess

from ldprecover import GRR
from ldprecover.protocols.wire import pack

D = 40
SHARES = 0.9 ** np.arange(D) / (0.9 ** np.arange(D)).sum()


@pytest.fixture(scope="module")
def rounds(server: ServerProcess) -> list[str]:
    """A clean closed GRR round, and one of which a tenth of the reports are of item 30."""
    oracle, rng = GRR(2.0, D), np.random.default_rng(1)
    names = []
    for malicious in (0, 500):
        opened = server.open_round("grr", 2.0, items=[f"city {i}" for i in range(D)])
        genuine = oracle.perturb(rng.choice(D, 4500, p=SHARES), rng)
        rows = np.concatenate([genuine, oracle.encode(np.full(malicious, 30), rng)])
        assert server.submit(opened["id"], pack(rows)).status_code == 202
        if not malicious:
            server.http.post(f"/rounds/{opened['id']}/close", headers=server.admin)
        names.append(opened["name"])
    return names


def test_terminal_shows_intervals_and_conclusions(on_server: Run, rounds: list[str]) -> None:
    line = f"result recover {rounds[1]} --method unmix --history {rounds[0]}"
    recovery = on_server(f"{line} --json").json
    result = on_server(f"{line} --top 3")
    lines = result.out.splitlines()
    assert "95 % interval" in lines[1]
    first, conclusions = int(np.argmax(recovery["recovered"])), recovery["conclusions"]
    low, high = (100 * conclusions[end][first] for end in ("lower", "upper"))
    assert f"{low:.2f} to {high:.2f}" in lines[2]
    assert " ".join(conclusions["sentences"]) in result.words


def test_exports_give_the_same_conclusions(
    on_server: Run, server: ServerProcess, rounds: list[str]
) -> None:
    """GRR's reports tell no more than their counts, so exports lack nothing."""
    clean, poisoned = rounds
    for name in rounds:
        on_server(f"round export {name} --output {name}.json").succeeds()
    line = f"file recompute {poisoned}.json --method unmix --history"
    result = on_server(f"{line} {clean}.json").json
    fields: dict[str, Any] = {"method": "unmix", "history": [clean]}
    response = server.http.post(f"/rounds/{poisoned}/recover", json=fields).json()
    assert result["recovered"] == pytest.approx(response["recovered"], abs=1e-12)
    probability = response["conclusions"]["attack_probability"]
    assert result["conclusions"]["attack_probability"] == pytest.approx(probability, abs=1e-9)
    own = on_server(f"{line} {poisoned}.json").fails(2)
    assert "a round cannot be its own history" in own


def test_round_for_numbers_says_that_an_attack_cannot_be_seen(
    on_server: Run, server: ServerProcess
) -> None:
    """The command that it names bounds what malicious reports could do."""
    opened = server.open_round("grr", 1.0, items=["-1", "1"])
    oracle, rng = GRR(1.0, 2), np.random.default_rng(1)
    rows = oracle.perturb(rng.choice(2, 4000, p=[0.4, 0.6]), rng)
    assert server.submit(opened["id"], pack(rows)).status_code == 202
    recovered = on_server(f"result recover {opened['name']}").words
    assert "The reports of this round could not show an attack." in recovered
    assert "`ldprecover result certify --malicious-share 0.05`" in recovered
    assert "mean" in on_server(f"result certify {opened['name']} --malicious-share 0.05").words
