"""The limits in C: compiled with gcc into a temporary folder and called through ctypes."""

import ctypes
import math
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ldprecover import OLH, OUE

FLAGS = ("-O3", "-march=x86-64-v3")
_SOURCES = Path(__file__).parent / "c"


class CLimits:
    """The compiled functions. Raises RuntimeError, saying why, where they cannot be had."""

    def __init__(self) -> None:
        gcc = shutil.which("gcc")
        if gcc is None:
            raise RuntimeError("gcc is not installed: `apt-get install gcc`")
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "limits.so"
            sources = [str(_SOURCES / name) for name in ("hadamard.c", "olh.c", "oue.c")]
            command = [gcc, *FLAGS, "-shared", "-fPIC", "-o", str(library), *sources]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(
                    f"gcc {' '.join(FLAGS)} fails here: {done.stderr.strip().splitlines()[0]}"
                )
            self._library = ctypes.CDLL(str(library))

    def olh(self, oracle: OLH, reports: np.ndarray, name: str) -> Callable[[], np.ndarray]:
        """Return the count by `olh_multiply` or `olh_range`, from columns of 32 bits prepared
        beforehand.
        """
        seeds = np.ascontiguousarray(reports["seed"])
        buckets = reports["bucket"].astype(np.uint32)

        def count() -> np.ndarray:
            counts = np.zeros(oracle.domain_size, dtype=np.int64)
            self._library[name](
                _pointer(seeds),
                _pointer(buckets),
                ctypes.c_size_t(len(seeds)),
                ctypes.c_uint32(oracle.domain_size),
                ctypes.c_uint32(oracle.hash_range),
                _pointer(counts),
            )
            return counts

        return count

    def oue(self, oracle: OUE, rows: np.ndarray) -> Callable[[], np.ndarray]:
        """Return the count by `oue_carry_save`; a line is the fewest rows that fill whole words."""
        group = 8 // math.gcd(oracle.row_bytes, 8)
        if len(rows) % group:
            raise ValueError(f"the number of rows must be a multiple of {group}")
        width = group * oracle.row_bytes // 8

        def count() -> np.ndarray:
            counts = np.zeros(64 * width, dtype=np.int64)
            lines = ctypes.c_size_t(len(rows) // group)
            self._library.oue_carry_save(
                _pointer(rows), lines, ctypes.c_size_t(width), _pointer(counts)
            )
            return counts.reshape(group, 8 * oracle.row_bytes).sum(axis=0)[: oracle.domain_size]

        return count

    def walsh_hadamard(self, values: np.ndarray) -> Callable[[], np.ndarray]:
        """Return the transform of a copy of the values."""

        def transform() -> np.ndarray:
            transformed = values.copy()
            self._library.walsh_hadamard(_pointer(transformed), ctypes.c_size_t(len(values)))
            return transformed

        return transform


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
