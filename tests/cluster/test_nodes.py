"""The commands that run a scheduler and workers listen with TLS, serve no HTTP and end cleanly."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.cli.conftest import Run
from tools.dask_cluster import DaskCluster, certificates

pytest.importorskip(
    "distributed", reason="the extra `cluster` is not installed: no cluster is started"
)
psutil = pytest.importorskip("psutil")


def listening(pid: int) -> set[tuple[str, int]]:
    """Return the addresses on which a process and those that it has started listen."""
    process = psutil.Process(pid)
    return {
        tuple(connection.laddr)
        for each in (process, *process.children(recursive=True))
        for connection in each.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }


def http_paths(host: str, port: int) -> list[str] | None:
    """Return the paths that Dask serves over HTTP on a port; None if it answers no HTTP."""
    try:
        with urlopen(f"http://{host}:{port}/sitemap.json") as answer:
            paths: list[str] = json.load(answer)["paths"]
            return paths
    except OSError:
        return None


def test_nodes_listen_with_tls_serve_no_pages_and_end_cleanly(tmp_path: Path) -> None:
    files = certificates(tmp_path)
    tls = [f"--tls-{name}={file}" for name, file in zip(("ca", "cert", "key"), files, strict=True)]
    command = ["admin", "cluster", "scheduler", "--host=127.0.0.2", "--port=0", *tls]
    with closing(DaskCluster(tmp_path, files, command=command)) as cluster:
        first, second = cluster.start_worker(), cluster.start_worker()
        for process, comms in ((cluster.scheduler, 1), (first, 2)):
            addresses = listening(process.pid)
            # A worker listens where it reaches the scheduler from; its HTTP server too.
            assert {host for host, _ in addresses} <= {"127.0.0.1", "127.0.0.2"}
            served = [http_paths(*address) for address in addresses]
            assert served.count(None) == comms
            assert all(paths == ["/sitemap.json"] for paths in served if paths is not None)
        os.killpg(first.pid, signal.SIGINT)  # as a terminal sends it to all processes
        assert first.wait() == 0
        cluster.scheduler.terminate()
        assert (cluster.scheduler.wait(), second.wait()) == (0, 1)
    lost = f"error: the scheduler {cluster.url} has ended, or the connection to it\n"
    assert lost in cluster.log
    assert not [line for line in cluster.log if "leaked" in line or "KeyboardInterrupt" in line]


def test_nodes_that_cannot_start_say_why(tmp_path: Path, run: Run) -> None:
    missing = run("admin cluster worker tls://127.0.0.1:1").fails(2)
    assert missing.startswith("the TLS CA is not a file: tls/ca.pem")
    wrong = run("admin cluster worker 127.0.0.1").fails(2)
    assert wrong.startswith("the scheduler must be tls://HOST:PORT or tcp")
    ca, cert, key = certificates(tmp_path)
    tls = ("--tls-ca", ca, "--tls-cert", cert)

    def error(*words: str, tls_key: str = key) -> str:
        """Return the error of a command, of which nothing stays in this process."""
        ended = subprocess.run(
            [
                sys.executable,
                "-m",
                "ldprecover_cli",
                "admin",
                "cluster",
                *words,
                *tls,
                "--tls-key",
                tls_key,
            ],
            env=os.environ | {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3 s"},
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 1
        return ended.stderr.strip()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        used = error("scheduler", "--port", port)
    assert used == (
        f"error: a scheduler cannot listen on 127.0.0.1, port {port}: Address already in use"
    )
    url = f"tls://127.0.0.1:{port}"
    # Refused, or, on a busy machine, timed out between two attempts.
    assert error("worker", url).startswith(f"error: the scheduler {url} cannot be reached: ")
    other = error("worker", url, tls_key=str(tmp_path / "ca-key.pem"))
    assert other.startswith("error: the TLS files cannot be used: ")
