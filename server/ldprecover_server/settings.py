"""Settings of the server: name, type, default and help in one place.

Every one is an environment variable LDPRECOVER_<NAME>; `ldprecover serve --help` and the docs are
made from this table.
"""

from typing import Annotated

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from ldprecover.protocols import MAX_DOMAIN_SIZE
from ldprecover_server.logs import LogFormat

__all__ = ["Settings"]

MIB = 1 << 20


class Settings(BaseSettings):
    """What an operator may set."""

    model_config = SettingsConfigDict(env_prefix="LDPRECOVER_", extra="forbid", frozen=True)

    host: Annotated[str, Field(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535, description="Port to listen on; 0 takes a free one.")] = 8000
    database_url: Annotated[str, Field(description="Database: sqlite:///FILE or postgresql+psycopg://...")] = (
        "sqlite:///ldprecover.db"
    )
    workers: Annotated[int, Field(ge=1, description="Server processes; more than one need Postgres.")] = 1
    admin_key: Annotated[
        SecretStr | None,
        Field(
            min_length=16,
            description="Admin key, 16 characters or more, never stored. With none, the server makes one at first "
            "start, prints it once and keeps only its hash.",
        ),
    ] = None
    open_reports: Annotated[
        int, Field(ge=1, description="Reports that a submission to an open round may hold without a report key.")
    ] = 1
    max_body_bytes: Annotated[int, Field(ge=1024, description="Largest request body as sent, in bytes.")] = 16 * MIB
    max_decoded_bytes: Annotated[
        int, Field(ge=1024, description="Largest request body after decompression, in bytes.")
    ] = 64 * MIB
    queue_requests: Annotated[
        int, Field(ge=1, description="Submissions that may wait for their commit; past it the answer is 503.")
    ] = 10_000
    queue_bytes: Annotated[
        int,
        Field(
            ge=1024,
            description="Bytes of request bodies held at one time, as sent and decoded; past it the answer is 503.",
        ),
    ] = 256 * MIB
    group_bytes: Annotated[
        int, Field(ge=1024, description="Decoded bytes after which one commit takes no further submission.")
    ] = 8 * MIB
    reports_per_submission: Annotated[
        int, Field(ge=1, description="Reports that one submission may hold; past it the answer is 413.")
    ] = 1_000_000
    max_domain_size: Annotated[int, Field(ge=2, le=MAX_DOMAIN_SIZE, description="Items that a round may have.")] = (
        MAX_DOMAIN_SIZE
    )
    body_seconds: Annotated[
        int, Field(ge=1, description="Time in which a request's body must arrive; past it the answer is 408.")
    ] = 30
    request_seconds: Annotated[
        int,
        Field(
            ge=1,
            description="Time that a submission waits for its commit, and that a commit is tried again; past it the "
            "answer is 503 and a retry is safe.",
        ),
    ] = 30
    min_free_bytes: Annotated[
        int,
        Field(ge=0, description="Free bytes on the disk of a SQLite file below which the server says it is not ready."),
    ] = 64 * MIB
    log_format: Annotated[LogFormat, Field(description="Form of the log on standard error: console or json.")] = (
        "console"
    )
    shutdown_seconds: Annotated[
        int, Field(ge=1, description="Time that requests under way get to finish after SIGTERM.")
    ] = 30

    def environment(self) -> dict[str, str]:
        """Return these settings as environment variables."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {
            f"LDPRECOVER_{name.upper()}": value.get_secret_value() if isinstance(value, SecretStr) else str(value)
            for name, value in values.items()
            if value is not None
        }
