"""The public names of the packages, as the page on Python lists them."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from tests.docs.markdown import ROOT, Page

PAGE = Page(ROOT / "docs" / "reference" / "python.md")
ALL = "`__all__`"


def rows() -> dict[str, list[str]]:
    """Return the cells on the names of each public module: text in code, or ALL."""
    table = re.findall(r"^\| `(ldprecover[\w.]*)` \| (.+) \|$", PAGE.prose, re.MULTILINE)
    return {module: [cell.strip() for cell in names.split(",")] for module, names in table}


def public_names() -> dict[str, set[str]]:
    """Return the public names of each public module."""
    names: dict[str, set[str]] = {}
    for module, cells in rows().items():
        names[module] = {cell.strip("`") for cell in cells if cell != ALL}
        if ALL in cells:
            names[module] |= set(import_module(module).__all__)
    return names


def public_objects() -> dict[str, Any]:
    """Return the public classes and functions by their dotted names, each once."""
    objects: dict[str, Any] = {}
    for module, names in public_names().items():
        for name in sorted(names):
            value = getattr(import_module(module), name)
            is_ours = getattr(value, "__module__", "").startswith("ldprecover")
            if callable(value) and is_ours and value not in objects.values():
                objects[f"{module}.{name}"] = value
    return objects


def imports(program: str) -> Iterator[tuple[str, str]]:
    """Yield the modules of this project that a program imports, each with the imported name."""
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ldprecover"):
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if "ldprecover" in alias.name)
