"""The cluster as its compose file and its page describe it, played by processes of this machine."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.tools import ROOT, compose_services
from tools.dask_cluster import DaskCluster

from ldprecover_cluster import EngineError, Scheduler, engine

FOLDER = ROOT / "deploy" / "cluster"
COMPOSE: dict[str, Any] = yaml.safe_load(
    (FOLDER / "docker-compose.yml").read_text(encoding="utf-8")
)
SERVICES: dict[str, Any] = COMPOSE["services"]
PAGES = {
    name: (ROOT / "docs" / "how-to" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("cluster", "deploying")
}


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what the page's commands make."""
    commands = re.search(r"```\n(mkdir -p tls\n.*?)```", PAGES["cluster"], re.DOTALL)
    assert commands is not None
    folder = tmp_path_factory.mktemp("cluster")
    ended = subprocess.run(
        ["bash", "-euc", commands[1]], cwd=folder, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    return folder / "tls"


def command(service: str, tls: Path, scheduler: str = "") -> list[str]:
    """Return a service's command with the files and the scheduler of this machine, on a free
    port.
    """
    volumes = SERVICES[service]["volumes"]
    inside = dict(
        reversed(volume.removesuffix(":ro").rsplit(":", 1)) for volume in volumes if "pem" in volume
    )
    words = []
    for word in SERVICES[service]["command"]:
        option, _, value = word.partition("=")
        file = inside.get(value)
        words.append(word if file is None else f"{option}={tls / Path(file).name}")
        assert file is not None or "pem" not in word, "a file that is not mounted"
    replaced = {
        "tls://scheduler:8786": scheduler,
        "--host=0.0.0.0": "--host=127.0.0.1",
        "--port=8786": "--port=0",
    }
    return [replaced.get(word, word) for word in words]


@pytest.fixture(scope="module")
def cluster(tls: Path) -> Iterator[DaskCluster]:
    pytest.importorskip(
        "distributed", reason="the extra `cluster` is not installed: no cluster is started"
    )
    ca, cert, key = (str(tls / name) for name in ("ca.pem", "client.pem", "client-key.pem"))
    with closing(DaskCluster(tls, (ca, cert, key), command=command("scheduler", tls))) as cluster:
        cluster.start("1 worker process of ", *command("worker-1", tls, cluster.url))
        yield cluster


def worker_pid(scheduler: Scheduler) -> int:
    """Return the process id of a worker."""
    with engine(scheduler=scheduler) as executor:
        assert executor is not None
        pid: int = executor.submit(os.getpid).result()
        return pid


def test_cluster_accepts_the_certificates_of_the_page(cluster: DaskCluster) -> None:
    assert cluster.url.startswith("tls://")
    assert worker_pid(cluster.address) != os.getpid()


def new_certificate(folder: Path, name: str, *options: str) -> None:
    """Write a new certificate NAME.pem and its key."""
    openssl = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=a"
    files = ["-out", f"{name}.pem", "-keyout", f"{name}-key.pem"]
    subprocess.run(
        [*openssl.split(), *options, *files], cwd=folder, check=True, capture_output=True
    )


def test_cluster_rejects_others(cluster: DaskCluster, tls: Path) -> None:
    """Not without TLS, nor with a certificate of another CA."""
    plain = f"tcp://127.0.0.1:{cluster.url.rpartition(':')[2]}"
    new_certificate(tls, "other")
    own = [str(tls / "other.pem"), str(tls / "other-key.pem")]
    for other in (Scheduler(plain), Scheduler(cluster.url, str(tls / "ca.pem"), *own)):
        with pytest.raises(EngineError, match="cannot be reached: "):
            worker_pid(other)


def test_only_the_ca_issues_valid_certificates(tls: Path) -> None:
    new_certificate(tls, "by-client", "-CA", "client.pem", "-CAkey", "client-key.pem")
    verify = ["openssl", "verify", "-CAfile", "ca.pem"]
    assert subprocess.run([*verify, "client.pem"], cwd=tls, capture_output=True).returncode == 0
    chained = subprocess.run(
        [*verify, "-untrusted", "client.pem", "by-client.pem"],
        cwd=tls,
        capture_output=True,
        text=True,
    )
    assert "invalid CA certificate" in chained.stderr


def test_compose_reads_the_file() -> None:
    assert compose_services(FOLDER, "docker", "compose").keys() == SERVICES.keys()


def test_workers_have_limits_and_their_own_keys() -> None:
    workers = {name: service for name, service in SERVICES.items() if name.startswith("worker")}
    assert len(workers) == 2
    for service in workers.values():
        assert "--jobs=1" in service["command"]
        assert not [volume for volume in service["volumes"] if not volume.endswith(":ro")]
    for name, service in SERVICES.items():
        keys = {
            Path(volume.split(":")[-2]).name
            for volume in service["volumes"]
            if "-key.pem" in volume
        }
        assert keys == {f"{name.split('-')[0]}-key.pem"}
        assert service["cap_drop"] == ["ALL"]
        assert service["read_only"]


def test_only_the_scheduler_is_published_locally() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"scheduler": ["${CLUSTER_SCHEDULER:-127.0.0.1:8786}:8786"]}


def test_both_pages_warn_in_the_same_words() -> None:
    warnings = []
    for page in PAGES.values():
        warning = re.search(
            r"> \*\*An open scheduler port is code execution\.\*\*(?:.*\n>)*.*", page
        )
        assert warning is not None
        warnings.append(warning[0].split())
    assert warnings[0] == warnings[1]
