"""Simulating and attacking on a real server."""

import json
import re
import signal
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess

from ldprecover import frequency_oracle
from ldprecover_client import Population, load_dataset
from ldprecover_experiments.simulation.parameters import draw_targets

BOTH = pytest.mark.parametrize("command", ["sim users", "sim attack manip"])


def test_genuine_users_follow_data_set_and_seed(on_server: Run, cities, server: ServerProcess):
    line = f"sim users {cities['name']} --dataset cities --users 5000 --seed 4"
    population = Population.of(load_dataset("cities"), 5000, 4)
    assert on_server(f"{line} --json").json == {
        "round": cities["id"],
        "accepted": 5000,
        "duplicates": 0,
        "seed": "4",
        "true_counts": population.counts.tolist(),
    }
    assert server.frequencies(cities["id"])["n"] == 5000
    assert on_server(line.replace("--seed 4", "--seed 5")).out == (
        f"5,000 genuine users reported to {cities['name']}.\n"
    )


def test_values_that_are_no_items_are_named(on_server: Run, cities) -> None:
    first = cities["items"][0]
    Path("towns.csv").write_text(f'item,count\n"{first}",9\ngotham,3\n')
    result = on_server(f"sim users {cities['name']} --dataset towns.csv --users 9").succeeds()
    assert "3 users of the data hold no item of the round, such as 'gotham'." in result.err


def test_without_a_key_each_report_is_a_submission(run: Run, cities, server: ServerProcess):
    """As an open round takes them; the reports are larger together than one body may be."""
    line = f"sim attack manip --users 300 {cities['name']} --url {server.url} --json"
    before = server.frequencies(cities["id"])["n"]
    assert run(line).json["accepted"] == 300
    assert server.frequencies(cities["id"])["n"] == before + 300


@pytest.mark.parametrize("command", ["sim users", "sim attack mga --targets 2"])
def test_every_run_has_and_prints_a_new_seed(on_server: Run, cities, command: str):
    line = f"{command} --users 40 {cities['name']}"
    first, second = (on_server(f"{line} --json").json for _ in range(2))
    assert first["seed"] != second["seed"]
    assert first != {**second, "seed": first["seed"]}
    again = on_server(f"{line} --seed {first['seed']} --json").json
    assert again["duplicates"] == 40
    assert again | {"beta": None, "duplicates": 0} == first | {"beta": None}
    shown = on_server(line).err
    assert re.search(r"the same command with --seed \d+ sends the rest\.$", shown, re.MULTILINE)


def test_items_are_equally_likely_without_a_data_set(on_server: Run, lunch):
    counts = on_server(f"sim users {lunch['name']} --users 30000 --json").json["true_counts"]
    # Multinomial: sd of each count sqrt(30000 * 2/9) = 81.6; 8 sd is passed with probability 4e-15.
    assert np.abs(np.array(counts) - 10_000).max() < 653


@pytest.mark.parametrize(
    ("options", "message"), [("--dataset fire", "items"), ("--column x", "--dataset")]
)
def test_rejects_data_that_do_not_fit(on_server: Run, cities, options: str, message: str):
    result = on_server(f"sim users {cities['name']} --users 10 --seed 1 {options}")
    assert message in result.fails(2)


@pytest.mark.parametrize(
    "attack",
    [
        "mga --target 'Denver, CO' --input-poisoning",
        "aa --set kind=peaked --attackers 5",
        "mga-a --target 'Denver, CO' --target 'Reno, NV' --set each=2",
        "mla --set against=raw --set 'item=Reno, NV'",
    ],
)
def test_attacks_with_options_are_sent(on_server: Run, cities, server: ServerProcess, attack: str):
    result = on_server(f"sim attack {attack} --users 300 {cities['name']}").succeeds()
    assert "300 malicious users" in result.out
    assert server.frequencies(cities["id"])["n"] == 300


