"""Groups, and the round that a command reads."""

import numpy as np
import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess

from ldprecover.protocols.wire import pack


@pytest.fixture
def two_rounds(server: ServerProcess) -> tuple[str, str]:
    """The names of two closed rounds of 100 reports; the second is the current one."""
    names = []
    for _ in range(2):
        opened = server.open_round("grr", 1.0, items=["a", "b", "c"])
        assert server.submit(opened["id"], pack(np.arange(100, dtype="<u4") % 3)).is_success
        assert server.close_round(opened["id"]).is_success
        names.append(opened["name"])
    return names[0], names[1]


def test_every_reader_takes_a_round_or_the_current_one(
    on_server: Run, two_rounds: tuple[str, str]
) -> None:
    first, second = two_rounds
    for command, options in (
        ("result alarms", ""),
        ("result certify", "--malicious-share 0.01"),
        ("result frequencies", ""),
        ("result methods", ""),
        ("result recover", ""),
        ("round show", ""),
    ):
        named = on_server(f"{command} {first} {options}").succeeds().out
        assert first in named
        assert "(the current one)" not in named
        current = on_server(f"{command} {options}").succeeds().out
        assert f"{second} (the current one)" in current, command


def test_answers_on_standard_error_name_the_round(
    on_server: Run, two_rounds: tuple[str, str]
) -> None:
    current = f"{two_rounds[1]} (the current one)"
    exported = on_server("round export --output second.json").succeeds().err
    assert exported.startswith(f"100 reports of {current} are in second.json")
    assert "Missing argument 'ROUND|FORM'" in on_server("round close").fails(2)
    assert "Missing argument 'ROUND|FORM'" in on_server("round delete --yes").fails(2)
    assert on_server("round close current").out == f"{current} is closed, with 100 reports.\n"


def test_empty_round_is_not_the_current_one(on_server: Run, two_rounds: tuple[str, str]) -> None:
    assert "(the current one)" not in on_server("result frequencies ''").out
