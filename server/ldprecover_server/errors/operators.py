"""What an operator is told at the command line; no caller hears it."""


class ConfigurationError(Exception):
    """The settings cannot work; the message says what to change."""


class KeyNotFoundError(Exception):
    """No key that is not revoked has this name."""
