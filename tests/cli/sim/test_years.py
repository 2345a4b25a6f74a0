"""`sim users --weeks`: a series is played in rotation, with malicious users in some rounds."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess

FORM = """
series = "{}"
epsilon = 2
[[questions]]
question = "Which system?"
items = ["Linux", "macOS"]
[[questions]]
question = "Which export?"
items = ["PDF", "SVG", "PNG"]
"""


def test_year_of_a_round_and_of_a_form_goes_on_from_the_open_one(
    on_server: Run, server: ServerProcess, name: str
) -> None:
    items = "--item soup --item cake --item tea"
    on_server(f"round open --series {name} --epsilon 2 {items}").succeeds()
    line = f"sim users {name} --weeks 4 --users 60 --period 2 --beta 0.5 --attacked 2-3"
    played = on_server(f"{line} --target tea --json").json
    assert (played["number"], played["genuine"]) == (4, 120)
    numbers = [
        entry["n"] for entry in on_server(f"round list --series {name} --json").json["rounds"]
    ]
    assert sum(numbers) == 120 + played["malicious"]
    assert sum(numbers[1:3]) == 2 * played["malicious"]  # as many as genuine ones, in two rounds
    attacked = [server.frequencies(f"{name}-{number}")["counts"] for number in (2, 3)]
    assert sum(counts[2] for counts in attacked) >= played["malicious"]  # all of them are for tea
    assert (
        "20 answers of 20 people"
        in on_server(f"sim users {name} --weeks 1 --users 20 --period 1").out
    )

    Path("form.toml").write_text(FORM.format(f"{name}-form"))
    opened = on_server("survey form.toml --users 100000")
    assert "The same people can answer 2 times at epsilon 2: 4 in all." in opened.succeeds().err
    line = f"sim users {name}-form --weeks 2 --users 40 --period 1 --attacked 1 --target SVG"
    assert on_server(f"{line} --json").json["genuine"] == 80


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--users 9 --tickets t.txt", "--weeks takes --users"),
        ("--users 9 --attacked 1-2", "--attacked and --target belong together"),
        ("--users 9 --attacked 3-2 --target a", "--attacked takes the first and last round"),
    ],
)
def test_wrong_options_are_named(run: Run, options: str, message: str) -> None:
    assert message in run(f"sim users meals --weeks 2 {options}").fails(2)
