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

FORMS = "/forms"
FORM = "/forms/{form}"

ALL_SERIES = "/series"
SERIES = "/series/{series}"
NEXT = "/next"  # below SERIES

# Below ROUND, CLOSE and TICKETS also below FORM. The first three also exist at the root, where they
# mean the current round.
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
CHANGES = "/changes"

SUBMISSION = re.compile(rf"(?:{ROUNDS}/([^/]+))?{REPORTS}")
"""Matches the paths that reports are posted to; its group is the round, None for the current."""
