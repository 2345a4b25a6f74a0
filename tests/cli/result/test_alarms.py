"""Methods and alarms of a real server, as JSON and as text."""

import numpy as np
import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess

from ldprecover import OUE
from ldprecover.protocols.wire import pack

D = 12


@pytest.fixture(scope="module")
def weeks(server: ServerProcess) -> list[str]:
    """Two rounds; in the second 800 of 4,800 reports support two items of 12 and no other."""
    oracle, rng = OUE(2.0, D), np.random.default_rng(1)
    bits = np.zeros((800, D), dtype=np.uint8)
    bits[:, [4, 9]] = 1
    malicious = np.packbits(bits, axis=1, bitorder="little")
    ids = []
    for week in (1, 2):
        round = server.open_round("oue", 2.0, items=[f"item {i}" for i in range(D)])
        reports = oracle.perturb(rng.integers(D, size=4000), rng)
        for rows in (reports, malicious)[:week]:
            assert server.submit(round["id"], pack(rows)).status_code == 202
        if week == 1:
            server.http.post(f"/rounds/{round['id']}/close", headers=server.admin)
        ids.append(round["id"])
    return ids


@pytest.mark.parametrize("command", ["methods", "alarms"])
def test_json_is_the_response_of_the_server(
    on_server: Run, server: ServerProcess, weeks: list[str], command: str
) -> None:
    response = server.http.get(f"/rounds/{weeks[1]}/{command}").json()
    assert on_server(f"result {command} {weeks[1]} --json").json == response


def test_methods_state_their_needs(on_server: Run, weeks: list[str]) -> None:
    lines = on_server(f"result methods {weeks[1]}").out.splitlines()
    assert any(line.startswith("ldprecover ") and "counts" in line for line in lines)
    assert any(line.startswith("diffstats ") and "reports" in line for line in lines)


def test_alarms_show_which_are_raised(on_server: Run, weeks: list[str]) -> None:
    quiet, loud = (on_server(f"result alarms {id} --rate 0.000001").out for id in weeks)
    assert quiet.startswith(f"{weeks[0]}\nNone of 3 alarms raised.\n")
    assert "RAISED" not in quiet
    assert any(line.startswith("support-size") and "RAISED" in line for line in loud.splitlines())


def test_canaries_are_named_by_label(on_server: Run, weeks: list[str]) -> None:
    at = f"{weeks[1]} --canary 'item 4' --canary 'item 9'"
    assert "canaries" not in on_server(f"result alarms {weeks[1]}").out
    lines = on_server(f"result alarms {at}").out.splitlines()
    assert any(line.startswith("canaries") and "RAISED" in line for line in lines)
    recovered = on_server(f"result recover {at} --method ldprecover").words
    assert "does not use canaries" in recovered
    assert "'none'" in on_server(f"result recover {weeks[1]} --canary none").fails(2)
