"""Imports the packages of the extra `cluster` late: a default install lacks them."""

from typing import Any

from ldprecover_cluster.errors import ReportDatasetError

_NEEDED = "a dataset of reports needs the extra: pip install 'ldprecover[cluster]'"


def pyarrow() -> Any:
    """Return the module `pyarrow`. Raises ReportDatasetError if it is not installed."""
    try:
        import pyarrow
    except ImportError as error:
        raise ReportDatasetError(_NEEDED) from error
    return pyarrow


def parquet() -> Any:
    """Return the module `pyarrow.parquet`. Raises ReportDatasetError if it is not installed."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ReportDatasetError(_NEEDED) from error
    return pyarrow.parquet


def fsspec() -> Any:
    """Return the module `fsspec.core`. Raises ReportDatasetError if it is not installed."""
    try:
        import fsspec.core
    except ImportError as error:
        raise ReportDatasetError(_NEEDED) from error
    return fsspec.core
