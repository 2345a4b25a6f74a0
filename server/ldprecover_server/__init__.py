"""The server: takes reports over HTTP into a database, serves frequencies and recoveries."""

from ldprecover_server.administration import (
    check,
    create_key,
    list_acts,
    list_keys,
    migrate,
    revoke_key,
    stored_reports,
)
from ldprecover_server.errors import ConfigurationError
from ldprecover_server.serve import create_app, serve
from ldprecover_server.settings import Settings

__all__ = [
    "ConfigurationError",
    "Settings",
    "check",
    "create_app",
    "create_key",
    "list_acts",
    "list_keys",
    "migrate",
    "revoke_key",
    "serve",
    "stored_reports",
]
