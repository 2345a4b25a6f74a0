"""Node and a browser for the tests of the client for JavaScript."""

import functools
import json
import re
import shlex
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ServerProcess

CLIENT = Path(__file__).parents[2] / "client" / "js"
_OLDEST = 18


@pytest.fixture(scope="session")
def node() -> str:
    """The path of Node; skips without Node 18 or newer."""
    path = shutil.which("node")
    if path is None:
        pytest.skip("the client for JavaScript needs Node, which is not installed")
    version = subprocess.run(
        [path, "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()
    version_match = re.match(r"v(\d+)", version)
    if version_match is None or int(version_match[1]) < _OLDEST:
        pytest.skip(f"the client for JavaScript needs Node {_OLDEST} or newer, not {version}")
    return path


@pytest.fixture(scope="session")
def classic_script(node: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client as a plain script, built by the package's own command."""
    command = json.loads((CLIENT / "package.json").read_text())["scripts"]["classic"]
    esbuild, *options = shlex.split(command)
    program = CLIENT / "node_modules" / ".bin" / esbuild
    if not program.exists():
        pytest.skip("esbuild is not installed; make install installs it")
    path = tmp_path_factory.mktemp("classic") / "ldprecover.classic.js"
    build = [node, str(program), *options, f"--outfile={path}", "--log-level=warning"]
    subprocess.run(build, cwd=CLIENT, check=True, timeout=60)
    return path


ReportInNode = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="session")
def report_in_node(node: str) -> ReportInNode:
    """Report values with the client in Node; return the receipts."""

    def report(**fields: Any) -> list[dict[str, Any]]:
        ended = subprocess.run(
            [node, str(CLIENT / "tests" / "report.js")],
            input=json.dumps(fields),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert ended.returncode == 0, ended.stderr
        receipts: list[dict[str, Any]] = json.loads(ended.stdout)
        return receipts

    return report


def open_form(server: ServerProcess, assign: str) -> tuple[str, list[str]]:
    """Open a form whose rounds ask x, y and z; return its id, and tickets if these assign.

    That all of them assign one round has a probability of 1e-14.
    """
    common = {"protocol": "grr", "epsilon": 2.0, "items": ["soup", "salad"]}
    new = {"assign": assign, "rounds": [{**common, "question": each} for each in "xyz"]}
    id = server.post("/forms", json=new, headers=server.admin).json()["id"]
    return id, server.mint(f"/forms/{id}", 30)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The origin of a web server with the client's files."""
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Quiet, directory=str(CLIENT))
    ) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
