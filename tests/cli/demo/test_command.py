"""The demo as a process: what it prints, and that nothing of it stays, however it ends."""

import json
import os
import re
import select
import signal
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.cli.demo.conftest import StartDemo, assert_nothing_is_left, processes_of, wait_for_line
from tests.conftest import StartServer
from tests.forked import Process

from ldprecover.protocols import PROTOCOLS, frequency_oracle
from ldprecover.recovery import METHODS
from ldprecover_experiments import Demo, DemoSettings, ExperimentError, local_server
from ldprecover_experiments.comparison import ESTIMATES
from ldprecover_experiments.demo import no_progress


def test_the_demo_prints_its_picture_and_leaves_nothing(
    start_demo: StartDemo, temporary: Path
) -> None:
    """Whatever the environment says of other servers and of proxies, which do not lead to this
    machine.
    """
    others = {"LDPRECOVER_DATABASE_URL": "sqlite:////nowhere/at.all", "LDPRECOVER_WORKERS": "7"}
    others |= {"LDPRECOVER_URL": "http://127.0.0.1:1", "LDPRECOVER_ADMIN_KEY": "of-another-server"}
    process = start_demo(
        "--users", "5000", HTTP_PROXY="http://127.0.0.1:1", ALL_PROXY="http://127.0.0.1:1", **others
    )
    out, err = process.communicate()
    assert process.returncode == 0, err
    for text in (
        "102 items of cities, olh",
        "New York, NY",
        "recovered*",
        "MSE",
        "FG",
        "LDPRecover",
        "█",
    ):
        assert text in out
    assert "\x1b" not in out + err
    assert re.search(r"In a browser: `\S+ demo --page`\n$", err)
    assert_nothing_is_left(temporary)


def test_json_is_all_that_is_on_standard_output(start_demo: StartDemo, temporary: Path) -> None:
    process = start_demo(
        "--users", "5000", "--protocol", "grr", "--targets", "4", "--seed", "3", "--json"
    )
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert out.count("\n") == 1
    _check_figures(json.loads(out), "grr")
    assert_nothing_is_left(temporary)


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "grr"])
def test_the_figures_of_every_protocol_are_written(
    start_server: StartServer, protocol: str
) -> None:
    """Without a process of the demo's own."""
    server = start_server()
    played = Demo(DemoSettings(protocol=protocol, users=5000, targets=4, seed=3))
    _check_figures(played.on(server.url, server.admin_key, no_progress).as_json(), protocol)


def _check_figures(written: dict[str, Any], protocol: str) -> None:
    assert list(written) == ["settings", "targets", "mse", "fg"]
    assert (written["settings"]["protocol"], written["settings"]["seed"]) == (protocol, 3)
    assert len(set(written["targets"])) == 4
    for figures in (written["mse"], written["fg"]):
        assert list(figures) == list(ESTIMATES)
        unfit = (
            {"unmixed"} if METHODS["unmix"].unfit(frequency_oracle(protocol, 0.5, 102)) else set()
        )
        assert {name for name, value in figures.items() if not isinstance(value, float)} == unfit
    assert written["mse"]["projected"] < written["mse"]["poisoned"]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--dataset", "no-such.csv"), "no-such.csv"),
        (("--protocol", "rappor"), "rappor"),
        (("--epsilon", "0"), "epsilon"),
        (("--beta", "1"), "--beta must be from 0 to 0.9, not 1"),
        (("--targets", "102"), "targets"),
        (("--eta", "-1"), "eta"),
        (("--url", "http://127.0.0.1:1"), "--url needs --part"),
        (("--key", "key"), "--key needs --part"),
        (("--key-file", "file"), "--key-file needs --part"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_options_are_one_line(
    run: Any, temporary: Path, options: tuple[str, ...], word: str
) -> None:
    result = run("demo", "--users", "100", *options)
    assert result.code == 2
    assert word in result.error
    assert_nothing_is_left(temporary)


def test_a_protocol_may_be_chosen(run: Any, temporary: Path) -> None:
    played = run("demo", "--protocol", "auto", "--users", "2000", "--json")
    assert played.code == 0, played.err
    protocol = played.json["settings"]["protocol"]
    assert protocol in PROTOCOLS
    assert f"{protocol}: one standard error is" in played.err


def _wait_for_folder(process: Process, temporary: Path) -> None:
    """Wait until the server is being started: its folder is there."""
    while not any(temporary.iterdir()):
        assert process.poll() is None, process.communicate()


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name
)
def test_ended_while_its_server_starts_it_leaves_nothing(
    start_demo: StartDemo, temporary: Path, number: signal.Signals
) -> None:
    process = start_demo("--users", "5000")
    _wait_for_folder(process, temporary)
    process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == (130 if number == signal.SIGINT else 128 + number)
    assert (out, err) == ("", "Interrupted.\n" if number == signal.SIGINT else "")
    assert_nothing_is_left(temporary)


