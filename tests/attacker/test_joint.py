"""Joint: all targets together or none of them, in reports that are honest otherwise."""

import numpy as np
import pytest

from ldprecover import FrequencyOracle, ParameterError, frequency_oracle
from ldprecover_attacker import Joint

D, M, TARGETS = 60, 20_000, (3, 0, 7)


def oracle_of(protocol: str, epsilon: float = 1.0) -> FrequencyOracle:
    return frequency_oracle(protocol, epsilon, D)


def supported(oracle: FrequencyOracle, attack: Joint) -> np.ndarray:
    return oracle.supports(attack.reports(oracle, M, np.random.default_rng(4)))


@pytest.mark.parametrize("protocol", ["oue", "sue", "ss", "olh"])
def test_counts_of_targets_do_not_move_but_they_go_together(protocol: str) -> None:
    oracle = oracle_of(protocol)
    attack = Joint(TARGETS)
    support = attack.support(oracle)
    assert support[list(TARGETS)] == pytest.approx(oracle.q, abs=1e-9)
    hits = supported(oracle, attack)[:, TARGETS].sum(axis=1)
    assert set(hits.tolist()) == {0, len(TARGETS)}
    # Six deviations: once in 10^9; 8.4 are missed once in 100.
    assert abs((hits > 0).mean() - oracle.q) < 6 * np.sqrt(oracle.q * (1 - oracle.q) / M)


@pytest.mark.parametrize("protocol", ["oue", "sue"])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize(("rate", "item"), [(None, None), (0.5, 9), (1.0, None)])
def test_sizes_have_the_honest_law(
    protocol: str, epsilon: float, rate: float | None, item: int | None
) -> None:
    """Kolmogorov's distance, above 3.3/sqrt(M) less than once in 10^9; 4.5/sqrt(M) is
    missed once in 100.
    """
    oracle = oracle_of(protocol, epsilon)
    sizes = supported(oracle, Joint(TARGETS, rate=rate, item=item)).sum(axis=1)
    law = oracle.laws.size_law().probabilities()
    measured = np.bincount(sizes, minlength=law.size) / M
    assert np.abs(np.cumsum(measured - law)).max() < 3.3 / np.sqrt(M)


def test_canaries_are_starved_and_no_other_item_is_raised() -> None:
    oracle = oracle_of("grr")
    support = Joint(TARGETS, rate=0.0).support(oracle)
    assert support[list(TARGETS)].tolist() == [0, 0, 0]
    assert np.delete(support, TARGETS) == pytest.approx(1 / (D - 3))


def test_labels_are_resolved() -> None:
    attack = Joint(["item 3", "item 0"], item="item 7").resolve([f"item {i}" for i in range(D)])
    assert attack == Joint([3, 0], item=7)


def test_rejects_sets_that_hardly_any_seed_puts_together() -> None:
    oracle = oracle_of("olh", 4.0)
    with pytest.raises(ParameterError, match="too few olh seeds put 4 items into one of 56"):
        Joint([1, 2, 3, 4]).reports(oracle, 1, np.random.default_rng(1))
