"""The paths of the interface: this is the one place that spells them."""

import re

ROOT = "/"
DOCS = "/docs"
ERRORS = "/docs/errors"
OPENAPI = "/openapi.json"
STATIC = "/static"
PAGE = "/page"

HEALTHZ = "/healthz"
READYZ = "/readyz"
METRICS = "/metrics"
VERSION = "/version"
KEY = "/key"

PLAN = "/plan"

ROUNDS = "/rounds"
ROUND = "/rounds/{round}"

# Below ROUND; the first three also at the root, where they mean the current round.
REPORTS = "/reports"
FREQUENCIES = "/frequencies"
RECOVER = "/recover"
PARAMETERS = "/parameters"
CLOSE = "/close"
TICKETS = "/tickets"
STATS = "/stats"
EXPORT = "/export"
METHODS = "/methods"
ALARMS = "/alarms"
CERTIFICATE = "/certificate"

_SUBMISSION = re.compile(rf"(?:{ROUNDS}/([^/]+))?{REPORTS}")


def round_path(round_id: str) -> str:
    """Return the path of a round."""
    return f"{ROUNDS}/{round_id}"


def is_submission(path: str) -> bool:
    """Return whether reports are posted to this path."""
    return path.endswith(REPORTS) and _SUBMISSION.fullmatch(path) is not None


def submission_round(path: str) -> str | None:
    """Return the round that a submission's path names; None for the current one."""
    match = _SUBMISSION.fullmatch(path)
    return match and match[1]
