"""Errors of datasets and executors."""

from ldprecover.errors import LDPRecoverError


class ReportDatasetError(LDPRecoverError):
    """A dataset cannot be read or written, is damaged, or belongs to another round."""


class EngineError(LDPRecoverError):
    """Workers cannot be reached, have ended, or lack a package."""
