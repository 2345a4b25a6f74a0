"""`demo --page`: the drill's process, whose page, token and server end with it."""

import os
import re
import select
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.cli.demo.conftest import StartDemo, assert_nothing_is_left, processes_of, wait_for_line
from tests.conftest import ServerProcess
from tests.forked import Process

PAGE = ("--page", "--users", "1000", "--protocol", "grr", "--targets", "3")


def _drill(process: Process) -> httpx.Client:
    """Wait until a drill has said its address, and return a caller that has its token."""
    line = wait_for_line(process, "Open http")
    found = re.fullmatch(
        r"Open (http://127\.0\.0\.1:\d+)/#/drill\?token=(\S+) in a browser; .* Ctrl-C\.\n", line
    )
    assert found is not None, line
    return httpx.Client(
        base_url=found[1], headers={"X-Drill-Token": found[2]}, trust_env=False, timeout=60
    )


def test_a_drill_on_a_server_of_its_own_is_served_until_ctrl_c(
    start_demo: StartDemo, temporary: Path
) -> None:
    """Its form holds what the command was given, and the server's key is said, for whoever wants to
    open rounds.
    """
    process = start_demo(
        *PAGE, LDPRECOVER_URL="http://127.0.0.1:1", LDPRECOVER_KEY="of-another-server"
    )
    key = wait_for_line(process, "A separate server").split()[-1]
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
    assert process.returncode == 0
    assert "Traceback" not in err
    assert_nothing_is_left(temporary)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
def test_the_system_ends_a_drill_in_good_order(
    start_demo: StartDemo, temporary: Path, number: signal.Signals
) -> None:
    process = start_demo(*PAGE)
    _drill(process).close()
    process.send_signal(number)
    _, err = process.communicate()
    assert (process.returncode, err) == (128 + number, "")
    assert_nothing_is_left(temporary)


def test_a_killed_drill_leaves_no_process(start_demo: StartDemo, temporary: Path) -> None:
    process = start_demo(*PAGE)
    with _drill(process) as http:
        assert http.post("/drill/run", json={"methods": ["unmix"]}).status_code == 202
        while http.get("/drill/run").json()["state"] == "running":
            assert process.poll() is None
    left = [os.pidfd_open(pid) for pid in processes_of(temporary) if pid != process.pid]
    assert left  # the worker of the analysis
    process.kill()
    waiting = set(left)
    while waiting:  # each becomes readable when its process ends
        waiting -= set(select.select(waiting, [], [])[0])
    for each in left:
        os.close(each)


def test_a_drill_on_another_server_opens_its_rounds_there(
    start_demo: StartDemo, temporary: Path, server: ServerProcess, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text(f"{server.admin_key}\n")
    process = start_demo(*PAGE, "--url", server.url, "--key-file", str(file))
    with _drill(process) as http:
        assert http.post("/drill/run", json={"methods": []}).status_code == 202
        while (shown := http.get("/drill/run").json())["state"] == "running":
            assert process.poll() is None
        assert shown["state"] == "done", shown
        assert server.http.get(f"/rounds/{shown['round']}").json()["n"] == 1053
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 0
    assert_nothing_is_left(temporary)


def test_ctrl_c_in_the_midst_of_a_drill_deletes_its_round(
    start_demo: StartDemo, temporary: Path, server: ServerProcess
) -> None:
    """The methods that go over all reports many times would take it minutes."""
    process = start_demo(*PAGE, "--url", server.url, "--key", server.admin_key)
    asked = {"users": 200_000, "methods": ["em", "k-means", "ldprecover-km", "unmix"]}
    with _drill(process) as http:
        assert http.post("/drill/run", json=asked).status_code == 202
        while (round_ := http.get("/drill/run").json()["round"]) is None:
            assert process.poll() is None
        assert server.http.get(f"/rounds/{round_}").status_code == 200
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 0
    assert server.http.get(f"/rounds/{round_}").status_code == 404
    assert_nothing_is_left(temporary)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--page", "--json"), 2, "--page stands without --part, --json and --keep"),
        (("--page", "--keep"), 2, "--page stands without"),
        (("--page", "--part", "users"), 2, "--page stands without"),
        (("--port", "8001"), 2, "--port belongs to --page"),
        (("--host", "127.0.0.1"), 2, "--host belongs to --page"),
        (
            ("--page", "--url", "http://127.0.0.1:1"),
            2,
            "give an admin key of the server with --key or --key-file",
        ),
        (("--page", "--url", "ftp://h", "--key", "key"), 2, "http:// or https://"),
        (
            ("--page", "--url", "http://127.0.0.1:1", "--key", "key", "--dataset", "no.csv"),
            2,
            "no.csv",
        ),
        (
            ("--page", "--url", "http://127.0.0.1:1", "--key", "key", "--host", "192.0.2.1"),
            1,
            "192.0.2.1",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_options_are_one_line(
    run: Any, temporary: Path, options: tuple[str, ...], code: int, words: str
) -> None:
    result = run("demo", *options)
    assert (result.code, words in result.error) == (code, True), result.err
    assert_nothing_is_left(temporary)
