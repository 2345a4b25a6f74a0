"""The method auto: which method it chooses, and what it says about it."""

from typing import Any

import numpy as np
import pytest

from ldprecover import RecoveryRequest, Tally, recover
from ldprecover.protocols import GRR, HR, OUE, FrequencyOracle
from ldprecover.recovery.unmixing.evidence import PRIOR

N = 2_000


def _frequencies(oracle: FrequencyOracle) -> Any:
    users = np.random.default_rng(1).integers(0, oracle.domain_size // 2, N)
    return oracle.estimate(
        Tally.of(oracle, oracle.perturb(users, np.random.default_rng(2))).counts(oracle), N
    )


@pytest.mark.parametrize(
    ("oracle", "n", "chosen", "reason"),
    [
        (OUE(1, 16), N, "unmix", "it fits oue over 16 items"),
        (GRR(1, 30), N, "unmix", "it fits grr over 30 items"),
        (OUE(1, 15), N, "unmix", "it fits oue over 15 items"),
        (HR(1, 30), N, "norm-sub", "unmix: hr lacks a law"),
        (OUE(1, 30), None, "norm-sub", "unmix needs the number of reports"),
        (
            OUE(1, 30),
            299,
            "norm-sub",
            "299 reports over 30 items are too few to tell an attack from",
        ),
        (GRR(10, 10_001), 10 * N, "norm-sub", "over more than 10,000 items unmix takes"),
        (GRR(10, 30), 40 * N, "norm-sub", "the noise of 80,000 reports is only 0.0007 of"),
    ],
)
def test_chooses_a_method_and_says_why(
    oracle: FrequencyOracle, n: int | None, chosen: str, reason: str
) -> None:
    f = _frequencies(oracle)
    result, named = recover(oracle, f, n=n), recover(oracle, f, chosen, n=n)
    assert result.method == named.method == chosen
    assert result.recovered.tolist() == named.recovered.tolist()
    (choice,) = set(result.notes) - set(named.notes)
    assert choice.startswith(f"auto chose {chosen}: {reason}")


def test_states_the_evidence_where_it_projects() -> None:
    """HR holds no evidence but items below zero, so the reports could not show 5 % of fakes."""
    oracle = HR(1, 30)
    conclusions = recover(oracle, _frequencies(oracle), n=N).conclusions
    assert conclusions is not None
    assert conclusions.attack == "cannot_be_seen"
    assert conclusions.attack_probability == pytest.approx(PRIOR)
    assert conclusions.beta is None
    assert recover(oracle, _frequencies(oracle)).conclusions is None


def test_names_the_assumptions_that_the_chosen_method_ignores() -> None:
    result = recover(OUE(1, 4), [0.4, 0.3, 0.2, 0.1], RecoveryRequest(eta=0.1, targets=[1]))
    assert (result.method, result.eta, result.targets) == ("norm-sub", 0, ())
    assert "norm-sub does not use eta, targets." in result.notes
