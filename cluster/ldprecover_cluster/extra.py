"""What the extra `cluster` brings, imported where it is used: the default install has none of
it.
"""

from typing import Any

from ldprecover_cluster.errors import ReportDatasetError

_NEEDED = "a dataset of reports needs the extra: pip install 'ldprecover[cluster]'"


def pyarrow() -> Any:
    """Return the module. Raises ReportDatasetError where it is not installed."""
    try:
        import pyarrow
    except ImportError as error:
        raise ReportDatasetError(_NEEDED) from error
    return pyarrow


def parquet() -> Any:
    """Return the module `pyarrow.parquet`. Raises ReportDatasetError where it is not installed."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ReportDatasetError(_NEEDED) from error
    return pyarrow.parquet


def fsspec() -> Any:
    """Return the module `fsspec.core`. Raises ReportDatasetError where it is not installed."""
    try:
        import fsspec.core
    except ImportError as error:
        raise ReportDatasetError(_NEEDED) from error
    return fsspec.core
