"""Deployments with a database each, behind a proxy: merged they have each report once, if a retry
goes where it was.
"""

import contextlib
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import uuid
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from tests.conftest import PACKED, NewDatabase, ServerProcess
from tests.docs.markdown import ROOT, Page

from ldprecover import RoundExport, RoundParameters, Tally
from ldprecover.protocols import wire
from ldprecover_cli.app import run
from ldprecover_client import Client, Ledger, Reporter, Retries

pytestmark = pytest.mark.sqlite

ITEMS = [f"item {i}" for i in range(8)]
PATIENT = Retries(attempts=1000, base=0.02, longest=0.1)
NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")


@pytest.fixture(scope="module")
def deployments(
    tmp_path_factory: pytest.TempPathFactory, new_database: NewDatabase
) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    """Two servers with a database each, which listen where they did when they are started again."""
    with contextlib.ExitStack() as stack:

        def start() -> ServerProcess:
            folder = tmp_path_factory.mktemp("deployment")
            url = stack.enter_context(new_database(folder))
            server = stack.enter_context(
                contextlib.closing(ServerProcess(folder, url, kernels="numpy", analyses=1))
            )
            server.start()
            server.keep_port()
            return server

        yield start(), start()


@pytest.fixture
def name(deployments: tuple[ServerProcess, ServerProcess]) -> str:
    """A round with the same parameters, and this name, on each of them."""
    name = f"r{uuid.uuid4().hex}"
    for server in deployments:
        server.open_round("oue", 1.0, name=name, items=ITEMS)
    return name


class Proxy:
    """A proxy that sends each request to the deployment that `choose` names for its key.

    The answer to the first try of each key in `loses` is lost on the way, after it was given. A
    deployment that has taken as many submissions as `kills` says, once for each number in it, is
    killed with others on their way to it, and started again.
    """

    def __init__(
        self,
        deployments: tuple[ServerProcess, ServerProcess],
        choose: Callable[[str], int],
        loses: Callable[[str], bool],
        kills: tuple[int, ...] = (),
    ) -> None:
        self.lost: set[str] = set()
        self._deployments = deployments
        self._choose = choose
        self._loses = loses
        self._kills = [list(kills), list(kills)]
        self._taken = [0, 0]
        self._lock = threading.Lock()
        self._restarts: tuple[list[threading.Thread], list[threading.Thread]] = ([], [])
        self._http = httpx.Client(timeout=60, trust_env=False)

    def pass_on(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> httpx.Response | None:
        """Return a deployment's answer, 502 without an answer, or None where the answer is lost on
        the way.
        """
        key = headers.get("Idempotency-Key", "")
        with self._lock:
            chosen = self._choose(key)
            self._kill_in_turn(chosen)
        try:
            url = self._deployments[chosen].url + path
            answer = self._http.request(method, url, headers=headers, content=body)
        except httpx.TransportError:
            return httpx.Response(502, headers={"Content-Type": "text/html"})
        with self._lock:
            if answer.status_code == 202:
                self._taken[chosen] += 1
                if key not in self.lost and self._loses(key):
                    self.lost.add(key)
                    return None
        return answer

    def _kill_in_turn(self, chosen: int) -> None:
        server, kills, before = (
            self._deployments[chosen],
            self._kills[chosen],
            self._restarts[chosen],
        )
        if kills and self._taken[chosen] >= kills[0] and not (before and before[-1].is_alive()):
            del kills[0]
            server.signal(signal.SIGKILL)
            before.append(threading.Thread(target=server.restart))
            before[-1].start()

    @property
    def killed(self) -> list[int]:
        """How often each deployment was."""
        return [len(restarts) for restarts in self._restarts]

    @contextlib.contextmanager
    def listening(self) -> Iterator[str]:
        """Listen on a free port for as long; give the URL."""
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name: value for name, value in self.headers.items() if name != "Host"}
                answer = proxy.pass_on(self.command, self.path, headers, body)
                if answer is None:
                    self.close_connection = True
                    return
                self.send_response(answer.status_code)
                self.send_header("Content-Type", answer.headers["Content-Type"])
                self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            do_GET = do_POST = _pass_on  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        with self._http, ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_address[1]}"
            finally:
                server.shutdown()
                thread.join()
                for restart in itertools.chain(*self._restarts):
                    restart.join()


def users_report(url: str, name: str, users: int, at_once: int) -> Tally:
    """Have users report by the round's name until each is answered; return their reports' tally."""
    oracle = RoundParameters("oue", 1.0, tuple(ITEMS)).oracle
    with Client(url, retries=PATIENT) as client, ThreadPoolExecutor(at_once) as pool:

        def report(user: int) -> bytes:
            reporter = Reporter(client, name, by_name=True, ledger=Ledger.in_memory())
            assert reporter.report(user % len(ITEMS)).state == "accepted"
            return reporter.ledger.entries()[0].packed

        reported = list(pool.map(report, range(users)))
    return Tally.of(oracle, oracle.wire.unpack(b"".join(reported)))


def merged(
    deployments: tuple[ServerProcess, ServerProcess], name: str, folder: Path
) -> RoundExport:
    """Export the round from each deployment, and return what `merge` makes of the files."""
    files = [str(folder / f"{i}.json") for i in range(2)]
    for server, file in zip(deployments, files, strict=True):
        assert run(["round", "export", name, "--url", server.url, "--output", file]) == 0
    assert run(["file", "merge", *files, "--output", str(folder / "all.json")]) == 0
    return RoundExport.from_json((folder / "all.json").read_bytes())


