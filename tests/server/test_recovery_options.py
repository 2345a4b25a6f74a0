"""Options of a recovery over HTTP: each in its range."""

from typing import Any

import numpy as np
import pytest
from tests.server.conftest import InProcess

from ldprecover import frequency_oracle
from ldprecover.protocols import wire

pytestmark = pytest.mark.sqlite


D = 12


@pytest.fixture
def round(in_process: InProcess) -> str:
    """A round of 400 OUE reports, of which every method but those for other protocols can be
    had.
    """
    oracle = frequency_oracle("oue", 1.0, D)
    rng = np.random.default_rng(1)
    opened = in_process.open_round("oue", 1.0, domain_size=D)
    reports = wire.pack(oracle.perturb(rng.integers(D, size=400), rng))
    assert in_process.submit(opened, reports).is_success
    return opened


@pytest.mark.parametrize("least", [4, 4.0])
def test_a_whole_number_is_an_integer_with_a_point_or_without(
    in_process: InProcess, round: str, least: Any
) -> None:
    body = {"method": "fiad", "options": {"least": least}}
    answer = in_process.post(f"/rounds/{round}/recover", json=body)
    assert answer.status_code == 200, answer.text
    assert any("Sets of 4 to 12" in note for note in answer.json()["notes"])
