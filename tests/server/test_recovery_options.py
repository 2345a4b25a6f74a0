"""Options of a recovery over HTTP: each in its range, and inferred targets."""

from typing import Any

import numpy as np
import pytest
from tests.server.conftest import InProcess, problem_of

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


def test_inferred_targets_are_empty_if_nothing_rose(in_process: InProcess) -> None:
    """Two rounds of the same reports."""
    oracle = frequency_oracle("oue", 1.0, D)
    reports = wire.pack(oracle.perturb(np.arange(300) % D, np.random.default_rng(2)))
    for name in ("first", "second"):
        opened = in_process.open_round("oue", 1.0, domain_size=D, name=name)
        in_process.submit(opened, reports)
        if name == "first":
            in_process.close_round(opened)
    infer: dict[str, Any] = {"targets": "infer", "history": ["first"]}
    answer = in_process.post(f"/rounds/{opened}/recover", json=infer).json()
    named = in_process.post(f"/rounds/{opened}/recover", json={"targets": [], "eta": 0}).json()
    words = "no item rose beyond noise, so no targets were taken"
    assert answer["targets"] == []
    assert answer["eta"] == 0, "an assumed attack would only stretch the noise"
    assert answer["notes"] == [*named["notes"], f"Targets were inferred: {words}, and eta is 0."]
    projected = in_process.post(f"/rounds/{opened}/recover", json={"method": "norm-sub"}).json()
    assert answer["recovered"] == projected["recovered"]
    for body, reason in (
        ({"method": "detection"}, "detection needs the attacked items (targets)"),
        ({"malicious_model": "padded"}, "malicious_model padded needs targets"),
    ):
        refused = in_process.post(f"/rounds/{opened}/recover", json=body | infer)
        assert problem_of(refused) == "invalid-parameter"
        assert refused.json()["detail"] == f"{reason}; {words}"
