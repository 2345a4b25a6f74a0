"""The paths of the interface: this is the one place that spells them."""

import re
from typing import Final

ROOT: Final = "/"
DOCS: Final = "/docs"
ERRORS: Final = "/docs/errors"
OPENAPI: Final = "/openapi.json"
STATIC: Final = "/static"
PAGE: Final = "/page"

HEALTHZ: Final = "/healthz"
READYZ: Final = "/readyz"
METRICS: Final = "/metrics"
VERSION: Final = "/version"

PLAN: Final = "/plan"

ROUNDS: Final = "/rounds"
ROUND: Final = "/rounds/{round}"

# Below ROUND; the first three also at the root, where they mean the current round.
REPORTS: Final = "/reports"
FREQUENCIES: Final = "/frequencies"
RECOVER: Final = "/recover"
PARAMETERS: Final = "/parameters"
CLOSE: Final = "/close"
TICKETS: Final = "/tickets"
STATS: Final = "/stats"
EXPORT: Final = "/export"
METHODS: Final = "/methods"
ALARMS: Final = "/alarms"
SUSPECTS: Final = "/suspects"
JOB: Final = "/jobs/{job}"

_SUBMISSION = re.compile(rf"(?:{ROUNDS}/([^/]+))?{REPORTS}")


def round_path(round_id: str) -> str:
    """Return the path of a round."""
    return f"{ROUNDS}/{round_id}"


def job_path(round_id: str, job_id: str) -> str:
    """Return the path of a job of a round."""
    return round_path(round_id) + JOB.format(job=job_id)


def is_submission(path: str) -> bool:
    """Return whether reports are posted to this path."""
    return path.endswith(REPORTS) and _SUBMISSION.fullmatch(path) is not None


def submission_round(path: str) -> str | None:
    """Return the round that a submission's path names; None for the current one."""
    match = _SUBMISSION.fullmatch(path)
    return match and match[1]
