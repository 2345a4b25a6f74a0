"""A demo in separate parts, which together have the results of the whole demo."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ServerProcess

from ldprecover_experiments import Demo, DemoSettings

SMALL = ("--users", "3000", "--targets", "3", "--seed", "4")


@pytest.fixture
def play_part(run: Any, server: ServerProcess, tmp_path: Path) -> Callable[..., Any]:
    """Play one part on the round opened last, with the key in a file."""
    file = tmp_path / "key"
    file.write_text(server.admin_key + "\n")

    def play_one(part: str, *options: str) -> Any:
        return run(
            "demo", "--part", part, "--url", server.url, "--key-file", str(file), *SMALL, *options
        )

    return play_one


def test_parts_together_equal_the_whole_demo(
    play_part: Callable[..., Any], server: ServerProcess
) -> None:
    """To the last bit: from the seed the analyst knows the round before the attack."""
    options = ("--protocol", "grr", "--json")
    opened, attacker, users, parts = (
        play_part(part, *options).json for part in ("round", "attacker", "users", "analyst")
    )
    assert attacker == {"round": opened["round"], "accepted": 158}
    assert users == {"round": opened["round"], "accepted": 3000}
    whole = Demo(DemoSettings(protocol="grr", users=3000, targets=3, seed=4))
    name = f"whole-{opened['name']}"
    assert parts == whole.on(server.url, server.admin_key, name=name).as_json()


def test_parts_print_what_they_did(play_part: Callable[..., Any]) -> None:
    assert play_part("round").out.endswith(" is open.\n")
    assert play_part("users").out.startswith("3,000 genuine users reported to olh-")
    assert play_part("analyst").error.endswith("has 3,000 reports, not the 3,158 of this demo")
    assert play_part("attacker").out.startswith("158 malicious users reported to olh-")
    assert "102 items of cities, olh" in play_part("analyst").out


def test_part_rejects_a_round_of_other_parameters(play_part: Callable[..., Any]) -> None:
    play_part("round")
    for part in ("users", "attacker", "analyst"):
        error = play_part(part, "--epsilon", "1").error
        assert error.endswith("has other parameters than this demo's")


def test_last_round_is_played(play_part: Callable[..., Any]) -> None:
    """So the same containers can be started again: each start plays a new round."""
    first, second = (play_part("round", "--json") for _ in range(2))
    assert first.json["round"] != second.json["round"]
    users = play_part("users", "--json").json
    assert users["round"] == second.json["round"]
