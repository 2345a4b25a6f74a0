"""What can go wrong with a dataset of reports, and with those who work on it."""

from ldprecover.errors import LDPRecoverError


class ReportDatasetError(LDPRecoverError):
    """A dataset of reports cannot be read or written, is damaged, or is not of the round that it
    should be of.
    """


class EngineError(LDPRecoverError):
    """Those who should work cannot be reached, or have ended."""
