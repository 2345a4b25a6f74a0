"""Analyses and jobs: what cannot be worked out, or not now."""

from collections.abc import Mapping
from typing import ClassVar

from ldprecover_server.errors.base import ServiceError


class JobNotFoundError(ServiceError):
    """The round has no such job; it may have been forgotten."""

    slug = "job-not-found"
    status = 404
    title = "No such job"
    help = (
        "The id is wrong, the job belongs to another round, or it is forgotten: an hour after it "
        "was asked for, or "
        "when many came after it."
    )


class NoReportsError(ServiceError):
    """There is nothing to recover from."""

    slug = "no-reports"
    status = 409
    title = "The round has no reports"
    help = "There is nothing to recover from yet."


class ReportsGoneError(ServiceError):
    """The round's reports are not kept, or not all of them."""

    slug = "reports-not-kept"
    status = 409
    title = "The round's reports are not kept"
    help = (
        "What was asked for reads every report, and the round's retention has let them go; ask "
        "for what needs counts "
        "alone (GET /rounds/{id}/methods)."
    )


class AnalysesBusyError(ServiceError):
    """Too many analyses wait for their turn, or they take long."""

    slug = "analyses-busy"
    status = 503
    title = "Too many analyses wait"
    help = (
        "What reads every report takes long, so few such calls run at a time, and few wait, those "
        "with a key first; "
        "try again after the time in Retry-After."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "5"}


class AnalysisTimeoutError(ServiceError):
    """The analysis took longer than it may."""

    slug = "analysis-timeout"
    status = 504
    title = "The analysis took too long"
    help = (
        "It was given up. A caller with a key has more time (settings); other options of the "
        "method, or another "
        "method, may take less."
    )


class AnalysisTooLargeError(ServiceError):
    """The analysis needs more memory or disk than it may take."""

    slug = "analysis-too-large"
    status = 422
    title = "The analysis needs more than it may take"
    help = (
        "More memory, or more bytes of reports on disk, than the operator allows one analysis. "
        "The detail says which; "
        "the same call fails again until the operator allows more."
    )


class AnalysisFailedError(ServiceError):
    """The process that worked on the analysis has ended, or raised what nobody expected."""

    slug = "analysis-failed"
    status = 500
    title = "The analysis failed"
    help = (
        "The process that worked on it has ended, or a fault stopped it: of the server, or of a "
        "plugin's recovery "
        "method, which the detail names then. The server's log has the traceback. Nothing was "
        "changed, and it can be "
        "asked again."
    )
