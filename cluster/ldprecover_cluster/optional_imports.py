"""Imports the packages of the extra `cluster` late: a default install lacks them."""

from importlib import import_module
from typing import Any

from ldprecover_cluster.errors import ReportDatasetError


def optional_module(name: str) -> Any:
    """Return a module of the extra. Raises ReportDatasetError if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ReportDatasetError(
            "a dataset of reports needs the extra: pip install 'ldprecover[cluster]'"
        ) from error
