"""The demo as a process: what it prints, and that nothing of it remains, however it ends."""

import re
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import assert_nothing_remains

from ldprecover_client._httpx import httpx


@pytest.fixture(autouse=True)
def _other_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names other servers, and proxies that do not lead to this machine."""
    for name, value in {
        "LDPRECOVER_DATABASE_URL": "sqlite:////nowhere/at.all",
        "LDPRECOVER_WORKERS": "7",
        "LDPRECOVER_URL": "http://127.0.0.1:1",
        "LDPRECOVER_ADMIN_KEY": "of-another-server",
        "HTTP_PROXY": "http://127.0.0.1:1",
        "ALL_PROXY": "http://127.0.0.1:1",
    }.items():
        monkeypatch.setenv(name, value)


def test_prints_its_picture_and_leaves_nothing(watched: Any, temporary: Path) -> None:
    demo = watched("demo --users 1000", terminal=False)
    code, out = demo.ended()
    assert code == 0, demo.shown
    for text in ("102 items of cities, olh", "New York, NY", "un-mixing", "MSE", "FG", "█"):
        assert text in out
    assert "\x1b" not in out + demo.shown
    assert re.search(r"In a browser: `\S+ demo --page`\n$", demo.shown)
    assert_nothing_remains(temporary)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("--epsilon 0", "epsilon"),
        ("--url http://127.0.0.1:1", "--url needs --part"),
        ("--key-file file", "--key-file needs --part"),
        ("--part users --page", "--page is for a server of the demo's own"),
    ],
)
def test_bad_options_are_one_line(run: Any, temporary: Path, options: str, word: str) -> None:
    assert word in run(f"demo --users 100 {options}").fails(2)
    assert_nothing_remains(temporary)


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [(signal.SIGINT, 130, "Interrupted.\n"), (signal.SIGTERM, 143, "")],
)
def test_signal_during_the_start_leaves_nothing(
    watched: Any, temporary: Path, number: signal.Signals, code: int, message: str
) -> None:
    demo = watched("demo --users 5000", terminal=False)
    while not any(temporary.iterdir()):  # the folder of a server that starts
        assert demo.process.poll() is None
    demo.process.send_signal(number)
    assert (*demo.ended(), demo.shown) == (code, "", message)
    assert_nothing_remains(temporary)


def test_ctrl_c_during_the_attack_leaves_nothing(watched: Any, temporary: Path) -> None:
    """50,000 attackers search 1,000 seeds each when the genuine users have reported."""
    demo = watched("demo --users 50000 --beta 0.5")
    assert demo.watch(until="50000/50000")
    demo.process.send_signal(signal.SIGINT)
    assert demo.ended() == (130, "")
    assert demo.shown.endswith("Interrupted.\r\n")
    assert "Traceback" not in demo.shown
    assert_nothing_remains(temporary)


def test_page_is_served_until_ctrl_c_in_the_middle_of_a_play(watched: Any, temporary: Path) -> None:
    demo = watched("demo --users 1000 --protocol grr --json --page", terminal=False)
    assert demo.watch(until="\n")
    url, token, key = re.findall(
        r"(http.*)/#/rounds/demo\?demo=(.*)&key=.* until Ctrl-C; .* key is (.*)", demo.shown
    )[0]
    headers = {"X-Page-Token": token, "Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=url, headers=headers, trust_env=False) as http:
        assert http.get("/truth?round=demo").json()["score"]["headline"]
        assert http.get("/rounds/demo").json()["state"] == "closed"
        assert http.post("/attack?attack=mga&beta=0.9&targets=3").is_success
    demo.process.send_signal(signal.SIGINT)
    code, out = demo.ended()
    assert (code, demo.shown.splitlines()[1:]) == (0, ["Stopped."])
    assert out.startswith('{"settings": ')
    assert_nothing_remains(temporary)
