"""The cluster as its compose file and its page describe it, played by processes of this machine."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.dask_cluster import DaskCluster

from ldprecover_cluster import EngineError, Scheduler, engine

ROOT = Path(__file__).parents[2]
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
    held = SERVICES[service]["volumes"]
    inside = dict(
        reversed(volume.removesuffix(":ro").rsplit(":", 1)) for volume in held if "pem" in volume
    )
    words = []
    for word in SERVICES[service]["command"]:
        option, _, value = word.partition("=")
        file = inside.get(value)
        words.append(word if file is None else f"{option}={tls / Path(file).name}")
        assert file is not None or "pem" not in word, "a file that is not mounted"
    replaced = {"tls://scheduler:8786": scheduler, "--port=8786": "--port=0"}
    return [replaced.get(word, word) for word in words]


@pytest.fixture(scope="module")
def cluster(tls: Path) -> Iterator[DaskCluster]:
    pytest.importorskip(
        "distributed", reason="the extra `cluster` is not installed: no cluster is started"
    )
    environment = SERVICES["scheduler"]["environment"]
    with closing(
        DaskCluster(tls, command=command("scheduler", tls), environment=environment)
    ) as cluster:
        cluster.start("Registered to:", *command("worker-1", tls, cluster.url))
        yield cluster


def client(tls: Path, url: str, ca: str = "ca.pem") -> Scheduler:
    return Scheduler(url, str(tls / ca), str(tls / "client.pem"), str(tls / "client-key.pem"))


def test_the_cluster_works_for_who_has_the_page_s_certificates(
    cluster: DaskCluster, tls: Path
) -> None:
    assert cluster.url.startswith("tls://")
    with engine(scheduler=client(tls, cluster.url)) as executor:
        assert executor is not None
        assert executor.submit(os.getpid).result() != os.getpid()


def _done(scheduler: Scheduler) -> object:
    with engine(scheduler=scheduler) as executor:
        assert executor is not None
        return executor.submit(os.getpid).result()


def test_the_cluster_lets_nobody_else_in(cluster: DaskCluster, tls: Path) -> None:
    """Not without TLS, nor with a certificate of another CA."""
    plain = f"tcp://127.0.0.1:{cluster.url.rpartition(':')[2]}"
    new = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-subj",
        "/CN=a",
    ]
    own = [str(tls / "other.pem"), str(tls / "other-key.pem")]
    subprocess.run([*new, "-out", own[0], "-keyout", own[1]], check=True, capture_output=True)
    for stranger in (Scheduler(plain), Scheduler(cluster.url, str(tls / "ca.pem"), *own)):
        with pytest.raises(EngineError, match="cannot be reached: "):
            _done(stranger)


def test_no_certificate_but_the_ca_s_admits_others(tls: Path) -> None:
    made = [
        "-CA",
        "client.pem",
        "-CAkey",
        "client-key.pem",
        "-subj",
        "/CN=a",
        "-out",
        "by-client.pem",
        "-keyout",
        "a.pem",
    ]
    new = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        *made,
    ]
    subprocess.run(new, cwd=tls, check=True, capture_output=True)
    verify = ["openssl", "verify", "-CAfile", "ca.pem"]
    assert subprocess.run([*verify, "client.pem"], cwd=tls, capture_output=True).returncode == 0
    chained = subprocess.run(
        [*verify, "-untrusted", "client.pem", "by-client.pem"],
        cwd=tls,
        capture_output=True,
        text=True,
    )
    assert "invalid CA certificate" in chained.stderr


def test_the_compose_tools_take_the_file() -> None:
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "compose", "version"], capture_output=True).returncode
    ):
        pytest.skip("docker compose is not installed")
    unset = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LDPRECOVER_", "COMPOSE_"))
    }
    ended = subprocess.run(
        ["docker", "compose", "config"], cwd=FOLDER, env=unset, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert yaml.safe_load(ended.stdout)["services"].keys() == SERVICES.keys()


def test_there_are_two_workers_each_with_one_thread_a_bound_and_its_own_key() -> None:
    workers = {name: service for name, service in SERVICES.items() if name.startswith("worker")}
    assert len(workers) == 2
    for service in workers.values():
        assert {"--nworkers=1", "--nthreads=1", "--memory-limit=512MiB"} <= set(service["command"])
        assert not [volume for volume in service["volumes"] if not volume.endswith(":ro")]
    for name, service in SERVICES.items():
        assert "--no-dashboard" in service["command"]
        keys = {
            Path(volume.split(":")[-2]).name
            for volume in service["volumes"]
            if "-key.pem" in volume
        }
        assert keys == {f"{name.split('-')[0]}-key.pem"}
        assert service["cap_drop"] == ["ALL"]
        assert service["read_only"]


def test_only_the_scheduler_is_published_and_only_to_this_machine() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"scheduler": ["${CLUSTER_SCHEDULER:-127.0.0.1:8786}:8786"]}


def test_both_pages_warn_in_the_same_words() -> None:
    said = [
        re.search(r"> \*\*An open scheduler port is code execution\.\*\*(?:.*\n>)*.*", page)
        for page in PAGES.values()
    ]
    assert said[0] is not None
    assert said[1] is not None
    assert said[0][0].split() == said[1][0].split()
