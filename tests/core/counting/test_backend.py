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
        ("", "", [False, "numba", True]),
        ("numba", "", [False, "numba", True]),
        ("numpy", "", [False, "numpy", False]),
        (None, WITHOUT_NUMBA, [False, "numpy", False]),
        ("numpy", WITHOUT_NUMBA, [False, "numpy", False]),
    ],
    ids=["default", "empty", "numba", "numpy", "default without numba", "numpy without numba"],
)
def test_environment_chooses_the_backend_lazily(
    kernels: str | None, before: str, expected: list[object]
) -> None:
    """numba is imported neither with the package nor where numpy was asked for."""
    done = run(before, IMPORTED, SAY, kernels=kernels)
    assert done.stderr == ""
    assert json.loads(done.stdout) == expected


@pytest.mark.parametrize(
    "call", ["counting.backend()", "counting.warm_up()", "OUE(1, 4).support_counts(rows)"]
)
@pytest.mark.parametrize(
    ("kernels", "before", "message"),
    [
        ("numba", WITHOUT_NUMBA, "LDPRECOVER_KERNELS is numba, which cannot be imported"),
        ("cuda", "", "LDPRECOVER_KERNELS must be numpy or numba, not 'cuda'"),
    ],
)
def test_bad_arguments_are_rejected(kernels: str, before: str, message: str, call: str) -> None:
    rows = "import numpy; rows = numpy.zeros((3, 1), 'u1')"
    done = run(
        before,
        "from ldprecover import OUE, ParameterError, counting",
        rows,
        f"try: {call}",
        "except ParameterError as e: print(e)",
        kernels=kernels,
    )
    assert message in done.stdout
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
        "print(json.dumps([counting.backend(), counting.hasten(), counting.backend(), "
        "counting.hasten()]))"
    )
    done = run(before, "import json; from ldprecover import counting", say, kernels=kernels)
    assert json.loads(done.stdout) == expected
    assert done.stderr == ""


def test_seeded_reports_and_counts_do_not_depend_on_backend() -> None:
    """The same digest of reports and counts, of all protocols, with numpy and with numba."""
    lines = [
        "import hashlib, numpy as np",
        "from ldprecover import frequency_oracle",
        "sha, rng = hashlib.sha256(), np.random.default_rng(7)",
        "for protocol in ('grr', 'oue', 'olh'):",
        "    oracle = frequency_oracle(protocol, 0.5, 37)",
        "    reports = oracle.perturb(rng.integers(0, 37, 5000), rng)",
        "    sha.update(reports.tobytes() + oracle.support_counts(reports).tobytes())",
        "print(sha.hexdigest())",
    ]
    digests = {run(*lines, kernels=kernels).stdout for kernels in ("numpy", "numba")}
    assert len(digests) == 1
    assert len(digests.pop().strip()) == 64


def test_kernels_compile_without_a_cache_folder() -> None:
    """numba has no cache folder for a function without a source file, as in a read-only install."""
    namespace: dict[str, Any] = {}
    exec("def twice(x): return 2 * x", namespace)
    with pytest.raises(RuntimeError, match="no locator available"):
        numba.njit(cache=True)(namespace["twice"])
    compiled = numba_kernels._compiled(numba.int64, returns=numba.int64)(namespace["twice"])
    assert compiled(21) == 42
