"""What is un-mixed: estimates with their noise, from counts alone or from the reports that screens
have kept.
"""

from dataclasses import dataclass

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import Dropped
from ldprecover.recovery.unmixing.model.noise import noise_sd
from ldprecover.types import FloatArray


@dataclass(frozen=True, eq=False)
class NoisyEstimates:
    """Unbiased frequencies of the d items from `n` reports that were kept, and what screening them
    found.

    `z` are the frequencies, `sd` the standard deviations of their noise given who holds what,
    `suspects` the items that reports seem made to raise, `shared` those of them that dropped
    reports supported together, `dropped` the reports that were left out, `honest_kept` the
    probability that an honest report was not, `notes` sentences on all this.
    """

    z: FloatArray
    sd: FloatArray
    n: int
    suspects: tuple[int, ...] = ()
    shared: tuple[int, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    honest_kept: float = 1.0
    notes: tuple[str, ...] = ()


def estimates_of_counts(oracle: FrequencyOracle, poisoned: FloatArray, n: int) -> NoisyEstimates:
    """Return what the estimates of n reports tell by themselves."""
    p, q = oracle.p, oracle.q
    c0 = q + (p - q) * float(np.median(poisoned))  # the median of C/n
    return NoisyEstimates(
        poisoned, noise_sd(poisoned, n, p, q, c0, fixed_size=oracle.fixed_size is not None), n
    )
