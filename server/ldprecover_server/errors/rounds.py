"""Rounds that are not there, or whose state forbids what is asked for."""

from collections.abc import Mapping
from typing import ClassVar

from ldprecover_server.errors.base import ServiceError


class RoundNotFoundError(ServiceError):
    """No round has this id or name."""

    slug = "round-not-found"
    status = 404
    title = "No such round"
    help = "The id or name is wrong, or the round was deleted."


class RoundReplacedError(ServiceError):
    """The name meant a round that was deleted, and means another now."""

    slug = "round-replaced"
    status = 503
    title = "The name has passed to another round"
    help = (
        "Nothing was stored; send it again with the same key and the same bytes, and the round "
        "of now says what it is."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "1"}


class NoCurrentRoundError(ServiceError):
    """No round has been opened, or all are deleted."""

    slug = "no-current-round"
    status = 404
    title = "No current round"
    help = (
        "/reports, /frequencies and /recover mean the round opened last; open one with POST "
        "/rounds."
    )


class RoundClosedError(ServiceError):
    """The round takes no more reports."""

    slug = "round-closed"
    status = 409
    title = "The round is closed"
    help = (
        "It takes no more reports. A submission that was answered before the close is counted, "
        "and its retry still "
        "gets its 202."
    )


class NameTakenError(ServiceError):
    """Another round has this name."""

    slug = "name-taken"
    status = 409
    title = "The name is taken"
    help = "Names of rounds are unique; choose another or delete the round."


class SeriesMismatchError(ServiceError):
    """The rounds of this series are over other items."""

    slug = "series-mismatch"
    status = 409
    title = "The series has other items"
    help = (
        "All rounds of a series are over the same items in the same order; name another "
        "series, or none."
    )


class PluginNotLoadedError(ServiceError):
    """The round's protocol is a plugin that this server has not loaded."""

    slug = "plugin-not-loaded"
    status = 503
    title = "The round's protocol is not loaded"
    help = (
        "The protocol is a plugin, which the detail names. The operator installs the distribution "
        "that has it, names "
        "it in LDPRECOVER_PLUGINS and starts the server again. Until then the round can be listed "
        "and deleted, and "
        "what is stored of it stays. A submission is safe to send again with the same key and "
        "bytes."
    )
