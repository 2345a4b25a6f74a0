"""PgBouncer before the Postgres of a test."""

import contextlib
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.postgres import Cluster


@contextlib.contextmanager
def pooled(cluster: Cluster, folder: Path, **settings: object) -> Iterator[None]:
    """Run PgBouncer before a cluster, on a socket in the folder, port 6432.

    Without PgBouncer, skip the test, but fail it in CI.
    """
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
    if program is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("pgbouncer is not installed")
    values = {"unix_socket_dir": folder, "listen_port": 6432, "auth_type": "any", **settings}
    lines = [f"{name} = {value}" for name, value in values.items()]
    database = f"* = host={cluster.socket.parent} user=postgres"
    file = folder / "pgbouncer.ini"
    file.write_text("\n".join(["[databases]", database, "[pgbouncer]", *lines]))
    user = None
    if os.geteuid() == 0:  # PgBouncer does not run as root
        user = pwd.getpwnam("nobody").pw_uid
        os.chown(folder, user, -1)
    with subprocess.Popen([program, file], stderr=subprocess.PIPE, text=True, user=user) as process:
        assert process.stderr is not None
        try:
            assert any("process up" in line for line in process.stderr)
            yield
        finally:
            process.kill()
