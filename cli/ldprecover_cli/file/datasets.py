"""Errors of report datasets and clusters, as the commands state them."""

from collections.abc import Iterator
from contextlib import contextmanager

from ldprecover_cli.errors import CommandError


@contextmanager
def dataset_errors() -> Iterator[None]:
    """Raise errors of datasets and clusters, and the lack of their extra, as CommandError."""
    try:
        from ldprecover_cluster import EngineError, ReportDatasetError
    except ImportError as error:
        raise CommandError(
            "a report dataset needs the extra: pip install 'ldprecover[cluster]'"
        ) from error
    try:
        yield
    except (EngineError, ReportDatasetError) as error:
        raise CommandError(str(error)) from error
