"""A demo whose parts are programs of their own: together they show what the demo in one piece
shows.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ServerProcess, StartServer

from ldprecover_experiments import Demo, DemoSettings
from ldprecover_experiments.demo import no_progress

SMALL = ("--users", "3000", "--targets", "3", "--seed", "4")


@pytest.fixture
def own_server(start_server: StartServer) -> ServerProcess:
    """A server on which no other test opens rounds: the parts meet in the current one."""
    return start_server()


@pytest.fixture
def play_part(run: Any, own_server: ServerProcess, tmp_path: Path) -> Callable[..., Any]:
    """Play one part on that server, with the key in a file."""
    file = tmp_path / "key"
    file.write_text(own_server.admin_key + "\n")

    def play_one(part: str, *options: str) -> Any:
        return run(
            "demo",
            "--part",
            part,
            "--url",
            own_server.url,
            "--key-file",
            str(file),
            *SMALL,
            *options,
        )

    return play_one


@pytest.mark.parametrize("protocol", ["grr", "oue", "olh"])
def test_the_parts_together_show_what_the_demo_in_one_piece_shows(
    play_part: Callable[..., Any], own_server: ServerProcess, protocol: str
) -> None:
    """To the last bit, though the analyst never saw the round before the attack: the seed tells
    what was in it.
    """
    opened = play_part("round", "--protocol", protocol, "--json").json
    attacker = play_part("attacker", "--protocol", protocol, "--json").json
    users = play_part("users", "--protocol", protocol, "--json").json
    assert attacker == {"round": opened["round"], "accepted": 158}
    assert users == {"round": opened["round"], "accepted": 3000}
    whole = Demo(DemoSettings(protocol=protocol, users=3000, targets=3, seed=4))
    parts = play_part("analyst", "--protocol", protocol, "--json").json
    assert parts == whole.on(own_server.url, own_server.admin_key, no_progress).as_json()


def test_the_analyst_draws_the_demo_s_picture(play_part: Callable[..., Any]) -> None:
    said = [play_part(part).out for part in ("round", "users", "attacker", "analyst")]
    assert said[0].endswith(" is open.\n")
    assert said[1].startswith("3,000 genuine users reported to olh-")
    assert said[2].startswith("158 malicious users reported to olh-")
    for text in ("102 items of cities, olh", "recovered*", "MSE against the truth", "FG"):
        assert text in said[3]


def test_the_analyst_refuses_a_round_that_does_not_hold_exactly_the_demo_s_reports(
    play_part: Callable[..., Any],
) -> None:
    play_part("round")
    play_part("users")
    assert play_part("analyst").error.endswith("has 3,000 reports, not the 3,158 of this demo")


@pytest.mark.parametrize("part", ["users", "attacker", "analyst"])
def test_a_part_refuses_a_round_of_other_parameters(
    play_part: Callable[..., Any], part: str
) -> None:
    play_part("round")
    assert play_part(part, "--epsilon", "1").error.endswith("has other parameters than this demo's")


def test_the_round_opened_last_is_the_one_that_is_played(play_part: Callable[..., Any]) -> None:
    """So the same containers can be started again: each start plays a round of its own."""
    first, second = (play_part("round", "--json").json for _ in range(2))
    assert first["round"] != second["round"]
    assert play_part("users", "--json").json["round"] == second["round"]


def test_settings_of_the_parts_may_come_from_the_environment(
    play_part: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LDPRECOVER_DEMO_PROTOCOL", "grr")
    monkeypatch.setenv("LDPRECOVER_DEMO_BETA", "0.5")
    assert play_part("round", "--json").json["name"].startswith("grr-")
    assert play_part("attacker", "--json").json["accepted"] == 3000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--keep",), "--keep is for a server of the demo's own: a part has none"),
        (("--key-file", "no-such-file"), "no-such-file cannot be read, or holds no key"),
    ],
)
def test_bad_options_of_a_part_are_one_line(
    play_part: Callable[..., Any], options: tuple[str, ...], words: str
) -> None:
    result = play_part("round", *options)
    assert (result.code, result.error) == (2, words)
