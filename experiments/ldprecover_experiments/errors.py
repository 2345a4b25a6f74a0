"""Errors of an experiment other than invalid parameters and unreadable data."""


class ExperimentError(Exception):
    """A file, a package or a server of the experiment's own fails; the message says all."""
