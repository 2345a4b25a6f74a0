"""The grid on which densities are computed by the fast Fourier transform."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldprecover.types import ComplexArray, FloatArray

_LEAST, _MOST = 256, 16384  # points of a grid
_REACH = 7  # standard deviations of noise kept apart on the circle: 1e-12 wraps around


@dataclass(frozen=True)
class Grid:
    """`size` points on a circle, `step` apart. Frequencies and spikes sum to at most `top`."""

    step: float
    size: int
    top: float

    @cached_property
    def omega(self) -> FloatArray:
        """The angular frequencies of a real transform, size/2 + 1 of them."""
        return np.asarray(2 * np.pi * np.fft.rfftfreq(self.size, self.step), np.float64)

    @cached_property
    def roots(self) -> ComplexArray:
        """The `size` roots of unity."""
        return np.asarray(np.exp(2j * np.pi * np.arange(self.size) / self.size), np.complex128)

    def damping(self, sd: float) -> FloatArray:
        """Return the transform of normal noise, with a deviation of at least one step."""
        damping: FloatArray = np.exp(-((max(sd, self.step) * self.omega) ** 2) / 2)
        return damping


def grid_over(low: float, high: float, least: float, largest: float) -> Grid:
    """Return a grid for values from `low` to `high` with noise of deviation `least` to `most`.

    Its step is a third of the least deviation, unless that takes more than 16,384 points.
    """
    top = max(high, 0.0) + _REACH * largest + 0.05
    need = 2 * _REACH * largest + max(0.0, -low) + 2 * top
    step, size = least / 3, _LEAST
    while step * size < need and size < _MOST:
        size *= 2
    return Grid(max(step, need / size), size, top)
