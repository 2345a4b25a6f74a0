"""Estimates with their noise: from counts alone, or from the reports that pass the filters."""

from dataclasses import dataclass

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import Dropped
from ldprecover.recovery.unmixing.model.noise import noise_sd
from ldprecover.types import FloatArray


@dataclass(frozen=True, eq=False)
class NoisyEstimates:
    """Unbiased frequencies `z` of the d items from `n` reports, and what filtering found.

    `sd` are the standard deviations of the noise of z, given what each user holds. `suspects` are
    the items that reports seem made to raise; of these, dropped reports supported the `shared` ones
    together. `dropped` are the reports left out, `honest_kept` is the probability that an honest
    report passes, and `notes` are sentences on the filters.
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
    """Return the estimates of n unfiltered reports with their noise."""
    p, q = oracle.p, oracle.q
    c0 = q + (p - q) * float(np.median(poisoned))  # the median of C/n
    return NoisyEstimates(
        poisoned, noise_sd(poisoned, n, p, q, c0, fixed_size=oracle.fixed_size is not None), n
    )
