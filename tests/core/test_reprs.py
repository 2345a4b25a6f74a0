"""What a notebook shows of a value: one short line, however many items it has."""

from typing import Any

import numpy as np
import pytest
from tests.randomness import rng

from ldprecover import Estimates, RoundExport, RoundParameters, Tally, frequency_oracle, recover
from ldprecover.certificate import certify
from ldprecover.planning import PlanRequest, plan

D = 200
PARAMETERS = RoundParameters("olh", 1.0, tuple(map(str, range(D))))
ORACLE = PARAMETERS.oracle
REPORTS = ORACLE.perturb(np.arange(D).repeat(5), np.random.default_rng(1))
TALLY = Tally.of(ORACLE, REPORTS)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (TALLY, "Tally(1,000 reports, 200 numbers)"),
        (PARAMETERS, "RoundParameters(olh, epsilon 1, hash_range 4, 200 items)"),
        (
            RoundExport(round="R1", name="lunch", parameters=PARAMETERS, tally=TALLY),
            "RoundExport(lunch, olh, epsilon 1, 200 items, 1,000 reports)",
        ),
        (
            certify(ORACLE, TALLY, 0.05),
            "Certificate(1,000 reports, 200 items, malicious share 0.05, confidence 0.95)",
        ),
        (
            plan(PlanRequest(domain_size=D, users=1000, epsilon=1.0), ["oue"]),
            (
                "Plan(oue; best PlannedRound(oue, 200 items, 1,000 users, epsilon 1, "
                "standard error 0.0607))"
            ),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_repr_is_one_line_of_facts(value: Any, shown: str) -> None:
    assert repr(value) == shown


def test_repr_of_estimates_names_the_first_five() -> None:
    assert repr(Estimates.of(ORACLE, TALLY)).startswith("Estimates(1,000 reports, 200 items: item ")
    assert repr(Estimates.of(ORACLE, TALLY)).count("%") == 5


def test_repr_of_conclusions_has_no_vectors() -> None:
    oracle = frequency_oracle("oue", 1.0, D)
    conclusions = recover(
        oracle, oracle.perturb(np.arange(D).repeat(5), rng(0)), "unmix"
    ).conclusions
    assert repr(conclusions).startswith("Conclusions(cannot_be_seen, ")
    assert len(repr(conclusions)) < 100
