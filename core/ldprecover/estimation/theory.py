"""How far malicious reports can move an estimate, and how much a report tells of its user."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldprecover._checks import check_real, check_whole
from ldprecover.protocols import FrequencyOracle


@dataclass(frozen=True)
class WorstChange:
    """How far an attack can move the expected sum of some estimates: up by `rise`, down by `fall`.

    A distribution's sum stays within 0 and 1.
    """

    rise: float
    fall: float


def worst_change(
    oracle: FrequencyOracle, beta: float, items: int, share: float | None = None
) -> WorstChange:
    """Return how far a share beta of malicious reports can move the sum over `items` of d items.

    A bin, a range or the first k are such sums. Genuine users hold a `share` of these items; None
    allows any share. Let f be their share, r the number of items, and t the number of them that a
    report supports. The expected sum becomes (1 - beta) f + beta (t - rq)/(p - q) (paper, Equation
    1 and Lemma 1). The extremes are the most and the fewest of the items that any report supports:
    r and 0 where sizes are free. Under OLH these are bounds, since such a report takes a search for
    its seed. Noise comes on top.

    Raises ParameterError.
    """
    d, p, q = oracle.domain_size, oracle.p, oracle.q
    beta = check_real("beta", beta, 0, 1)
    items = check_whole("items", items, 1, d)
    if share is not None:
        share = check_real("share", share, 0, 1)
    size = oracle.fixed_size
    upper = items if size is None else min(items, size)
    lower = 0 if size is None else max(0, size - (d - items))
    lowest, highest = (0.0, 1.0) if share is None else (share, share)
    rise = beta * ((upper - items * q) / (p - q) - lowest)
    fall = beta * (highest - (lower - items * q) / (p - q))
    return WorstChange(rise, fall)


def attacker_success_rate(oracle: FrequencyOracle) -> float:
    """Return the probability that whoever sees one report guesses the user's item from it.

    This is the ASR of Arcolezi and Gambs (arXiv:2503.01482, data reconstruction). All d items are
    equally likely before, so a blind guess succeeds with 1/d. The guess is the best one: an item
    that the report supports, or any item if it supports none. It is exact for the protocols of this
    package, of OLH under an ideal hash. No epsilon-LDP protocol exceeds e^eps/(e^eps + d - 1), the
    rate of GRR, which is returned for a protocol whose laws are not known.

        attacker_success_rate(frequency_oracle("oue", 1.0, 102))  # 0.018
    """
    laws, d = oracle.laws, oracle.domain_size
    # How much more likely a report is under an item that it supports.
    ratio = laws.likelihood_ratio
    if ratio is not None and laws.sizes is not None:
        sizes = np.arange(d + 1)
        guesses = np.where(sizes > 0, ratio, 1.0) / (ratio * sizes + d - sizes)
        return float(laws.sizes.probabilities() @ guesses)
    if ratio is not None and laws.report_sums is not None:
        supporting = float(np.mean(laws.report_sums.masses(np.ones(d)) > 0.5))
        return (1 + (ratio - 1) * supporting) / (d * (1 + (ratio - 1) * laws.q))
    largest = math.exp(oracle.epsilon)
    return largest / (largest + d - 1)
