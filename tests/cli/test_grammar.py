"""Groups, and the round that a command reads."""

import numpy as np
import pytest
from tests.cli.conftest import Run
from tests.conftest import StartServer

from ldprecover.protocols.wire import pack


@pytest.fixture
def two_rounds(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server with the closed rounds `first` and `second` of 100 reports each."""
    server = start_server()
    monkeypatch.setenv("LDPRECOVER_URL", server.url)
    monkeypatch.setenv("LDPRECOVER_ADMIN_KEY", server.admin_key)
    for name in ("first", "second"):
        opened = server.open_round("grr", 1.0, items=["a", "b", "c"], name=name)
        assert server.submit(opened["id"], pack(np.arange(100, dtype="<u4") % 3)).is_success
        assert server.close_round(opened["id"]).is_success


def test_every_reader_takes_a_round_or_the_current_one(run: Run, two_rounds: None) -> None:
    for command, options in (
        ("result alarms", ""),
        ("result certify", "--malicious-share 0.01"),
        ("result frequencies", ""),
        ("result methods", ""),
        ("result recover", ""),
        ("round show", ""),
    ):
        named = run(f"{command} first {options}").succeeds().out
        assert "first" in named
        assert "(the current one)" not in named
        assert "second (the current one)" in run(f"{command} {options}").succeeds().out, command


def test_answers_on_standard_error_name_the_round(run: Run, two_rounds: None) -> None:
    exported = run("round export --output second.json").succeeds().err
    assert exported.startswith("100 reports of second (the current one) are in second.json")
    assert "Missing argument 'ROUND'" in run("round close").fails(2)
    assert "Missing argument 'ROUND'" in run("round delete --yes").fails(2)
    assert (
        run("round close current").out == "second (the current one) is closed, with 100 reports.\n"
    )


def test_empty_round_is_not_the_current_one(run: Run, two_rounds: None) -> None:
    assert "(the current one)" not in run("result frequencies ''").out