def by_key(key: str) -> int:
    return zlib.crc32(key.encode()) % 2


def every_third(key: str) -> bool:
    return zlib.crc32(key.encode()) // 2 % 3 == 0


def test_retries_routed_by_key_count_once(
    deployments: tuple[ServerProcess, ServerProcess], name: str, tmp_path: Path
) -> None:
    """A third of the answers are lost, and each deployment is killed twice with submissions on
    their way to it.
    """
    proxy = Proxy(deployments, by_key, every_third, kills=(1, 4))
    with proxy.listening() as url:
        reported = users_report(url, name, 80, at_once=8)
    export = merged(deployments, name, tmp_path)
    # Either has 14 of 80 random keys at least, and 4 are lost, but once in 10^8 runs.
    assert len(proxy.lost) >= 4
    assert proxy.killed == [2, 2]
    assert export.tally == reported
    assert export.name == name


def test_retries_at_another_deployment_count_twice(
    deployments: tuple[ServerProcess, ServerProcess], name: str, tmp_path: Path
) -> None:
    """What the proxy is for: the other deployment does not know the key, and takes the report once
    more.
    """
    turns = itertools.cycle([0, 1])
    proxy = Proxy(deployments, lambda key: next(turns) if key else 0, every_third)
    with proxy.listening() as url:
        reported = users_report(url, name, 20, at_once=1)
    export = merged(deployments, name, tmp_path)
    assert reported.n == 20
    assert export.tally.n == 20 + len(proxy.lost)
    assert proxy.lost


@pytest.fixture
def nginx(deployments: tuple[ServerProcess, ServerProcess], tmp_path: Path) -> Iterator[str]:
    """nginx with the configuration that the page shows, but for addresses and TLS; give its URL."""
    assert NGINX is not None
    page = Page(ROOT / "docs" / "how-to" / "several-deployments.md")
    (shown,) = (block.text for block in page.blocks if "upstream" in block.text)
    for i, server in enumerate(deployments):
        shown, changed = re.subn(
            rf"10\.0\.0\.{i + 1}:8000", server.url.removeprefix("http://"), shown
        )
        assert changed == 2
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        shown, changed = re.subn(r"listen 443 ssl;", f"listen {address};", shown)
        assert changed == 1
        shown = re.sub(r"^\s*ssl_certificate.*$", "", shown, flags=re.MULTILINE)
        shown = shown.replace("/var/log/nginx", str(tmp_path))
        folders = [
            f"{kind}_temp_path {tmp_path / kind};" for kind in ("proxy", "fastcgi", "uwsgi", "scgi")
        ]
        folders.append(f"client_body_temp_path {tmp_path / 'bodies'};")
        configuration = tmp_path / "nginx.conf"
        configuration.write_text(
            f"daemon off; worker_processes 1; pid {tmp_path / 'pid'}; events {{}} "
            f"http {{ {' '.join(folders)}\n{shown}\n}}\n"
        )
        process = subprocess.Popen(
            [NGINX, "-p", tmp_path, "-e", tmp_path / "errors", "-c", configuration],
            # It takes over a socket that listens already, so that nobody has to wait for it.
            env={**os.environ, "NGINX": f"{listening.fileno()};"},
            pass_fds=[listening.fileno()],
            stderr=subprocess.PIPE,
            text=True,
        )
    try:
        yield f"http://{address}"
    finally:
        process.terminate()
        _, output = process.communicate()
    assert process.returncode == 0, output


@pytest.mark.skipif(
    NGINX is None, reason="the proxy that the page shows is nginx, which is not installed"
)
def test_documented_nginx_routes_each_key_to_one_deployment(
    deployments: tuple[ServerProcess, ServerProcess], name: str, nginx: str, tmp_path: Path
) -> None:
    """While one is down its keys wait for it, and go nowhere else."""
    reported = users_report(nginx, name, 20, at_once=4)
    oracle = RoundParameters("oue", 1.0, tuple(ITEMS)).oracle
    packed = wire.pack(oracle.perturb([0]))
    keys = [
        f"key-{i}" for i in range(41)
    ]  # odd, so a round-robin would send the next keys elsewhere
    with httpx.Client(base_url=nginx, timeout=60, trust_env=False) as http:

        def submit() -> list[tuple[int, bool]]:
            """Send all of them; return the status of each answer, and whether it is a duplicate."""
            answers = [
                http.post(
                    f"/rounds/{name}/reports",
                    content=packed,
                    headers=PACKED | {"Idempotency-Key": key},
                )
                for key in keys
            ]
            return [(answer.status_code, '"duplicate":true' in answer.text) for answer in answers]

        assert set(submit()) == {(202, False)}
        deployments[0].kill()
        assert set(submit()) == {(202, True), (502, False)}
        # The one that is up states the parameters, whichever nginx asks first.
        assert http.get(f"/rounds/{name}/parameters").json()["name"] == name
        deployments[0].start()
        assert set(submit()) == {(202, True)}
        for path in (
            f"/rounds/{name}/frequencies",
            f"/rounds/{name}",
            "/rounds/current/parameters",
            "/reports",
            "/",
        ):
            assert http.get(path).status_code == 404
    export = merged(deployments, name, tmp_path)
    assert export.tally == reported + Tally.of(oracle, oracle.wire.unpack(packed * len(keys)))
    assert all(each.n > 0 for each in export.merged)
