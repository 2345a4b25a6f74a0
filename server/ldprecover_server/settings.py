"""Settings of the server: name, type, default and help in one place.

Every one is an environment variable LDPRECOVER_<NAME>; `ldprecover serve --help` and the docs are
made from this table.
"""

import json
import os
import re
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from ldprecover.errors import ParameterError
from ldprecover.protocols import MAX_DOMAIN_SIZE
from ldprecover_cluster import Scheduler
from ldprecover_server.errors import ConfigurationError
from ldprecover_server.file_limits import LEAST_CONNECTIONS
from ldprecover_server.logs import LogFormat

MIB = 1 << 20

_PREFIX = "LDPRECOVER_"
_LIKE = 0.75
"""So much of a variable's name is a setting's where it is taken for a misspelt one. Others are let
pass, as those that Kubernetes sets for a service of this name."""

_ORIGIN = re.compile(r"\*|https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")


def _listed(value: Any) -> Any:
    """Return a list given as text: in JSON, or with commas."""
    if not isinstance(value, str):
        return value
    return (
        json.loads(value)
        if value.lstrip().startswith("[")
        else [each.strip() for each in value.split(",") if each.strip()]
    )


def _origin(value: str) -> str:
    if not _ORIGIN.fullmatch(
        value
    ):  # browsers send it in exactly this form, and it is compared as it is
        raise ValueError(
            f"{value[:80]!r} is not an origin: write https://example.org, in small letters and "
            "nothing behind, or *"
        )
    return value


