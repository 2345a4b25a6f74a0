"""Options of commands whose work others may do: processes of this machine, or a Dask cluster."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldprecover_cli.errors import CommandError, UsageError

if TYPE_CHECKING:
    from ldprecover_cluster import Scheduler

Jobs = Annotated[int, typer.Option(min=1, max=256, help="Processes.")]
SchedulerUrl = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        help="A Dask cluster's scheduler, whose workers do it: tls://HOST:PORT, or "
        "tcp://127.0.0.1:PORT.",
        metavar="URL",
    ),
]
TlsCa = Annotated[
    Path | None,
    typer.Option(
        "--tls-ca",
        help="Certificate of the CA of the cluster, PEM. Without the three, Dask's own "
        "configuration names them.",
        metavar="FILE",
    ),
]
TlsCert = Annotated[
    Path | None, typer.Option("--tls-cert", help="Own certificate for the cluster.", metavar="FILE")
]
TlsKey = Annotated[
    Path | None, typer.Option("--tls-key", help="Key of that certificate.", metavar="FILE")
]


def scheduler_of(
    url: str | None,
    jobs: int | None,
    tls_ca: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
) -> "Scheduler | None":
    """Return the scheduler that the options name, None where they name none.

    Raises UsageError where they do not go together, CommandError where Dask is not installed, and
    ParameterError as Scheduler does.
    """
    files = [None if file is None else str(file) for file in (tls_ca, tls_cert, tls_key)]
    if url is None:
        if any(files):
            raise UsageError("--tls-ca, --tls-cert and --tls-key are for --scheduler")
        return None
    if jobs is not None and jobs > 1:
        raise UsageError("give --jobs, for processes of this machine, or --scheduler")
    from ldprecover_cluster import Scheduler

    scheduler = Scheduler(url, *files)
    if (missing := Scheduler.missing_package()) is not None:
        raise CommandError(missing)
    return scheduler
