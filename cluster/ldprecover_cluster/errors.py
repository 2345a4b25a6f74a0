"""What can go wrong with a dataset of reports, and with those who work on it."""

__all__ = ["EngineError", "ReportDatasetError"]


class ReportDatasetError(Exception):
    """A dataset of reports cannot be read or written, is damaged, or is not of the round that it should be of."""


class EngineError(Exception):
    """Those who should work cannot be reached, or have ended."""
