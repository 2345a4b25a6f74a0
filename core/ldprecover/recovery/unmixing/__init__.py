"""Un-mixing: what honest users hold, what an attack added and noise, told apart in the counts of a
round.
"""

from ldprecover.recovery.unmixing.estimates import Measured, measured_of_counts
from ldprecover.recovery.unmixing.filters.report_filters import screen
from ldprecover.recovery.unmixing.history import Past
from ldprecover.recovery.unmixing.model.noise import noise_sd
from ldprecover.recovery.unmixing.model.posterior import Unmixed
from ldprecover.recovery.unmixing.unmixer import LEAST_ITEMS, past_of, unmix

__all__ = [
    "LEAST_ITEMS",
    "Measured",
    "Past",
    "Unmixed",
    "measured_of_counts",
    "noise_sd",
    "past_of",
    "screen",
    "unmix",
]