def test_mimicry_knows_its_share_and_the_estimates_of_the_round(
    on_server: Run, server: ServerProcess
):
    """GRR's items lose at most share/(e^epsilon - 1) each, and never more than they have."""
    grr = server.open_round("grr", 1.0, items=["yes", "no", "perhaps", "never"])
    at = f"{grr['name']}"
    on_server(f"sim users {at} --users 40000 --seed 2")
    before = np.array(server.frequencies(grr["id"])["frequencies"])
    on_server(f"sim attack mimicry --beta 0.2 --target no --seed 3 {at}").succeeds()
    after = np.array(server.frequencies(grr["id"])["frequencies"])
    lost = 0.2 / np.expm1(1.0)
    expected = 0.8 * before - lost
    expected[1] += 0.2 + 4 * lost
    # Six deviations of the 10,000 malicious reports, less than once in 10^8; 8.4 are missed once
    # in 100.
    oracle = frequency_oracle("grr", 1.0, 4)
    assert np.abs(after - expected).max() < 6 * 0.2 * 0.5 / 100 / (oracle.p - oracle.q)


def test_share_is_of_the_reports_in_the_round(on_server: Run, cities, server: ServerProcess):
    at = f"{cities['name']}"
    on_server(f"sim users {at} --users 1900")
    assert on_server(f"sim attack mga --beta 0.05 --targets 3 --seed 9 {at} --json").json == {
        "round": cities["id"],
        "accepted": 100,
        "duplicates": 0,
        "attack": "mga",
        "targets": [cities["items"][i] for i in draw_targets(102, 3, 9)],
        "beta": 0.05,
        "seed": "9",
    }
    assert server.frequencies(cities["id"])["n"] == 2000


@pytest.mark.parametrize("beta", ["0", "0.05"])
def test_rejects_a_share_of_less_than_one_user(
    on_server: Run, cities, server: ServerProcess, beta: str
):
    at = f"{cities['name']}"
    on_server(f"send value 'Reno, NV' {at}")
    error = on_server(f"sim attack mga --beta {beta} --target 'Reno, NV' {at}").fails(2)
    assert f"--beta {beta} of the 1 report" in error
    assert "--users" in error
    assert server.frequencies(cities["id"])["n"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("mga", "--users"),
        ("mga --users 5 --beta 0.1", "--beta"),
        ("mla --users 5 --set item=reno", "did you mean 'Reno, NV'"),
        ("rpa --users 5 --targets 2", "does not belong to rpa"),
        ("mga --users 5 --targets 3 --target 'Reno, NV'", "--targets"),
        ("mga --users 5 --target reno", "Reno, NV"),
        ("aa --users 5 --set sise=3", "did you mean 'size'? it has kind, model, size"),
        ("aa --users 5 --set size=3.5", "--set size must be a valid integer, not '3.5'"),
        ("aa --users 5 --set size", "--set takes a name and a value, as size=3, not 'size'"),
        ("aa --users 5 --set size=3 --set size=4", "--set size is given twice"),
        ("bribe --users 5", "attack must be one of aa, apa,"),
    ],
)
def test_rejects_options_that_do_not_fit_the_attack(
    on_server: Run, cities, server: ServerProcess, options: str, message: str
):
    assert message in on_server(f"sim attack {options} {cities['name']}").fails(2)
    assert server.frequencies(cities["id"])["n"] == 0


@BOTH
def test_round_of_tickets_needs_a_file_of_them(on_server: Run, server: ServerProcess, command: str):
    round_ = server.open_round(access="ticket")
    error = on_server(f"{command} --users 3 {round_['name']}").fails(2)
    assert f"`ldprecover admin ticket {round_['name']} --count N > FILE` makes some" in error
    assert "--tickets FILE" in error


@pytest.fixture(params=["grr", "llh"])
def members(request: pytest.FixtureRequest, server: ServerProcess):
    """A round of tickets."""
    return server.open_round(request.param, 1.0, access="ticket", domain_size=6)


def minted(on_server: Run, round_, file: str, count: int) -> list[str]:
    """Mint tickets into a file."""
    tickets = on_server(f"admin ticket {round_['name']} --count {count}").out
    Path(file).write_text(tickets.replace("\n", " \r\n"))
    return tickets.split()


