"""Un-mixing: what honest users hold, what an attack added and noise, told apart in the counts of a round."""

from ldprecover.recovery.unmixing.measured import Measured, measured_of_counts
from ldprecover.recovery.unmixing.noise import noise_sd

__all__ = ["Measured", "measured_of_counts", "noise_sd"]
