"""Check imports against the tables of docs/architecture.md: `python tools/layers.py`.

A package imports those that its row states, and a module of the core or the server those of lower
rows. The core needs numpy alone, and the server's libraries have their homes. No imports form a
circle, even inside functions or of types alone. Prints each fault, and exits with 1 if there is
one.
"""

import ast
import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE, SERVER = "ldprecover", "ldprecover_server"
HOMES = {
    CORE: {"numpy": "", "numba": "counting", "scipy": "certificate"},
    SERVER: {
        **dict.fromkeys(("fastapi", "starlette", "uvicorn"), "http|app|serve"),
        **dict.fromkeys(("sqlalchemy", "alembic", "psycopg"), "storage|app|serve"),
    },
}
"""The parts of a package that may import a library; the core may import no other."""

Imports = dict[str, set[str]]


def main() -> int:
    """Print each fault; return 1 if there is one."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    components = table(text, "Components")
    packages = [(row[0].strip("`/ "), row[1].strip("` ")) for row in components]
    imports = dict(read_imports(packages))
    faults = [
        *package_faults(components, imports),
        *module_faults(CORE, table(text, "Modules of the core"), imports),
        *module_faults(SERVER, table(text, "Modules of the server"), imports),
        *library_faults(imports),
        *circles(imports),
    ]
    sys.stdout.writelines(f"{fault}\n" for fault in faults)
    return bool(faults)


def table(text: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, without its head."""
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [row.split("|") for row in re.findall(r"^\|(.*)\|$", section, re.MULTILINE)[2:]]


def named(cell: str) -> set[str]:
    """Return the names in code in a cell."""
    return set(re.findall(r"`(\w+)`", cell))


def read_imports(packages: list[tuple[str, str]]) -> Iterator[tuple[str, set[str]]]:
    """Yield each module with the modules of ours, and the libraries, that it imports."""
    sources = {}
    for folder, package in packages:
        for path in (ROOT / folder / package).rglob("*.py"):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            sources[".".join(parts).removesuffix(".__init__")] = path
    for module, path in sources.items():
        names = set()
        for name in imported_names(path.read_text()):
            while name not in sources and "." in name:
                name = name.rpartition(".")[0]
            names.add(name)
        yield module, names - {module}


def imported_names(text: str) -> Iterator[str]:
    """Yield the dotted names that a module imports anywhere in its text."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=aliases):
                yield from (alias.name for alias in aliases)
            case ast.ImportFrom(module=module, names=aliases):
                yield from (f"{module}.{alias.name}" for alias in aliases)
            case ast.Call(
                func=ast.Name(id="import_module"), args=[ast.Constant(value=str(name)), *_]
            ):
                yield name


def package_faults(components: list[list[str]], imports: Imports) -> Iterator[str]:
    """Yield the rows that state an upper package, and the imports that no row states."""
    allowed: dict[str, set[str]] = {}
    for *_, package, _, stated in reversed(components):
        (name,) = named(package)
        below = {*allowed, name}
        allowed[name] = below if "everything below" in stated else named(stated) | {name}
        yield from (f"{name} is above {other}" for other in allowed[name] - below)
    for module, names in imports.items():
        package = module.partition(".")[0]
        for top in {name.partition(".")[0] for name in names} & allowed.keys() - allowed[package]:
            yield f"{module} imports {top}, which the row of {package} does not state"


def module_faults(package: str, rows: list[list[str]], imports: Imports) -> Iterator[str]:
    """Yield a package's modules without a row, and its imports that do not point down."""
    level = {f"{package}.{name}": i for i, row in enumerate(rows) for name in named(row[0])}
    for module, names in imports.items():
        if module.startswith(f"{package}."):
            part, *others = (".".join(name.split(".")[:2]) for name in [module, *sorted(names)])
            if part not in level:
                yield f"{module} has no row"
            for other in others:
                if other in level and other != part and level[other] <= level.get(part, -1):
                    yield f"{module} imports {other}, which is in no lower row"


def library_faults(imports: Imports) -> Iterator[str]:
    """Yield the imports of libraries outside their homes."""
    for module, names in imports.items():
        package, _, inner = module.partition(".")
        for library in names - {*imports} - sys.stdlib_module_names:
            home = HOMES.get(package, {}).get(library, "(?!)" if package == CORE else "")
            if not re.match(home, inner):
                yield f"{module} imports {library}"


def circles(imports: Imports) -> Iterator[str]:
    """Yield the first circle of imports."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        yield f"circle: {' imports '.join(reversed(error.args[1]))}"


if __name__ == "__main__":
    sys.exit(main())
