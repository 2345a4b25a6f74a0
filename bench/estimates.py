"""Estimates beside those of multi-freq-ldpy (Arcolezi et al.) from the same reports: python -m
bench.estimates

The tests compare with pure-ldp, which has no subset selection. This peer has it, but comes as
source alone, and so stays out of what the tests install. Two things differ there:

- A report of subset selection is an array of k items, one of unary encoding a vector of floats.
  Here both are packed bits.
- Negative estimates are set to zero, and the rest is scaled to sum to one. This step is left off:
  the counts, p and q are the peer's own, and what is made of them is (C/n - q)/(p - q).
"""

import importlib
import sys
import warnings
from collections.abc import Callable
from types import ModuleType

import numpy as np

from ldprecover import Estimates, FrequencyOracle, Tally, frequency_oracle

USERS = 2_000
SETTINGS = ((2, 1.0), (37, 0.8), (102, 0.5), (490, 0.5), (102, 3.0))
"""d and epsilon."""


def unprojected(counts: np.ndarray, n: int, p: float, q: float) -> np.ndarray:
    """Return unbiased estimates, in the place of the peer's `MI`."""
    return (counts / n - q) / (p - q)


def peer(name: str) -> ModuleType:
    """Return one of the peer's modules, with its estimates unprojected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importlib.import_module(f"multi_freq_ldpy.pure_frequency_oracles.{name}")
    module.MI = unprojected
    return module


def of_subsets(oracle: FrequencyOracle, bits: np.ndarray) -> np.ndarray:
    return peer("SS").SS_Aggregator_MI(
        [np.flatnonzero(row) for row in bits], oracle.domain_size, oracle.epsilon
    )


def of_bits(oracle: FrequencyOracle, bits: np.ndarray) -> np.ndarray:
    return peer("UE").UE_Aggregator_MI(list(bits.astype(float)), oracle.epsilon, optimal=False)


THEIRS: dict[str, Callable[[FrequencyOracle, np.ndarray], np.ndarray]] = {
    "ss": of_subsets,
    "sue": of_bits,
}


def main() -> int:
    """Print the largest difference for each protocol and setting; return 1 where one is more than
    rounding.
    """
    different = 0
    for protocol, theirs in THEIRS.items():
        for d, epsilon in SETTINGS:
            oracle = frequency_oracle(protocol, epsilon, d)
            rng = np.random.default_rng(1)
            reports = oracle.perturb(rng.integers(0, d, USERS), rng)
            ours = Estimates.of(oracle, Tally.of(oracle, reports)).frequencies
            try:
                peers = theirs(oracle, oracle.supports(reports))
            except ImportError as error:
                print(f"estimates: skipped: {error}; `make bench` installs it")
                return 0
            equal = np.allclose(ours, peers, rtol=1e-9, atol=1e-12)
            different += not equal
            line = (
                f"{protocol} at d = {d}, epsilon = {epsilon}: differ by "
                f"{np.abs(ours - peers).max():.0e} at most"
            )
            print(line + ("" if equal else ", which is more than rounding"))
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
