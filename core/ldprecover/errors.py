"""The errors of the mathematics, by who is at fault:

    LDPRecoverError
    ├── ParameterError      the caller's parameters are outside their range
    │   └── PluginError     a plugin is not installed, or cannot be loaded
    └── ReportError         a report does not fit the round it was sent to

ParameterError, PluginError and ReportError are ValueErrors too. CountsAloneWarning is a warning.
"""


class LDPRecoverError(Exception):
    """Base of every error that these packages raise on purpose, also the client's."""


class ParameterError(LDPRecoverError, ValueError):
    """A parameter is outside its range; the message names it and the range.

    `field` is the name with which the message begins, if it is that of a field of a request.
    """

    def __init__(self, message: str, field: str | None = None) -> None:
        self.field = field
        super().__init__(message)


class PluginError(ParameterError):
    """A plugin is not installed or cannot be loaded; the message names it and its distribution."""


class CountsAloneWarning(UserWarning):
    """A method that also filters reports got their counts alone; the message names the method."""


class ReportError(LDPRecoverError, ValueError):
    """A report is malformed.

    `position` is the index of the first bad report, or None if the whole submission cannot be read.
    `reason` says why.
    """

    def __init__(self, reason: str, position: int | None = None) -> None:
        self.reason = reason
        self.position = position
        super().__init__(reason if position is None else f"report {position}: {reason}")