class Settings(BaseSettings):
    """What an operator may set.

    Raises ConfigurationError where a variable of the environment is not one of these, but has a
    name much like one.
    """

    model_config = SettingsConfigDict(env_prefix=_PREFIX, extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, given: Any) -> Any:
        known = [f"{_PREFIX}{name.upper()}" for name in cls.model_fields]
        for name in sorted(map(str.upper, os.environ)):
            if name.startswith(_PREFIX) and name not in known and (near := _nearest(name, known)):
                raise ConfigurationError(f"{name} is not a setting; did you mean {near}?")
        return given

    host: Annotated[str, Field(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[
        int, Field(ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    ] = 8000
    database_url: Annotated[
        str, Field(description="Database: sqlite:///FILE or postgresql+psycopg://...")
    ] = "sqlite:///ldprecover.db"
    workers: Annotated[
        int, Field(ge=1, description="Server processes; more than one need Postgres.")
    ] = 1
    admin_key: Annotated[
        SecretStr | None,
        Field(
            min_length=16,
            description="Admin key, 16 characters or more, never stored. With none, the server "
            "makes one at first "
            "start, prints it once and keeps only its hash.",
        ),
    ] = None
    open_reports: Annotated[
        int,
        Field(
            ge=1,
            description="Reports that a submission to an open round may hold without a report key.",
        ),
    ] = 1
    max_body_bytes: Annotated[
        int, Field(ge=1024, description="Largest request body as sent, in bytes.")
    ] = 16 * MIB
    max_decoded_bytes: Annotated[
        int, Field(ge=1024, description="Largest request body after decompression, in bytes.")
    ] = 64 * MIB
    queue_requests: Annotated[
        int,
        Field(
            ge=1,
            description="Submissions that may wait for their commit; past it the answer is 503.",
        ),
    ] = 10_000
    queue_bytes: Annotated[
        int,
        Field(
            ge=1024,
            description="Bytes of request bodies held at one time, as sent and decoded; past it "
            "the answer is 503.",
        ),
    ] = 256 * MIB
    group_bytes: Annotated[
        int,
        Field(
            ge=1024, description="Decoded bytes after which one commit takes no further submission."
        ),
    ] = 8 * MIB
    reports_per_submission: Annotated[
        int,
        Field(ge=1, description="Reports that one submission may hold; past it the answer is 413."),
    ] = 1_000_000
    submission_cells: Annotated[
        int,
        Field(
            ge=1,
            description="Reports times items of one submission to an OLH round, which counting "
            "takes its time for; "
            "past it the answer is 413. One commit takes no further submission after as many.",
        ),
    ] = 1 << 31
    report_rate: Annotated[
        float,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="Reports a second that each report or admin key may bring to each "
            "process; past it the answer "
            "is 429. 0 is any number.",
        ),
    ] = 0.0
    report_burst: Annotated[
        int,
        Field(
            ge=1,
            description="Reports that a key may bring at once, if it brought none for a while.",
        ),
    ] = 10_000
    cors_origins: Annotated[
        tuple[Annotated[str, AfterValidator(_origin)], ...],
        NoDecode,
        BeforeValidator(_listed),
        Field(
            description="Origins whose web pages may call the server from a browser, as "
            "https://example.org, with "
            "commas or as a JSON list; * is any.",
        ),
    ] = ()
    plugins: Annotated[
        tuple[str, ...],
        NoDecode,
        BeforeValidator(_listed),
        Field(
            description="Installed plugins to load, protocols and recovery methods by their "
            "names, with commas or as a "
            "JSON list; no other is imported."
        ),
    ] = ()
    max_domain_size: Annotated[
        int, Field(ge=2, le=MAX_DOMAIN_SIZE, description="Items that a round may have.")
    ] = MAX_DOMAIN_SIZE
    body_seconds: Annotated[
        int,
        Field(
            ge=1,
            description="Time in which a request's body must arrive; past it the answer is 408.",
        ),
    ] = 30
    anonymous_body_seconds: Annotated[
        int,
        Field(
            ge=1,
            description="Time in which the body of a caller without a key must arrive; past it "
            "the answer is 408.",
        ),
    ] = 10
    reads: Annotated[
        int,
        Field(
            ge=1,
            description="Calls that may wait to read from the database, of callers with a key and "
            "without one; past it "
            "the answer is 503.",
        ),
    ] = 256
    answer_bytes: Annotated[
        int,
        Field(
            ge=1 << 20,
            description="Bytes that answers of more than 32 KiB may hold until they are read; "
            "past it the one that is "
            "read slowest is cut off.",
        ),
    ] = 64 * MIB
    answer_seconds: Annotated[
        int,
        Field(
            ge=1,
            description="Time in which an answer must be read; past it the connection is cut off.",
        ),
    ] = 60
    connections: Annotated[
        int,
        Field(
            ge=LEAST_CONNECTIONS,
            description="Connections of one process; past it, or past what the limit of open "
            "files allows, the one "
            "that has progressed least makes room.",
        ),
    ] = 2048
    request_seconds: Annotated[
        int,
        Field(
            ge=1,
            description="Time that a submission waits for its commit, that a commit is tried "
            "again, that other calls "
            "wait for their turn with the database, and that Postgres may leave a statement "
            "without an answer; past it "
            "the answer is 503 and a retry is safe.",
        ),
    ] = 30
    analyses: Annotated[
        int,
        Field(
            ge=1,
            description="Child processes for what reads a round's reports, of each server "
            "process; callers without a "
            "key have all but one of them, where there is more than one.",
        ),
    ] = 2
    analysis_queue: Annotated[
        int,
        Field(
            ge=1,
            description="Analyses that may wait for a child process, half of them of callers "
            "without a key; past it "
            "the answer is 503.",
        ),
    ] = 32
    analysis_seconds: Annotated[
        int,
        Field(
            ge=1,
            description="Time of an analysis for a caller without a key; past it the answer is "
            "504.",
        ),
    ] = 60
    analysis_key_seconds: Annotated[
        int, Field(ge=1, description="The same for a caller with an analyst or admin key.")
    ] = 600
    analysis_bytes: Annotated[
        int,
        Field(
            ge=MIB,
            description="Memory of an analysis beside what a child process holds at rest; Linux "
            "alone.",
        ),
    ] = 128 * MIB
    analysis_disk_bytes: Annotated[
        int,
        Field(
            ge=MIB,
            description="Bytes of reports that an analysis may lay down in a temporary file in "
            "TMPDIR; it reads those "
            "of a whole round.",
        ),
    ] = 4096 * MIB
    analysis_scheduler: Annotated[
        str | None,
        Field(
            description="Scheduler of a Dask cluster whose workers read the reports of large "
            "rounds for analyses: "
            "tls://HOST:PORT, or tcp://127.0.0.1:PORT.",
        ),
    ] = None
    analysis_cluster_cells: Annotated[
        int,
        Field(
            ge=1, description="Reports times items of a round from which on its workers read it."
        ),
    ] = 1 << 32
    analysis_tls_ca: Annotated[
        str | None,
        Field(
            description="Certificate of the CA of that cluster, a PEM file. Without these three "
            "Dask's own "
            "configuration names them."
        ),
    ] = None
    analysis_tls_cert: Annotated[
        str | None, Field(description="Own certificate for it, a PEM file.")
    ] = None
    analysis_tls_key: Annotated[
        str | None, Field(description="Key of that certificate, a PEM file.")
    ] = None
    analysis_cache_bytes: Annotated[
        int,
        Field(ge=0, description="Bytes of answers that each process keeps for equal questions."),
    ] = 32 * MIB
    min_free_bytes: Annotated[
        int,
        Field(
            ge=0,
            description="Free bytes on the disk of a SQLite file below which the server says it "
            "is not ready.",
        ),
    ] = 64 * MIB
    log_format: Annotated[
        LogFormat, Field(description="Form of the log on standard error: console or json.")
    ] = "console"
    shutdown_seconds: Annotated[
        int, Field(ge=1, description="Time that requests under way get to finish after SIGTERM.")
    ] = 30

    @model_validator(mode="after")
    def _check_scheduler(self) -> "Settings":
        files = (self.analysis_tls_ca, self.analysis_tls_cert, self.analysis_tls_key)
        try:
            scheduler = self.scheduler
        except ParameterError as error:
            raise ConfigurationError(f"analysis_scheduler and its files of TLS: {error}") from error
        if scheduler is None and any(files):
            raise ConfigurationError(
                "the files of analysis_tls are for analysis_scheduler, which is not set"
            )
        if scheduler is not None and (missing := Scheduler.missing_package()) is not None:
            raise ConfigurationError(f"analysis_scheduler: {missing}")
        return self

    @property
    def scheduler(self) -> Scheduler | None:
        """Where the cluster for analyses is, if there is one. Raises ParameterError."""
        if self.analysis_scheduler is None:
            return None
        return Scheduler(
            self.analysis_scheduler,
            self.analysis_tls_ca,
            self.analysis_tls_cert,
            self.analysis_tls_key,
        )

    @property
    def secret_key(self) -> str | None:
        """The admin key, if one is set."""
        return self.admin_key.get_secret_value() if self.admin_key else None

    def environment(self) -> dict[str, str]:
        """Return these settings as environment variables."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {
            f"{_PREFIX}{name.upper()}": _written(value)
            for name, value in values.items()
            if value is not None
        }


def _nearest(name: str, known: list[str]) -> str | None:
    """Return the setting that a variable's name is most like, if it is like any."""
    found = get_close_matches(
        name.removeprefix(_PREFIX), [each.removeprefix(_PREFIX) for each in known], 1, _LIKE
    )
    return f"{_PREFIX}{found[0]}" if found else None


def _written(value: Any) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return ",".join(value) if isinstance(value, tuple) else str(value)
