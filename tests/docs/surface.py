"""The public surface: names of Python and JavaScript, calls, options, settings, metrics.

`python -m tests.docs.surface` writes the snapshot again after a change, and prints the mark that
the newest section of CHANGELOG.md then has, above a sentence on what changes.
"""

import hashlib
import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic_settings import BaseSettings
from tests.docs.markdown import ROOT, Page
from tests.docs.public_names import public_names, public_objects

SNAPSHOT = Path(__file__).with_name("surface.txt")
_EMPTY = inspect.Parameter.empty


def surface() -> list[str]:
    """Return the lines of the snapshot: a default is `=`, members are below their class."""
    return [*_python(), *_javascript(), *_pages()]


def mark() -> str:
    """Return the line of the changelog that belongs to the snapshot."""
    return f"<!-- surface {hashlib.sha256(SNAPSHOT.read_bytes()).hexdigest()[:12]} -->"


def _python() -> Iterator[str]:
    for module, names in public_names().items():
        yield f"{module}: {' '.join(sorted(names))}"
    objects = public_objects()
    for name, value in objects.items():
        yield f"{name}{_parameters(value)}"
        for member in sorted(dir(value)) if isinstance(value, type) else ():
            owner = next(each for each in value.__mro__ if member in vars(each))
            is_ours = owner.__module__.startswith("ldprecover")
            is_listed = owner is not value and owner in objects.values()
            if is_ours and not is_listed and not member.startswith(("_", "model_")):
                yield f"  {member}{_parameters(vars(owner)[member])}"


def _parameters(value: Any) -> str:
    """Return the names of parameters; none for what the libraries below initialise."""
    value = getattr(value, "__func__", value)
    by_library = isinstance(value, type) and issubclass(value, Enum | BaseException | BaseSettings)
    if by_library or not callable(value):
        return ""
    parameters = [
        each.replace(annotation=_EMPTY, default=_EMPTY if each.default is _EMPTY else ...)
        for each in inspect.signature(value).parameters.values()
    ]
    return str(inspect.Signature(parameters)).replace("Ellipsis", "")


def _javascript() -> Iterator[str]:
    for path in sorted((ROOT / "client" / "js").glob("*.d.ts")):
        declared = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        yield from filter(str.strip, declared.splitlines())


def _pages() -> Iterator[str]:
    """Yield what the pages that are printed from the code name, section by section."""
    for name in ("api", "commands"):
        for section in _prose(name).split("\n#")[1:]:
            codes = re.findall("`([^`]+)`", " ".join(section.split()))
            yield " ".join([section.splitlines()[0], *dict.fromkeys(codes)])
    for name in ("settings", "metrics"):
        yield from re.findall(r"^\| `(\w+)` \|", _prose(name), re.MULTILINE)


def _prose(name: str) -> str:
    return Page(ROOT / "docs" / "reference" / f"{name}.md").prose


if __name__ == "__main__":
    SNAPSHOT.write_text("\n".join(surface()), encoding="utf-8")
    sys.stdout.write(f"{mark()}\n")
