"""The package's face: its names, and when they are loaded."""

import subprocess
import sys

import pytest

import ldprecover_experiments


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        ldprecover_experiments.nonsense  # noqa: B018


def test_package_loads_names_lazily() -> None:
    """A study runs where none of the libraries for pictures, frames and files is installed."""
    code = """
import sys
for name in ("matplotlib", "pandas", "pyarrow", "polars", "typer"):
    sys.modules[name] = None
from ldprecover_experiments import Study
keys = {"attacks": "mga", "methods": "norm-sub", "trials": 1, "users": 500, "protocols": "grr"}
print(Study.of(keys).run()._repr_html_()[:7])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "<table>\n"


def test_a_missing_library_names_the_extra() -> None:
    code = """
import sys
sys.modules["pydantic"] = None
import ldprecover
try:
    ldprecover.simulate
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "simulate needs pydantic, which is not installed: pip install 'ldprecover[experiments]'\n"
    )
