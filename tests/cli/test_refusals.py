"""Requests that the command refuses, in the words of HTTP; see `tests.refusals`."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess
from tests.refusals import ROWS

COMMANDS = {
    "open": "round open --protocol grr --epsilon 1 --item a --item b",
    "recover": "result recover {} --method ldprecover",
    "certificate": "result certify {} --malicious-share 0.2",
    "plan": "plan --domain-size 10 --users 10 --epsilon 1",
    "alarms": "result alarms {}",
}


@pytest.fixture(scope="module")
def round(server: ServerProcess) -> str:
    id = server.open_round(items=list("abcdefghijk"))["id"]
    assert server.submit(id, bytes(16)).status_code == 202
    return id


@pytest.mark.parametrize(
    ("call", "message", "options"),
    [(call, message, options) for call, _, _, message, options in ROWS if options],
)
def test_command_states_the_refusal_of_http_with_its_option(
    on_server: Run, round: str, call: str, message: str, options: str
) -> None:
    for number in ("0.5", "2"):  # files of one number
        Path(number).write_text(number)
    error = on_server(f"{COMMANDS[call].format(round)} {options}").fails(2)
    first, _, rest = message.removeprefix("questions: ").partition(" ")
    is_named = options.startswith("--") and "=" not in options
    assert error.startswith(options.split()[0] if is_named else first)
    assert rest in error
