"""Reports and expectations of every attack are pinned, so that a published attack can be repeated.

Write new pins after an intended change: python -m tests.attacker.test_pinned_reports
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from tests.attacker.conftest import CASES

from ldprecover import FrequencyOracle
from ldprecover_attacker import Attack

PINS = Path(__file__).with_name("pinned_reports.json")
SEED, USERS = 20_240_516, 257


def pin(oracle: FrequencyOracle, attack: Attack) -> tuple[str, float]:
    """Return a digest of the reports and of the generator after them, and a number that differs for
    any two pi.
    """
    rng = np.random.default_rng(SEED)
    reports = attack.reports(oracle, USERS, rng)
    digest = hashlib.sha256(reports.tobytes() + rng.bytes(8)).hexdigest()[:16]
    pi = attack.support(oracle, np.random.default_rng(SEED), m=USERS)
    return digest, float(pi @ np.sqrt(np.arange(1, pi.size + 1)))


@pytest.mark.parametrize("name", json.loads(PINS.read_text()))
def test_a_generators_state_gives_the_pinned_reports(name: str) -> None:
    digest, expected = json.loads(PINS.read_text())[name]
    actual, support = pin(*CASES[name])
    assert actual == digest
    assert support == pytest.approx(expected, rel=1e-9)


if __name__ == "__main__":
    pins = {name: pin(*case) for name, case in CASES.items() if case[0].epsilon == 0.5}
    PINS.write_text(
        "{\n" + ",\n".join(f"  {json.dumps(n)}: {json.dumps(p)}" for n, p in pins.items()) + "\n}\n"
    )
