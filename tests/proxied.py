"""The proxy of deploy/nginx before a server of a test."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PROXIED = Path(__file__).parents[1] / "tools" / "proxied"


@dataclass(frozen=True)
class Proxy:
    """A running proxy: its address, and the process that started nginx."""

    host: str
    port: int
    pid: int

    @property
    def url(self) -> str:
        """The address as a URL."""
        return f"http://{self.host}:{self.port}"


@contextlib.contextmanager
def proxied(upstream: int) -> Iterator[Proxy]:
    """Run nginx before a port of this machine. Without nginx, skip the test, but fail it in CI."""
    if shutil.which("nginx", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("nginx is not installed")
    command = [sys.executable, str(PROXIED), str(upstream), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        host, _, port = process.stdout.readline().strip().removeprefix("http://").partition(":")
        try:
            yield Proxy(host, int(port), process.pid)
        finally:
            process.terminate()
