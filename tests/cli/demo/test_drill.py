"""`drill`: its process, whose page, token and server end with it."""

import os
import re
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.cli.demo.conftest import (
    StartDemo,
    assert_nothing_remains,
    kill_and_wait_for_children,
    wait_for_line,
)
from tests.conftest import ServerProcess
from tests.forked import Process

DRILL = ("drill", "--users", "1000", "--protocol", "grr", "--targets", "3")


def _drill(process: Process) -> httpx.Client:
    """Wait until a drill has said its address, and return a caller that has its token."""
    line = wait_for_line(process, "Open http")
    match = re.fullmatch(
        r"Open (http://127\.0\.0\.1:\d+)/#/drill\?token=(\S+) in a browser; Ctrl-C ends .*\n", line
    )
    assert match is not None, line
    return httpx.Client(
        base_url=match[1], headers={"X-Drill-Token": match[2]}, trust_env=False, timeout=60
    )


def test_drill_on_its_own_server_runs_until_ctrl_c(start_demo: StartDemo, temporary: Path) -> None:
    """Its form has the options of the command; the printed key opens rounds."""
    process = start_demo(
        *DRILL, LDPRECOVER_URL="http://127.0.0.1:1", LDPRECOVER_KEY="of-another-server"
    )
    key = wait_for_line(process, "The admin key").split()[-1]
    with _drill(process) as http:
        assert "/drill/static/drill.js" in http.get("/").text
        defaults = http.get("/drill/options").json()["defaults"]
        assert (defaults["users"], defaults["protocol"], defaults["targets"]) == (1000, "grr", 3)
        opened = {"protocol": "grr", "epsilon": 1, "domain_size": 3, "name": "mine"}
        assert (
            http.post(
                "/rounds", json=opened, headers={"Authorization": f"Bearer {key}"}
            ).status_code
            == 201
        )
        begun = http.post("/drill/run", json={"methods": ["ldprecover"]})
        assert begun.status_code == 202, begun.text
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert (process.returncode, err.splitlines()[-1]) == (0, "Stopped.")
    assert "Traceback" not in err
    assert_nothing_remains(temporary)


def test_open_starts_a_browser_and_one_address_is_printed(
    start_demo: StartDemo, temporary: Path, tmp_path: Path
) -> None:
    """The browser is a program in PATH, which writes the address that it is given."""
    programs, opened = tmp_path / "programs", tmp_path / "opened"
    programs.mkdir()
    os.mkfifo(opened)
    for name in ("xdg-open", "open"):
        program = programs / name
        program.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}\n')
        program.chmod(0o755)
    process = start_demo(*DRILL, "--open", PATH=f"{programs}:{os.environ['PATH']}")
    address = opened.read_text()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert re.findall(r"http://\S+", err) == [address]
    assert_nothing_remains(temporary)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
def test_signal_ends_a_drill(
    start_demo: StartDemo, temporary: Path, number: signal.Signals
) -> None:
    process = start_demo(*DRILL)
    _drill(process).close()
    process.send_signal(number)
    _, err = process.communicate()
    assert (process.returncode, err) == (128 + number, "")
    assert_nothing_remains(temporary)


def test_killed_drill_leaves_no_process(start_demo: StartDemo, temporary: Path) -> None:
    process = start_demo(*DRILL)
    with _drill(process) as http:
        assert http.post("/drill/run", json={"methods": ["unmix"]}).status_code == 202
        while http.get("/drill/run").json()["state"] == "running":
            assert process.poll() is None
    kill_and_wait_for_children(process, temporary)


def test_drill_on_another_server_deletes_its_unfinished_round(
    start_demo: StartDemo, temporary: Path, server: ServerProcess, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text(f"{server.admin_key}\n")
    process = start_demo(*DRILL, "--url", server.url, "--key-file", str(file))
    with _drill(process) as http:
        assert http.post("/drill/run", json={"methods": []}).status_code == 202
        while (run := http.get("/drill/run").json())["state"] == "running":
            assert process.poll() is None
        assert run["state"] == "done", run
        assert server.http.get(f"/rounds/{run['round']}").json()["n"] == 1053
        # These methods read all reports many times, which would take minutes.
        long = {"users": 200_000, "methods": ["em", "k-means", "ldprecover-km", "unmix"]}
        assert http.post("/drill/run", json=long).status_code == 202
        while (unfinished := http.get("/drill/run").json()["round"]) is None:
            assert process.poll() is None
        assert server.http.get(f"/rounds/{unfinished}").status_code == 200
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 0
    assert server.http.get(f"/rounds/{unfinished}").status_code == 404
    assert server.http.get(f"/rounds/{run['round']}").status_code == 200
    assert_nothing_remains(temporary)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--json",), 2, "No such option: --json"),
        (
            ("--url", "http://127.0.0.1:1"),
            2,
            "give an admin key of the server with --key or --key-file",
        ),
        (("--url", "ftp://h", "--key", "key"), 2, "http:// or https://"),
        (("--url", "http://127.0.0.1:1", "--key", "key", "--dataset", "no.csv"), 2, "no.csv"),
        (
            ("--url", "http://127.0.0.1:1", "--key", "key", "--host", "192.0.2.1"),
            1,
            "192.0.2.1",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_options_are_one_line(
    run: Any, temporary: Path, options: tuple[str, ...], code: int, words: str
) -> None:
    result = run("drill", *options)
    assert (result.code, words in result.error) == (code, True), result.err
    assert_nothing_remains(temporary)
