"""Un-mixing: what honest users hold, what an attack added and noise, told apart in the counts of a
round.
"""

from ldprecover.recovery.unmixing.measured import Measured, measured_of_counts
from ldprecover.recovery.unmixing.noise import noise_sd
from ldprecover.recovery.unmixing.past import Past
from ldprecover.recovery.unmixing.posterior import Unmixed
from ldprecover.recovery.unmixing.screens import screen
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
