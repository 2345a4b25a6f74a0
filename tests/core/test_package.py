"""What the package imports, and what it offers."""

import inspect
import pkgutil
import re
import subprocess
import sys
import textwrap
from importlib.metadata import version
from typing import Any

import pytest

import ldprecover
from ldprecover.protocols import PROTOCOLS

MODULES = [
    ldprecover.__name__,
    *(m.name for m in pkgutil.walk_packages(ldprecover.__path__, "ldprecover.")),
]


def test_works_where_only_numpy_is_installed() -> None:
    """A fresh interpreter that refuses every other package imports each module and recovers a
    round.
    """
    program = f"""
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top not in sys.stdlib_module_names and top not in {{"numpy", "ldprecover"}}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

for name in [name for name in sys.modules if name.split(".")[0] in ("numba", "llvmlite")]:
    del sys.modules[name]
sys.meta_path.insert(0, Refuse())
import importlib
for name in {[m for m in MODULES if "numba" not in m]!r}:
    importlib.import_module(name)
import numpy as np
from ldprecover import Estimates, Tally, frequency_oracle, recover
for protocol in ("grr", "oue", "olh"):
    oracle = frequency_oracle(protocol, 0.5, 10)
    tally = Tally.of(oracle, oracle.perturb(np.arange(10).repeat(20)))
    result = recover(oracle, Estimates.of(oracle, tally).frequencies)
    assert abs(result.recovered.sum() - 1) < 1e-12
assert "numba" not in sys.modules
print("worked")
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "worked"), done.stderr


def test_exports_the_class_of_every_protocol() -> None:
    assert {kind.__name__ for kind in PROTOCOLS.values()} <= set(ldprecover.__all__)
    assert all(getattr(ldprecover, kind.__name__) is kind for kind in PROTOCOLS.values())


def example_of(value: Any) -> str:
    """Return the indented lines that end with the last line of an example."""
    (block,) = re.findall(r"\n\n((?: {4,}.+\n|\n)+)(?=\S|$)", f"{inspect.getdoc(value)}\n")[-1:]
    return textwrap.dedent(block)


def test_example_of_the_package_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(example_of(ldprecover), {})
    estimated, recovered = capsys.readouterr().out.splitlines()
    assert len(re.findall(r"\d\.\d+", estimated)) > 1
    assert len(re.findall(r"\d\.\d*", recovered)) == 4


def test_version_and_simulate_load_when_they_are_used() -> None:
    """The import reads no metadata, and no library of the other packages."""
    program = """
import sys
import ldprecover
late = ("importlib.metadata", "ldprecover_experiments", "matplotlib", "pandas", "httpx")
assert not {*late} & {*sys.modules}, {*late} & {*sys.modules}
assert {"__version__", "simulate"} <= {*dir(ldprecover)}
print(ldprecover.__version__)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == version("ldprecover"), done.stderr
