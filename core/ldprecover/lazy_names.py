"""Public names of a package that are imported when they are first used."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_getattr(
    package: str, module_of: Mapping[str, str], extra: str | None = None
) -> Callable[[str], Any]:
    """Return a package's `__getattr__`, which imports the module that has the name.

    With the name of an `extra`, a missing library is an ImportError that says how to install it.
    """

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = getattr(import_module(f"{package}.{module_of[name]}"), name)
        except ModuleNotFoundError as error:
            missing = error.name
            if (
                extra is None
                or missing is None
                or missing.partition(".")[0].startswith("ldprecover")
            ):
                raise
            message = (
                f"{name} needs {missing}, which is not installed: pip install 'ldprecover[{extra}]'"
            )
            raise ImportError(message, name=missing) from None
        setattr(sys.modules[package], name, value)
        return value

    return get
