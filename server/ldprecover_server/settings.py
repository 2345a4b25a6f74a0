"""The settings of the server: name, type, default and help in one table.

Each setting is an environment variable LDPRECOVER_<NAME>. `ldprecover serve --help` and the
reference page are generated from this table.
"""

import json
import os
import re
from difflib import get_close_matches
from ipaddress import ip_address
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from ldprecover.protocols import MAX_DOMAIN_SIZE
from ldprecover_server.errors import ConfigurationError
from ldprecover_server.logs import LogFormat

MIB = 1 << 20

_PREFIX = "LDPRECOVER_"
_TYPO_SIMILARITY = 0.75
"""Similarity to a setting from which on an unknown LDPRECOVER_* variable is an error. Others pass:
Kubernetes sets some for a service of this name."""

_ORIGIN = re.compile(r"\*|https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")

_HOST_NAME = re.compile(r"\*|\[[0-9a-f:.]+\]|[a-z0-9._-]+")


def _parse_list(value: Any) -> Any:
    """Return the list that a JSON list or a text with commas contains."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        return json.loads(value)
    return [item for item in value.split(",") if item.strip()]


def _check_origin(value: str) -> str:
    # Browsers send exactly this form, and the middleware compares the text.
    if not _ORIGIN.fullmatch(value):
        raise ValueError(
            "each must be an origin, in lower case and without a path, such as "
            "https://example.org, or *"
        )
    return value


def _check_host(value: str) -> str:
    if not _HOST_NAME.fullmatch(value.lower()):
        raise ValueError(
            "each must be the name of a host, without a port, such as example.org, or *"
        )
    return value.lower()


Positive = Annotated[int, Field(ge=1)]


class Settings(BaseSettings):
    """The settings of a server; the docstring of each is its help.

    Raises ConfigurationError for an environment variable whose name resembles that of a setting.
    """

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
        str_strip_whitespace=True,  # a file of a secret ends with a line break
    )

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, values: Any) -> Any:
        settings = [name.upper() for name in cls.model_fields]
        for variable in sorted(map(str.upper, os.environ)):
            name = variable.removeprefix(_PREFIX)
            if name == variable or name in settings:
                continue
            for similar in get_close_matches(name, settings, 1, _TYPO_SIMILARITY):
                raise ConfigurationError(
                    f"{variable} is not a setting; did you mean {_PREFIX}{similar}?"
                )
        return values

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """Port to listen on; 0 takes a free one."""
    allowed_hosts: Annotated[
        tuple[Annotated[str, AfterValidator(_check_host)], ...],
        NoDecode,
        BeforeValidator(_parse_list),
    ] = ()
    """Names under which clients may call the server, such as ldp.example.org, separated by commas
    or as a JSON list; * allows all. IP addresses and localhost are always allowed."""
    database_url: Annotated[str, Field(repr=False)] = "sqlite:///ldprecover.db"
    """Database: sqlite:///FILE or postgresql://..."""
    workers: Positive = 1
    """Server processes; more than one requires Postgres."""
    admin_key: Annotated[SecretStr | None, Field(min_length=16)] = None
    """Admin key of at least 16 characters; it is never stored. Without one, the server creates a
    key at its first start, prints it once, and stores only its hash."""
    open_reports: Positive = 1
    """Reports in a submission to an open round without a report key."""
    max_body_bytes: Annotated[int, Field(ge=1024)] = 16 * MIB
    """Largest request body as sent, in bytes."""
    max_decoded_bytes: Annotated[int, Field(ge=1024)] = 64 * MIB
    """Largest request body after decompression, in bytes."""
    queue_bytes: Annotated[int, Field(ge=1024)] = 112 * MIB
    """Memory of the request bodies of a process, as sent and decoded, in bytes; beyond it, 503."""
    reports_per_submission: Positive = 1_000_000
    """Reports in one submission; beyond it, 413."""
    report_rate: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Reports per second of each report or admin key in each process; beyond it, 429. 0 means no
    limit."""
    report_burst: Positive = 10_000
    """Reports that an idle key may send without delay."""
    cors_origins: Annotated[
        tuple[Annotated[str, AfterValidator(_check_origin)], ...],
        NoDecode,
        BeforeValidator(_parse_list),
    ] = ()
    """Origins whose web pages may call the server from a browser, such as https://example.org,
    separated by commas or as a JSON list; * allows all."""
    plugins: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_parse_list)] = ()
    """Installed plugins to load, by the names of their protocols and recovery methods, separated by
    commas or as a JSON list; no other plugin is imported."""
    max_domain_size: Annotated[int, Field(ge=2, le=MAX_DOMAIN_SIZE)] = MAX_DOMAIN_SIZE
    """Items of a round."""
    request_seconds: Positive = 30
    """Time that a submission waits for its commit, that a commit is retried, that other calls wait
    for the database, and that Postgres may take for a statement; beyond it, 503, and a retry is
    safe."""
    analyses: Positive = 2
    """Worker processes for analyses, in each server process. Callers without a key have all but one
    of them, if there is more than one."""
    analysis_seconds: Positive = 60
    """Time of an analysis for a caller without a key, a sixth of it while others wait; beyond it,
    504."""
    analysis_key_seconds: Positive = 600
    """The same for a caller with an analyst or admin key."""
    analysis_bytes: Annotated[int, Field(ge=MIB)] = 96 * MIB
    """Memory of an analysis above that of an idle worker process, in bytes; Linux only. Without a
    key it is divided by the number of server processes."""
    analysis_disk_bytes: Annotated[int, Field(ge=MIB)] = 4096 * MIB
    """Reports that an analysis may store in a temporary file in TMPDIR, in bytes; it stores those
    of a whole round."""
    verdict_reports: Annotated[int, Field(ge=0)] = 2_000_000
    """Reports of a round up to which the server computes its verdict unasked, where it needs
    to read the reports: not those of GRR, HR and LLH, nor reports that are not kept. 0 means no
    verdicts."""
    min_free_bytes: Annotated[int, Field(ge=0)] = 64 * MIB
    """Free bytes on the disk of a SQLite file below which the server is not ready."""
    log_format: LogFormat = "console"
    """Format of the log on standard error: console or json."""
    shutdown_seconds: Positive = 8
    """Time for requests in progress to finish after SIGTERM, in seconds. Analyses fail immediately.
    The process ends 5 seconds after this time at the latest."""

    @property
    def host_names(self) -> tuple[str, ...] | None:
        """The names under which clients may call the server; None for any name."""
        return None if "*" in self.allowed_hosts else self.allowed_hosts

    @property
    def is_local(self) -> bool:
        """Whether the server listens on a loopback address."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def secret_key(self) -> str | None:
        """The admin key, or None."""
        return self.admin_key.get_secret_value() if self.admin_key else None
