"""The layers of the server: imports point down, and there are no cycles."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ldprecover_server

ROOT = Path(ldprecover_server.__file__).parent
SOURCES = {
    path: ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted(ROOT.rglob("*.py"))
}
PACKAGES = {name.split(".")[0] for name in SOURCES.values()} - {"__init__"}

LAYERS = [
    {"serve", "administration"},
    {"app"},
    {"http"},
    {"analysis", "housekeeping"},
    {"submissions", "results"},
    {"ingest", "access", "rounds"},
    {"storage"},
    {"settings", "keys", "byte_cache", "memory_budget", "thread_pools"},
    {
        "errors",
        "timeouts",
        "limits",
        "logs",
        "metrics",
        "page",
        "shuffle",
    },
]
"""From the top; a package may use those below it, and not those beside it."""

AT_HOME = {
    "http": {"fastapi", "starlette", "uvicorn"},
    "storage": {"sqlalchemy", "alembic", "psycopg"},
}
"""Libraries that one package alone imports, beside `app` and `serve`, which assemble the server."""


def imported(path: Path) -> set[str]:
    """Return the dotted names that a module imports anywhere in its text."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def own_modules(path: Path) -> set[str]:
    """Return the modules of the server that a module imports, by their names below it."""
    modules = {name.removesuffix(".__init__") for name in SOURCES.values()}
    imports = set()
    for name in imported(path):
        inner = name.removeprefix("ldprecover_server.")
        if inner != name:
            imports.add(inner if inner in modules else inner.rpartition(".")[0])
    return imports - {""}


def test_every_module_has_its_layer() -> None:
    assert set().union(*LAYERS) == PACKAGES
    assert sum(map(len, LAYERS)) == len(PACKAGES)


@pytest.mark.parametrize("path", SOURCES, ids=SOURCES.values())
def test_imports_point_down(path: Path) -> None:
    package = SOURCES[path].split(".")[0]
    if package == "__init__":
        return
    (level,) = (i for i, layer in enumerate(LAYERS) if package in layer)
    below = set().union(*LAYERS[level + 1 :])
    assert {module.split(".")[0] for module in own_modules(path)} <= below | {package}


def test_imports_have_no_cycle() -> None:
    graph = {name.removesuffix(".__init__"): own_modules(path) for path, name in SOURCES.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError


@pytest.mark.parametrize(("package", "packages"), AT_HOME.items())
def test_only_one_package_imports_a_library(package: str, packages: set[str]) -> None:
    for path, name in SOURCES.items():
        if name.split(".")[0] not in (package, "app", "serve"):
            assert not {each.split(".")[0] for each in imported(path)} & packages, name
