"""The server: takes reports over HTTP into a database, serves frequencies and recoveries."""

from ldprecover_server.administration import check, create_key, list_keys, migrate, revoke_key
from ldprecover_server.app import Application
from ldprecover_server.errors import ConfigurationError
from ldprecover_server.serve import serve
from ldprecover_server.settings import Settings

__all__ = [
    "Application",
    "ConfigurationError",
    "Settings",
    "check",
    "create_key",
    "list_keys",
    "migrate",
    "revoke_key",
    "serve",
]
