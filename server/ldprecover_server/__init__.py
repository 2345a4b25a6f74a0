"""The server: takes reports over HTTP into a database, serves frequencies and recoveries.

`Application` is loaded when it is first used: its messages are made from the protocols that are
there by then, those of plugins among them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ldprecover_server.administration import (
    check,
    create_key,
    list_keys,
    migrate,
    revoke_key,
    stored_reports,
)
from ldprecover_server.errors import ConfigurationError
from ldprecover_server.serve import create_app, serve
from ldprecover_server.settings import Settings

if TYPE_CHECKING:
    from ldprecover_server.app import Application

__all__ = [
    "Application",
    "ConfigurationError",
    "Settings",
    "check",
    "create_app",
    "create_key",
    "list_keys",
    "migrate",
    "revoke_key",
    "serve",
    "stored_reports",
]


def __getattr__(name: str) -> Any:
    if name != "Application":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = import_module(f"{__name__}.app").Application
    return value
