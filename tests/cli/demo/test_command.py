"""The demo as a process: what it prints, and that nothing of it remains, however it ends."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.cli.demo.conftest import StartDemo, assert_nothing_remains

from ldprecover_cli.local_server import delayed_signals


def test_prints_its_picture_and_leaves_nothing(start_demo: StartDemo, temporary: Path) -> None:
    """Whatever the environment says of other servers and of proxies, which do not lead to this
    machine.
    """
    others = {"LDPRECOVER_DATABASE_URL": "sqlite:////nowhere/at.all", "LDPRECOVER_WORKERS": "7"}
    others |= {"LDPRECOVER_URL": "http://127.0.0.1:1", "LDPRECOVER_ADMIN_KEY": "of-another-server"}
    process = start_demo(
        *("demo", "--users", "1000"),
        HTTP_PROXY="http://127.0.0.1:1",
        ALL_PROXY="http://127.0.0.1:1",
        **others,
    )
    out, err = process.communicate()
    assert process.returncode == 0, err
    for text in (
        "102 items of cities, olh",
        "New York, NY",
        "un-mixing",
        "MSE",
        "FG",
        "LDPRecover",
        "█",
    ):
        assert text in out
    assert "\x1b" not in out + err
    assert re.search(r"In a browser: `\S+ demo --page`\n$", err)
    assert_nothing_remains(temporary)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--epsilon", "0"), "epsilon"),
        (("--url", "http://127.0.0.1:1"), "--url needs --part"),
        (("--key-file", "file"), "--key-file needs --part"),
        (("--part", "users", "--page"), "--page is for a server of the demo's own"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_options_are_one_line(
    run: Any, temporary: Path, options: tuple[str, ...], word: str
) -> None:
    result = run("demo", "--users", "100", *options)
    assert result.code == 2
    assert word in result.error
    assert_nothing_remains(temporary)


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [(signal.SIGINT, 130, "Interrupted.\n"), (signal.SIGTERM, 143, "")],
)
def test_signal_during_the_start_leaves_nothing(
    start_demo: StartDemo, temporary: Path, number: signal.Signals, code: int, message: str
) -> None:
    process = start_demo("demo", "--users", "5000")
    while not any(temporary.iterdir()):  # the folder of a server that starts
        assert process.poll() is None, process.communicate()
    process.send_signal(number)
    assert process.communicate() == ("", message)
    assert process.returncode == code
    assert_nothing_remains(temporary)


def test_ctrl_c_during_the_attack_leaves_nothing(watched: Any, temporary: Path) -> None:
    """50,000 attackers search 1,000 seeds each when the genuine users have reported."""
    demo = watched("demo", "--users", "50000", "--beta", "0.5")
    assert demo.watch(until="50000/50000")
    demo.process.send_signal(signal.SIGINT)
    assert demo.ended() == (130, "")
    assert demo.shown.endswith("Interrupted.\r\n")
    assert "Traceback" not in demo.shown
    assert_nothing_remains(temporary)


def test_json_on_a_terminal_has_no_progress_bars(watched: Any, temporary: Path) -> None:
    demo = watched("demo", "--users", "1000", "--protocol", "grr", "--json")
    code, out = demo.ended()
    assert (code, demo.shown, out.count("\n")) == (0, "", 1)
    assert json.loads(out)["settings"]["users"] == 1000
    assert_nothing_remains(temporary)


def test_delayed_signal_arrives_after_the_block() -> None:
    reached = []

    def interrupted() -> None:
        with delayed_signals():
            signal.raise_signal(signal.SIGINT)
            reached.append("end of block")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert reached == ["end of block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
