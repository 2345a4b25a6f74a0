"""Series by the command: begun, continued, and opened again when a time has passed."""

from datetime import UTC, datetime, timedelta

from tests.cli.conftest import Run
from tests.conftest import ServerProcess

OPEN = "round open --epsilon 1 --protocol grr --domain-size 4 --series"


def test_next_round_opens_after_a_time(on_server: Run, server: ServerProcess, name: str) -> None:
    before = datetime.now(UTC)
    first = on_server(f"{OPEN} {name} --access ticket --closes 2d --json").succeeds().json
    assert (first["series"], first["number"], first["name"]) == (name, 1, f"{name}-1")
    closes_in = datetime.fromisoformat(first["closes_at"]) - before
    assert timedelta(days=2) - timedelta(minutes=5) < closes_in < timedelta(days=2, minutes=5)
    waiting = on_server(f"round next {name} --after 6d").succeeds()
    assert (waiting.out, waiting.err) == ("", f"{name}-1 is younger than 6d: nothing is done.\n")
    assert on_server(f"round next {name} --after 6d --json").json["id"] == first["id"]
    opened = on_server(f"round next {name} --closes 2100-01-31T18:00+01:00").succeeds()
    assert opened.out.splitlines() == [
        f"Number 2 of {name} is {name}-2, and open.",
        f"Survey: {server.url}/page/survey.html?round={name}-2",
        f"To make its tickets: ldprecover admin ticket {name}-2 --count 100",
    ]
    again = on_server(f"round next {name} --number 2 --json").json
    assert again["closes_at"] == "2100-01-31T17:00:00+00:00"
    on_server(f"round delete {name}-2 --yes").succeeds()
    assert on_server(f"round next {name} --json").json["number"] == 3
    listed = on_server(f"round list --series {name}").succeeds().out.splitlines()
    assert [line.split()[:3] for line in listed[1:]] == [
        ["3", f"{name}-3", "open"],
        ["1", f"{name}-1", "closed"],
    ]
    assert len(on_server(f"round list --series {name} --json").json["rounds"]) == 2
    assert on_server(f"round export {name}-3").json["number"] == 3


def test_refuses_times_and_numbers_that_do_not_fit(on_server: Run, name: str) -> None:
    on_server(f"{OPEN} {name}").succeeds()
    for options, message in (
        ("--after 6d --number 2", "--after takes a time, as 6d, and no --number"),
        ("--after week", "--after takes a time"),
        ("--closes soon", "--closes takes a time, as 2030-01-31T18:00, or 7d, not 'soon'"),
    ):
        assert message in on_server(f"round next {name} {options}").fails(2)
    assert (
        f"next number of the series {name} is 2" in on_server(f"round next {name} --number 9").error
    )
    assert (
        f"is called '{name}-none': did you mean '{name}'?"
        in on_server(f"round next {name}-none").error
    )
