"""Array types shared by the package."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
ComplexArray = NDArray[np.complex128]
FloatArray = NDArray[np.float64]
Int64Array = NDArray[np.int64]
Reports = NDArray[Any]
"""Reports of one protocol, one in each row, in its `wire.dtype`: exactly their packed bytes."""
UInt8Array = NDArray[np.uint8]
UInt16Array = NDArray[np.uint16]
UInt32Array = NDArray[np.uint32]
UInt64Array = NDArray[np.uint64]
Words = Callable[[int], UInt64Array]
"""A source of randomness: n -> n independent uniform 64-bit words."""

Rng = np.random.Generator
"""The source of all random numbers of a call, seeded by its caller."""
