"""Estimates with their noise: from counts alone, or from the reports that pass the filters."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import Dropped
from ldprecover.recovery.unmixing.filters.mass_balance import MassBalance
from ldprecover.recovery.unmixing.model.noise import noise_sd
from ldprecover.recovery.unmixing.raised_sets import Addition
from ldprecover.types import FloatArray


@dataclass(frozen=True, eq=False)
class NoisyEstimates:
    """Unbiased frequencies `z` of the d items from `n` reports, and what filtering found.

    `sd` are the standard deviations of the noise of z, given what each user holds. `suspects` are
    the items that too many reports share, with the probability by these reports alone that they
    raised them. `dropped` are the reports left out, `honest_kept` is the probability that
    an honest report passes, and `notes` are sentences on the filters. `balance` is the evidence of
    what the reports that pass added to the named targets, or else to the suspects; `additions` are
    what they may have added, by their histogram.
    """

    z: FloatArray
    sd: FloatArray
    n: int
    suspects: Mapping[int, float] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    honest_kept: float = 1.0
    notes: tuple[str, ...] = ()
    balance: MassBalance | None = None
    additions: tuple[Addition, ...] = ()


def estimates_of_counts(oracle: FrequencyOracle, poisoned: FloatArray, n: int) -> NoisyEstimates:
    """Return the estimates of n unfiltered reports with their noise."""
    p, q = oracle.p, oracle.q
    c0 = q + (p - q) * float(np.median(poisoned))  # the median of C/n
    return NoisyEstimates(
        poisoned, noise_sd(poisoned, n, p, q, c0, fixed_size=oracle.fixed_size is not None), n
    )
