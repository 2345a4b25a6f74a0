"""The attacker success rate: enumerated reports, and its bound."""

from itertools import product

import pytest
from tests.core.protocols.listed import listed

from ldprecover import frequency_oracle
from ldprecover.estimation.theory import attacker_success_rate
from ldprecover.protocols import PROTOCOLS
from ldprecover.protocols.grr import GRR


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_is_that_of_the_best_guess_from_every_report(protocol: str) -> None:
    # At a large epsilon the default has too many hash functions to enumerate.
    own = 3 if protocol in ("olh", "llh") else None
    for d, epsilon in product((2, 3, 5), (0.01, 1.0, 10.0)):
        oracle = frequency_oracle(protocol, epsilon, d, own)
        _, laws = listed(oracle)
        best = laws.max(axis=0).sum() / d
        assert attacker_success_rate(oracle) == pytest.approx(best, rel=1e-12), oracle


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_is_between_a_blind_guess_and_that_of_grr(protocol: str) -> None:
    for d, epsilon in product((2, 100_000), (0.01, 1.0, 10.0)):
        rate = attacker_success_rate(frequency_oracle(protocol, epsilon, d))
        assert 1 / d < rate <= GRR(epsilon, d).p * (1 + 1e-9)


def test_is_the_bound_for_a_protocol_without_laws() -> None:
    class Unknown(GRR):
        traits = type(GRR.traits)()

    assert attacker_success_rate(Unknown(1.0, 10)) == pytest.approx(GRR(1.0, 10).p)