def test_users_and_attackers_report_once_under_each_ticket(
    on_server: Run, server: ServerProcess, members
):
    minted(on_server, members, "users.txt", 60)
    stolen = minted(on_server, members, "stolen.txt", 7)
    at = f"{members['name']} --tickets"
    assert on_server(f"sim users {at} users.txt --json").json["accepted"] == 60
    sent = on_server(f"sim attack mga --target 4 {at} stolen.txt --users 5 --json").json
    assert sent["accepted"] == 5
    assert sent["beta"] == pytest.approx(5 / 65)
    frequencies = server.frequencies(members["id"])
    assert frequencies["n"] == 65
    assert frequencies["counts"][4] >= 5
    again = on_server(f"sim users {at} users.txt --seed 1").fails(1)
    assert "a ticket of the file has admitted another report" in again
    too_many = on_server(f"sim attack manip {at} stolen.txt --beta 0.2").fails(2)
    assert "16 users need 16 tickets, not 7" in too_many
    # Fewer users leave the last tickets unused; editors leave empty lines.
    Path("rest.txt").write_text("\n".join(stolen[5:]) + "\n\n")
    on_server(f"sim attack mga --target 1 {at} rest.txt").succeeds()
    assert server.frequencies(members["id"])["n"] == 67


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("{0}\n{1}\n", "--users 3", "3 users need 3 tickets, not 2"),
        ("{0}\nticket\n", "", "line 2 of t.txt must be a ticket"),
        ("{0}\n\n{1}\n", "", "line 2 of t.txt must be a ticket"),
        ("\n\n", "", "t.txt contains no ticket"),
        ("{0}\n{1}\n{0}\n", "", "line 3 of t.txt repeats the ticket of an earlier line"),
    ],
)
@BOTH
def test_rejects_a_file_without_a_ticket_for_each_user(
    on_server: Run, server: ServerProcess, content: str, options: str, message: str, command: str
):
    round_ = server.open_round(access="ticket")
    Path("t.txt").write_text(content.format(*minted(on_server, round_, "two.txt", 2)))
    line = f"{command} {options} --tickets t.txt {round_['name']}"
    assert message in on_server(line).fails(2)
    assert server.frequencies(round_["id"])["n"] == 0


def test_round_without_tickets_takes_none(on_server: Run, server: ServerProcess, lunch):
    minted(on_server, server.open_round(access="ticket"), "t.txt", 2)
    error = on_server(f"sim users {lunch['name']} --tickets t.txt").fails(2)
    assert "takes no tickets: leave out --tickets" in error


@BOTH
def test_closed_round_takes_nothing(on_server: Run, cities, command: str):
    on_server(f"round close {cities['name']}")
    assert on_server(f"{command} --users 3 --seed 1 {cities['name']}").fails(1) == (
        "The round is closed; nothing of this submission is stored (0 of 3 reports were accepted); "
        "open another with `ldprecover round open`"
    )


@BOTH
def test_json_comes_without_bars_on_a_terminal(on_server: Run, lunch, watched, command: str):
    shown = watched(f"{command} --users 50 {lunch['name']} --json --seed 1")
    code, out = shown.ended()
    assert (code, shown.shown) == (0, "")
    assert json.loads(out)["accepted"] == 50


@pytest.mark.parametrize(
    ("command", "number"), [("sim users", signal.SIGTERM), ("sim attack manip", signal.SIGINT)]
)
def test_signal_says_how_many_reports_were_accepted(
    on_server: Run, lunch, server: ServerProcess, watched, command: str, number: signal.Signals
):
    users = watched(f"{command} --users 2000000 {lunch['name']}")
    assert users.watch(until="0000/2000000")
    users.process.send_signal(number)
    assert users.ended() == (128 + number, "")
    accepted = server.frequencies(lunch["id"])["n"]
    assert 0 < accepted < 2_000_000
    ended = "Interrupted" if number == signal.SIGINT else "Ended"
    assert users.shown.endswith(f"{ended}. ({accepted} of 2000000 reports were accepted)\r\n")
    assert "Traceback" not in users.shown
