"""Errors of an experiment other than invalid parameters and unreadable data."""

from ldprecover import LDPRecoverError
from ldprecover_client.errors import DatasetError

__all__ = ["DatasetError", "ExperimentError"]


class ExperimentError(LDPRecoverError):
    """A file, a package or a server of the experiment's own fails; the message says all."""
