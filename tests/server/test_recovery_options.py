"""Options of a recovery over HTTP: each in its range, and inferred targets."""

from typing import Any

import numpy as np
import pytest
from tests.conftest import PACKED
from tests.server.conftest import InProcess, problem_of

from ldprecover import frequency_oracle
from ldprecover.protocols import PROTOCOLS, crafter_of, wire
from ldprecover.recovery.malicious_models import MALICIOUS_MODELS

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


def test_every_option_takes_its_default_its_choices_and_both_ends_of_its_range(
    in_process: InProcess, round: str
) -> None:
    """As JSON has them, whole numbers without a point; an end may be refused for what the reports
    are.
    """
    sent = 0
    for method in in_process.get(f"/rounds/{round}/methods").json()["methods"]:
        targets = [3] if "targets" in method["needs"] else []
        for option in method["options"]:
            for value in (
                option["default"],
                *(option["choices"] or (option["low"], option["high"])),
            ):
                body = {
                    "method": method["name"],
                    "targets": targets,
                    "options": {option["name"]: value},
                }
                answer = in_process.post(f"/rounds/{round}/recover", json=body)
                is_default = value == option["default"]
                assert answer.status_code in ((200,) if is_default else (200, 422)), (
                    body,
                    answer.text,
                )
                assert "must be" not in answer.text, body
                sent += 1
    assert sent >= 3 * 9


@pytest.mark.parametrize("least", [4, 4.0])
def test_a_whole_number_is_an_integer_with_a_point_or_without(
    in_process: InProcess, round: str, least: Any
) -> None:
    body = {"method": "fiad", "options": {"least": least}}
    answer = in_process.post(f"/rounds/{round}/recover", json=body)
    assert answer.status_code == 200, answer.text
    assert any("Sets of 4 to 12" in note for note in answer.json()["notes"])


@pytest.mark.parametrize(
    "text", ["4.5", "13", "true", '"4"', "null", "[4]", "1e999", "NaN", "1" + 400 * "0"]
)
def test_an_option_that_is_no_such_number_is_refused(
    in_process: InProcess, round: str, text: str
) -> None:
    content = f'{{"method": "fiad", "options": {{"least": {text}}}}}'
    answer = in_process.post(
        f"/rounds/{round}/recover", content=content, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422, answer.text
    assert problem_of(answer) in ("invalid-request", "invalid-parameter")
    assert ("least" in answer.json()["detail"]) != (text == "NaN"), "NaN is no JSON"


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


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_malicious_model_of_a_protocol_is_accepted(
    in_process: InProcess, protocol: str
) -> None:
    opened = in_process.open_round(protocol, 1.0, domain_size=D)
    oracle = in_process.storage.rounds.parameters(in_process.storage.rounds.find(opened).seq).oracle
    in_process.post(
        f"/rounds/{opened}/reports", content=wire.pack(oracle.encode([3])), headers=PACKED
    )
    for model in MALICIOUS_MODELS:
        requests = {"targets": [3], "malicious_model": model}
        requests |= {"support": [1 / D * (oracle.fixed_size or 1)] * D} if model == "custom" else {}
        answer = in_process.post(f"/rounds/{opened}/recover", json=requests)
        fits = model in ("paper", "exact", "custom", crafter_of(oracle).model)
        assert answer.status_code == (200 if fits else 422), answer.text