def test_ctrl_c_in_the_midst_of_it_leaves_nothing(watched: Any, temporary: Path) -> None:
    """When the genuine users are through the attackers still search their seeds: 50,000 users,
    1,000 seeds each.
    """
    demo = watched("demo", "--users", "50000", "--beta", "0.5")
    assert demo.watch(until="50000/50000")
    demo.process.send_signal(signal.SIGINT)
    assert demo.ended() == (130, "")
    assert demo.shown.endswith("Interrupted.\r\n")
    assert "Traceback" not in demo.shown
    assert_nothing_is_left(temporary)


def test_json_comes_without_bars_even_on_a_terminal(watched: Any, temporary: Path) -> None:
    demo = watched("demo", "--users", "2000", "--json")
    code, out = demo.ended()
    assert (code, demo.shown) == (0, "")
    assert json.loads(out)["settings"]["users"] == 2000
    assert_nothing_is_left(temporary)


def test_a_picture_that_nobody_reads_leaves_nothing(start_demo: StartDemo, temporary: Path) -> None:
    process = start_demo("--users", "2000")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait() == 1
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert_nothing_is_left(temporary)


def test_a_kept_server_answers_until_ctrl_c(start_demo: StartDemo, temporary: Path) -> None:
    process = start_demo("--users", "1000", "--json", "--keep")
    found = re.search(
        r"(http://\S+) until Ctrl-C; its admin key is (\S+)",
        wait_for_line(process, "The server stays"),
    )
    assert found is not None
    url, key = found.groups()
    with httpx.Client(
        base_url=url, headers={"Authorization": f"Bearer {key}"}, trust_env=False
    ) as http:
        assert http.get("/rounds/demo").json()["n"] == 1053
        assert http.post("/rounds/demo/close").json()["state"] == "closed"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()
    assert process.returncode == 0
    assert json.loads(out)["settings"]["users"] == 1000
    assert_nothing_is_left(temporary)


def test_the_server_of_a_killed_demo_ends_and_the_next_demo_removes_its_folder(
    start_demo: StartDemo, temporary: Path
) -> None:
    process = start_demo("--users", "1000", "--json", "--keep")
    wait_for_line(process, "The server stays")
    left = [os.pidfd_open(pid) for pid in processes_of(temporary) if pid != process.pid]
    process.kill()
    waiting = set(left)
    while waiting:  # each becomes readable when its process ends
        waiting -= set(select.select(waiting, [], [])[0])
    for each in left:
        os.close(each)
    (folder,) = temporary.iterdir()
    with local_server.local_server(), local_server.local_server():
        assert len(list(temporary.iterdir())) == 2  # those of living ones stay
        assert not folder.exists()
    assert_nothing_is_left(temporary)


def test_a_failure_in_the_midst_of_it_leaves_nothing(temporary: Path) -> None:
    def fail() -> None:
        with local_server.local_server() as server:
            assert httpx.get(f"{server.url}/readyz", trust_env=False).status_code == 200
            assert processes_of(
                temporary
            )  # the server, and the children it has started for analyses
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert_nothing_is_left(temporary)


def test_a_server_that_does_not_start_is_one_line_with_its_last_words(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho first >&2\necho 'out of luck' >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    with pytest.raises(ExperimentError, match="out of luck"), local_server.local_server():
        pytest.fail("there is no server")
    assert_nothing_is_left(temporary)


def test_a_server_that_dies_while_it_is_kept_is_a_failure(temporary: Path) -> None:
    with local_server.local_server() as server:
        server.process.kill()
        with pytest.raises(ExperimentError, match="exit code -9"):
            server.wait()
    assert_nothing_is_left(temporary)


def test_a_signal_delayed_signals_comes_when_the_block_is_done() -> None:
    reached = []

    def interrupted() -> None:
        with local_server._delayed_signals():
            signal.raise_signal(signal.SIGINT)
            reached.append("end of block")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert reached == ["end of block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
