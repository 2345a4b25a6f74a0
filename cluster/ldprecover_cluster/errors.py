"""Errors of datasets and of the cluster that reads them."""

from ldprecover.errors import LDPRecoverError


class ReportDatasetError(LDPRecoverError):
    """A dataset cannot be read or written, is damaged, or belongs to another round."""


class EngineError(LDPRecoverError):
    """The Dask cluster cannot be reached, was lost, or runs another version."""
