"""Options for parallel work: processes of this machine, or a Dask cluster."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ldprecover_cli.errors import CommandError, UsageError

if TYPE_CHECKING:
    from ldprecover_cluster import Scheduler

Jobs = Annotated[int, Option(min=1, max=256, help="Number of worker processes.")]
SchedulerUrl = Annotated[
    str | None,
    Option(
        "--scheduler",
        help="Scheduler of a Dask cluster that does the work: tls://HOST:PORT, or "
        "tcp://127.0.0.1:PORT.",
        metavar="URL",
    ),
]
TlsCa = Annotated[
    Path | None,
    Option(
        "--tls-ca",
        help="PEM certificate of the cluster's CA. Without the three TLS options, Dask's own "
        "configuration applies.",
        metavar="FILE",
    ),
]
TlsCert = Annotated[
    Path | None, Option("--tls-cert", help="Client certificate for the cluster.", metavar="FILE")
]
TlsKey = Annotated[
    Path | None, Option("--tls-key", help="Key of that certificate.", metavar="FILE")
]


def scheduler_of(
    url: str | None,
    jobs: int | None,
    tls_ca: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
) -> "Scheduler | None":
    """Return the scheduler that the options name, or None.

    Raises UsageError for options that exclude each other, CommandError if Dask is not installed,
    and ParameterError as Scheduler does.
    """
    files = [None if file is None else str(file) for file in (tls_ca, tls_cert, tls_key)]
    if url is None:
        if any(files):
            raise UsageError("--tls-ca, --tls-cert and --tls-key need --scheduler")
        return None
    if jobs is not None and jobs > 1:
        raise UsageError("give either --jobs, for processes of this machine, or --scheduler")
    from ldprecover_cluster import Scheduler

    scheduler = Scheduler(url, *files)
    if (missing := Scheduler.missing_package()) is not None:
        raise CommandError(missing)
    return scheduler
