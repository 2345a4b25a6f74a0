"""The JavaScript client: its own tests, and its reports to a real server."""

import itertools
import json
import math
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.client_js.conftest import CLIENT, ReportInNode
from tests.conftest import ServerProcess

from ldprecover import frequency_oracle
from ldprecover.estimation.theory import attacker_success_rate
from ldprecover.protocols import PROTOCOLS

ROOT = CLIENT.parents[1]
OWN_TESTS = sorted((CLIENT / "tests").glob("*.test.js"))
TICKETS = {"access": "ticket"}
ROUNDS: list[dict[str, Any]] = [
    {"protocol": "grr"},
    {"protocol": "oue"},
    {"protocol": "olh", "hash_range": 300},
    {"protocol": "sue"},
    {"protocol": "ss", "subset_size": 8},
    {"protocol": "hr"},
    {"protocol": "llh"},
    {"protocol": "llh", "hash_range": 2, **TICKETS, "retention": "none"},
    {"protocol": "olh", "access": "key"},
]


@pytest.mark.parametrize("path", OWN_TESTS, ids=lambda path: path.name.partition(".")[0])
def test_javascript_tests_pass(node: str, path: Path) -> None:
    ended = subprocess.run([node, str(path)], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert re.search(r"^\S+ fail 0$", ended.stdout, re.MULTILINE), ended.stdout


def test_all_javascript_tests_are_run() -> None:
    assert len(OWN_TESTS) >= 8


def test_numbers_of_the_survey_are_those_of_the_core(node: str) -> None:
    rounds, expected = [], []
    for name, d in itertools.product(PROTOCOLS, (2, 5, 28, 290)):
        oracle = frequency_oracle(name, 1.5, d)
        own = next(iter(oracle.own.values()), None)
        rounds.append({"protocol": name, "epsilon": 1.5, "d": d, "own": own})
        greatest = frequency_oracle("grr", 1.5, d).p
        cases = 1000 if d == 290 else 100
        numbers = {"times": math.exp(1.5), "rate": attacker_success_rate(oracle), "chance": 1 / d}
        counts = {"cases": cases, "right": math.ceil(cases * greatest), "blind": round(cases / d)}
        expected.append(pytest.approx({"most": greatest, **numbers, **counts}, rel=1e-9))
    script = (
        f"import {{ privacyNumbers }} from '{(CLIENT / 'src/privacy.js').as_uri()}';"
        f"console.log(JSON.stringify({json.dumps(rounds)}.map(privacyNumbers)))"
    )
    command = [node, "--input-type=module", "--eval", script]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(ended.stdout) == expected


@pytest.mark.parametrize("fields", ROUNDS, ids=lambda fields: "-".join(map(str, fields.values())))
def test_real_server_counts_reports(
    server: ServerProcess, report_in_node: ReportInNode, fields: dict[str, Any]
) -> None:
    """The vectors, and the laws of reports in the client's own tests, are about what they count."""
    n = 30
    opened = server.open_round(**{"epsilon": 6.0, "domain_size": 12, **fields})
    access: dict[str, Any] = {"key": server.admin_key} if fields.get("access") == "key" else {}
    if fields.get("access") == "ticket":
        access = {"tickets": server.mint(f"/rounds/{opened['id']}", n)}
    receipts = report_in_node(url=server.url, round=opened["name"], values=[9] * n, **access)
    assert [(receipt.get("state"), receipt.get("duplicate")) for receipt in receipts] == [
        ("accepted", False)
    ] * n, receipts
    assert server.frequencies(opened["id"])["n"] == n
