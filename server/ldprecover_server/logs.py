"""The log of the process: one line per event, as text or JSON, with the id of its request.

It contains no reports, keys or addresses: no module logs them, the access log is off, and errors of
the database are logged without their parameters.
"""

import logging
import sys
import time
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal

import msgspec

LogFormat = Literal["console", "json"]

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The id of the current request, or None."""


def configure(format: LogFormat) -> None:
    """Write the log of this process, including uvicorn's, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    console = _Console("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(_Json() if format == "json" else console)
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    logging.getLogger("uvicorn.error").addFilter(_without_repeats)
    logging.getLogger("alembic").setLevel(logging.WARNING)  # it logs each step at INFO


class _WithoutRepeats(logging.Filter):
    """Passes a warning that equals the last one once a second: anybody can cause uvicorn's."""

    _SECONDS = 1.0

    def __init__(self) -> None:
        super().__init__()
        self._last: object = None
        self._passes_at = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING:
            return True
        now = time.monotonic()
        if record.msg == self._last and now < self._passes_at:
            return False
        self._last, self._passes_at = record.msg, now + self._SECONDS
        return True


_without_repeats = _WithoutRepeats()


class _Console(logging.Formatter):
    def formatTime(  # noqa: N802
        self, record: logging.LogRecord, datefmt: str | None = None
    ) -> str:
        return _time(record)

    def format(self, record: logging.LogRecord) -> str:
        id = request_id.get()
        line = super().format(record)
        return line if id is None else f"{line} [request {id}]"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        event = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (id := request_id.get()) is not None:
            event["request_id"] = id
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(event).decode()


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
