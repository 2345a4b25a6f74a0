"""Which kernels count, in separate processes: the choice is made once for each."""

import json
import os
import subprocess
import sys
from typing import Any

import numba
import pytest

from ldprecover.counting import numba_kernels

IMPORTED = (
    "import sys, json, ldprecover; from ldprecover import counting; early = "
    "bool(sys.modules.get('numba'))"
)
SAY = "print(json.dumps([early, counting.backend(), bool(sys.modules.get('numba'))]))"
WITHOUT_NUMBA = "import sys; sys.modules['numba'] = None"


def run(*lines: str, kernels: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if name != "LDPRECOVER_KERNELS"
    }
    if kernels is not None:
        environment["LDPRECOVER_KERNELS"] = kernels
    command = [sys.executable, "-W", "error", "-c", "\n".join(lines)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(
    ("kernels", "before", "expected"),
    [
        (None, "", [False, "numba", True]),
        ("numpy", "", [False, "numpy", False]),
        (None, WITHOUT_NUMBA, [False, "numpy", False]),
    ],
)
def test_environment_chooses_the_backend_lazily(
    kernels: str | None, before: str, expected: list[object]
) -> None:
    """numba is imported neither with the package nor where numpy was asked for."""
    done = run(before, IMPORTED, SAY, kernels=kernels)
    assert done.stderr == ""
    assert json.loads(done.stdout) == expected


@pytest.mark.parametrize(
    ("kernels", "before", "message"),
    [
        ("numba", WITHOUT_NUMBA, "LDPRECOVER_KERNELS is numba, which cannot be imported"),
        ("cuda", "", "LDPRECOVER_KERNELS must be numpy or numba, not 'cuda'"),
    ],
)
def test_impossible_backends_are_rejected(kernels: str, before: str, message: str) -> None:
    lines = ["from ldprecover import OUE, ParameterError, counting"]
    calls = ("counting.backend()", "counting.warm_up()", "OUE(1, 4).support_counts(ROWS)")
    for call in calls:
        lines += [f"try: {call}", "except ParameterError as e: print(e)"]
    done = run(before, "import numpy; ROWS = numpy.zeros((3, 1), 'u1')", *lines, kernels=kernels)
    assert done.stdout.count(message) == len(calls)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("kernels", "before", "expected"),
    [
        ("late", "", ["numpy", True, "numba", False]),
        ("late", WITHOUT_NUMBA, ["numpy", False, "numpy", False]),
        ("numpy", "", ["numpy", False, "numpy", False]),
    ],
)
def test_late_kernels_are_numpy_until_they_are_hastened(
    kernels: str, before: str, expected: list[Any]
) -> None:
    say = (
        "print(json.dumps([counting.backend(), counting.load_fast_kernels(), counting.backend(), "
        "counting.load_fast_kernels()]))"
    )
    done = run(before, "import json; from ldprecover import counting", say, kernels=kernels)
    assert json.loads(done.stdout) == expected
    assert done.stderr == ""


def test_kernels_compile_without_a_cache_folder() -> None:
    """numba has no cache folder for a function without a source file, as in a read-only install."""
    namespace: dict[str, Any] = {}
    exec("def twice(x): return 2 * x", namespace)
    with pytest.raises(RuntimeError, match="no locator available"):
        numba.njit(cache=True)(namespace["twice"])
    compiled = numba_kernels._compiled(numba.int64, returns=numba.int64)(namespace["twice"])
    assert compiled(21) == 42
