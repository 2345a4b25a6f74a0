"""The packages' layers: what plays rounds knows neither server nor command, and the command
computes nothing of it.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ldprecover_experiments

ROOT = Path(ldprecover_experiments.__file__).parents[2]
BELOW = {
    "core/ldprecover": set(),
    "interface/ldprecover_interface": {"ldprecover"},
    "cluster/ldprecover_cluster": {"ldprecover"},
    "client/ldprecover_client": {"ldprecover", "ldprecover_interface"},
    "attacker/ldprecover_attacker": {"ldprecover", "ldprecover_client"},
    "experiments/ldprecover_experiments": {
        *("ldprecover", "ldprecover_cluster", "ldprecover_client", "ldprecover_attacker"),
    },
    "server/ldprecover_server": {"ldprecover", "ldprecover_cluster", "ldprecover_interface"},
    "bench": {
        *(
            "ldprecover",
            "ldprecover_client",
            "ldprecover_attacker",
            "ldprecover_experiments",
            "ldprecover_server",
        ),
        *("ldprecover_cluster", "bench", "tools"),
    },
    "tools": {"ldprecover_server"},
}
"""Each folder with the packages of this project that it may import beside itself."""


def imported(path: Path) -> set[str]:
    """Return the top-level packages that a module imports anywhere in its text."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).split(".")[0])
    return names


@pytest.mark.parametrize("folder", BELOW)
def test_no_import_points_up(folder: str) -> None:
    sources = sorted((ROOT / folder).rglob("*.py"))
    assert sources
    for path in sources:
        ours = {
            name
            for name in imported(path)
            if name.startswith("ldprecover") or name in ("bench", "tests", "tools")
        }
        assert ours <= BELOW[folder] | {Path(folder).name}, path


def test_a_public_name_is_there() -> None:
    for name in ldprecover_experiments.__all__:
        assert getattr(ldprecover_experiments, name) is not None
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
