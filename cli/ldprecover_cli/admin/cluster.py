"""`admin cluster`: run the scheduler and the workers of a Dask cluster."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ldprecover_cli.grammar import group
from ldprecover_cli.output import note

_Ca = Annotated[Path, Option("--tls-ca", help="Certificate of the cluster's CA.", metavar="FILE")]
_Cert = Annotated[Path, Option("--tls-cert", help="Certificate of this node.", metavar="FILE")]
_Key = Annotated[Path, Option("--tls-key", help="Key of that certificate.", metavar="FILE")]


def scheduler(
    *,
    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port to listen on.", metavar="N")] = 8786,
    tls_ca: _Ca = Path("tls/ca.pem"),
    tls_cert: _Cert = Path("tls/scheduler.pem"),
    tls_key: _Key = Path("tls/scheduler-key.pem"),
) -> None:
    """Run the scheduler until Ctrl-C.

    Example: ldprecover admin cluster scheduler --host 10.0.0.5
    """
    from ldprecover_cluster.nodes import run_scheduler

    files = str(tls_ca), str(tls_cert), str(tls_key)
    run_scheduler(host, port, files, lambda url: note(f"Scheduler at {url}"))


def worker(
    url: Annotated[str, Argument(help="The scheduler: tls://HOST:PORT.", metavar="SCHEDULER")],
    *,
    jobs: Annotated[
        int | None,
        Option(min=1, max=256, help="Worker processes; by default one a processor.", metavar="N"),
    ] = None,
    memory_limit: Annotated[
        int, Option(min=128, help="MiB of memory of each worker process.", metavar="MIB")
    ] = 512,
    host: Annotated[
        str | None,
        Option(help="Address to listen on; by default the one that reaches the scheduler."),
    ] = None,
    tls_ca: _Ca = Path("tls/ca.pem"),
    tls_cert: _Cert = Path("tls/worker.pem"),
    tls_key: _Key = Path("tls/worker-key.pem"),
) -> None:
    """Run worker processes until Ctrl-C.

    A process near its memory limit is replaced by a new one.

    Example: ldprecover admin cluster worker tls://10.0.0.5:8786 --jobs 4
    """
    from ldprecover_cluster import Scheduler
    from ldprecover_cluster.nodes import run_workers

    run_workers(
        Scheduler(url, str(tls_ca), str(tls_cert), str(tls_key)),
        jobs,
        memory_limit << 20,
        host,
        lambda jobs: note(f"{jobs} worker process{'es' if jobs > 1 else ''} of {url}"),
    )


app = group(
    "cluster",
    """Run a Dask cluster that reads reports, with TLS and without Dask's HTTP server.

    Whoever has a certificate of its CA can run code on its machines.

    Example: ldprecover admin cluster worker tls://10.0.0.5:8786
    """,
    scheduler=scheduler,
    worker=worker,
)
