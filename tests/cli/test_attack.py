"""Simulating and attacking on a real server."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldprecover_client import Population, load_dataset
from ldprecover_experiments.parameters import draw_targets


@pytest.fixture
def lunch(server: Any) -> Any:
    return server.open_round("grr", 1.0, items=["soup", "salad", "fish [and] chips"])


@pytest.fixture
def cities(server: Any) -> Any:
    return server.open_round("grr", 0.5, items=list(load_dataset("cities").items))


def test_genuine_users_follow_the_data_set_and_the_seed(
    on_server: Any, cities: Any, server: Any
) -> None:
    arguments = (
        "simulate",
        "--round",
        cities["name"],
        "--dataset",
        "cities",
        "--users",
        "5000",
        "--seed",
        "4",
    )
    answer = on_server(*arguments, "--json").json
    population = Population.of(load_dataset("cities"), 5000, 4)
    assert answer == {
        "round": cities["id"],
        "accepted": 5000,
        "seed": 4,
        "true_counts": population.counts.tolist(),
    }
    assert server.frequencies(cities["id"])["n"] == 5000
    said = on_server(*arguments)
    assert (
        said.out == f"5,000 genuine users reported to {cities['name']}.\n"
        "To repeat the same reports: --seed 4\n"
    )


@pytest.mark.parametrize(
    "command", [("simulate",), ("attack", "mga", "--targets", "2")], ids=" ".join
)
def test_every_run_has_a_seed_of_its_own_and_says_it(
    on_server: Any, cities: Any, server: Any, command: Any
) -> None:
    arguments = (*command, "--users", "40", "--round", cities["name"])
    first, second = (on_server(*arguments, "--json").json for _ in range(2))
    assert first["seed"] != second["seed"]
    assert first != {**second, "seed": first["seed"]}
    again = on_server(*arguments, "--seed", str(first["seed"]), "--json").json
    assert again | {"beta": None} == first | {"beta": None}
    assert re.search(
        r"^To repeat the same reports: --seed \d+$", on_server(*arguments).out, re.MULTILINE
    )


def test_users_who_report_twice_raise_no_alarm(on_server: Any, server: Any) -> None:
    """`duplicate-seeds` knows reports that were sent before. At rate 1e-9 an honest round raises it
    so often.
    """
    olh = server.open_round("olh", 0.5, domain_size=20)
    for _ in range(2):
        on_server("simulate", "--users", "2000", "--round", olh["name"])
    answer = on_server("alarms", "--round", olh["name"], "--rate", "1e-9", "--json").json
    (seeds,) = (alarm for alarm in answer["alarms"] if alarm["name"] == "duplicate-seeds")
    assert not seeds["raised"]


def test_without_a_data_set_every_item_is_as_likely(on_server: Any, lunch: Any) -> None:
    answer = on_server("simulate", "--round", lunch["name"], "--users", "30000", "--json").json
    # Multinomial: sd of each count sqrt(30000 * 2/9) = 81.6; 8 sd is passed with probability 4e-15.
    assert np.abs(np.array(answer["true_counts"]) - 10_000).max() < 653


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--dataset", "fire"), "items"),
        (("--dataset", "no-such.csv"), "no-such.csv"),
        (("--column", "x"), "--dataset"),
        (("--dataset", "bad.csv"), "row 3"),
    ],
)
def test_data_that_do_not_fit_are_refused(
    on_server: Any, cities: Any, tmp_path: Path, options: tuple[str, ...], word: str
) -> None:
    (tmp_path / "bad.csv").write_text("item,count\na,1\nb,-2\n")
    result = on_server("simulate", "--round", cities["name"], "--users", "10", *options)
    assert result.code == 2
    assert word in result.error


@pytest.mark.parametrize(
    "arguments",
    [
        ("mga", "--target", "Denver, CO", "--target", "Reno, NV"),
        ("mga", "--target", "Denver, CO", "--model", "sampled"),
        ("mga", "--target", "Denver, CO", "--input-poisoning"),
        ("manip", "--size", "4"),
        ("aa", "--kind", "peaked", "--attackers", "5"),
        ("apa", "--targets", "4", "--each", "1"),
        ("mga-a", "--target", "Denver, CO", "--target", "Reno, NV", "--each", "2"),
        ("mla", "--against", "raw", "--item", "Reno, NV"),
        ("ria", "--targets", "3"),
        ("rpa",),
    ],
    ids=" ".join,
)
def test_every_attack_sends_its_reports(
    on_server: Any, cities: Any, server: Any, arguments: tuple[str, ...]
) -> None:
    result = on_server("attack", *arguments, "--users", "300", "--round", cities["name"])
    assert result.code == 0, result.err
    assert "300 malicious users" in result.out
    assert server.frequencies(cities["id"])["n"] == 300


def test_a_search_budget_is_mga_s_on_olh(on_server: Any, server: Any) -> None:
    olh = server.open_round("olh", 0.5, domain_size=20)
    arguments = (
        "attack",
        "--target",
        "3",
        "--target",
        "4",
        "--users",
        "50",
        "--round",
        olh["name"],
    )
    assert on_server(*arguments, "--search", "50").code == 0
    frequencies = server.frequencies(olh["id"])
    assert [frequencies["counts"][i] for i in (3, 4)] == [50, 50]


def test_a_share_counts_on_the_reports_already_there_and_targets_are_the_seed_s(
    on_server: Any, cities: Any, server: Any
) -> None:
    on_server("simulate", "--round", cities["name"], "--users", "1900")
    arguments = (
        "attack",
        "--beta",
        "0.05",
        "--targets",
        "3",
        "--seed",
        "9",
        "--round",
        cities["name"],
        "--json",
    )
    answer = on_server(*arguments).json
    targets = [cities["items"][i] for i in draw_targets(102, 3, 9)]
    assert answer == {
        "round": cities["id"],
        "accepted": 100,
        "attack": "mga",
        "targets": targets,
        "beta": 0.05,
        "seed": 9,
    }
    frequencies = server.frequencies(cities["id"])
    assert frequencies["n"] == 2000


def test_no_canary_is_drawn_as_a_target(on_server: Any, server: Any) -> None:
    round_ = server.open_round(items=["a", "b", "c"], canaries=["d", "e", "f", "g"])
    arguments = (
        "attack",
        "mga",
        "--targets",
        "2",
        "--users",
        "3",
        "--round",
        round_["name"],
        "--json",
    )
    for seed in range(6):
        assert set(on_server(*arguments, "--seed", str(seed)).json["targets"]) < {"a", "b", "c"}
    result = on_server(*arguments[:3], "3", *arguments[4:])
    assert result.code == 2
    assert "from 1 to 2" in result.error


@pytest.mark.parametrize("beta", ["0", "0.05"])
def test_a_share_that_is_nobody_is_refused_in_words(
    on_server: Any, cities: Any, server: Any, beta: str
) -> None:
    on_server("report", "Reno, NV", "--round", cities["name"])
    result = on_server("attack", "--beta", beta, "--target", "Reno, NV", "--round", cities["name"])
    assert result.code == 2
    assert f"--beta {beta} of the 1 report" in result.error
    assert "--users" in result.error
    assert server.frequencies(cities["id"])["n"] == 1


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ((), "--users"),
        (("--users", "5", "--beta", "0.1"), "--beta"),
        (("manip", "--beta", "1"), "beta"),
        (
            ("--users", "5"),
            "mga needs targets: name them with --target, or give their number with --targets",
        ),
        (("apa", "--users", "5"), "apa needs targets: name them with --target"),
        (("mla", "--users", "5", "--item", "reno"), "did you mean 'Reno, NV'"),
        (("apa2", "--users", "5", "--target", "Reno, NV"), "grr"),
        (("rpa", "--users", "5", "--targets", "2"), "does not belong to rpa"),
        (("--users", "5", "--targets", "3", "--target", "Reno, NV"), "--targets"),
        (("--users", "5", "--targets", "102"), "101"),
        (("--users", "5", "--target", "reno"), "Reno, NV"),
        (("--users", "5", "--target", "Reno, NV", "--search", "all"), "exhaustive"),
        (("--users", "5", "--target", "Reno, NV", "--size", "3"), "size"),
        (("aa", "--users", "5", "--kind", "round"), "diffuse"),
        (("aa", "--users", "many"), "Invalid value for '--users'"),
        (("--users", "0"), "Invalid value for '--users'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_attack_that_makes_no_sense_is_refused(
    on_server: Any, cities: Any, server: Any, options: tuple[str, ...], word: str
) -> None:
    result = on_server("attack", *options, "--round", cities["name"])
    assert result.code == 2
    assert word in result.error
    assert server.frequencies(cities["id"])["n"] == 0


@pytest.mark.parametrize("command", [("simulate",), ("attack", "manip")], ids=" ".join)
def test_a_round_of_tickets_takes_no_users_without(
    on_server: Any, server: Any, command: Any
) -> None:
    round_ = server.open_round(access="ticket")
    result = on_server(*command, "--users", "3", "--round", round_["name"])
    assert result.code == 2
    assert f"`ldprecover ticket mint {round_['name']} --count N > FILE` makes some" in result.error
    assert "--tickets FILE" in result.error


@pytest.fixture(params=["grr", "olh with given seeds"])
def members(request: Any, server: Any) -> Any:
    given = {"access": "ticket", "domain_size": 6}
    if request.param == "grr":
        return server.open_round("grr", 1.0, **given)
    return server.open_round("olh", 1.0, given_seeds=64, **given)


def minted(on_server: Any, round_: Any, file: str, count: int) -> list[str]:
    tickets = on_server("ticket", "mint", round_["name"], "--count", str(count)).out
    Path(file).write_text(tickets)
    return list(tickets.split())


def test_users_with_tickets_report_and_so_do_attackers_with_theirs(
    on_server: Any, server: Any, members: Any
) -> None:
    minted(on_server, members, "users.txt", 60)
    minted(on_server, members, "stolen.txt", 5)
    at = ("--round", members["name"])
    answer = on_server("simulate", *at, "--tickets", "users.txt", "--json").json
    assert answer["accepted"] == 60
    answer = on_server(
        "attack", "mga", "--target", "4", *at, "--tickets", "stolen.txt", "--json"
    ).json
    assert answer["accepted"] == 5
    assert answer["beta"] == pytest.approx(5 / 65)
    frequencies = server.frequencies(members["id"])
    assert frequencies["n"] == 65
    assert frequencies["counts"][4] >= 5
    # A ticket admits one report: another under it is refused, and the first stays.
    again = on_server("simulate", *at, "--tickets", "users.txt")
    assert again.code == 1
    assert "a ticket of the file has admitted another report" in again.error
    assert "--resume" not in again.error
    assert server.frequencies(members["id"])["n"] == 65


def test_fewer_users_leave_the_last_tickets_unused(
    on_server: Any, server: Any, members: Any
) -> None:
    tickets = minted(on_server, members, "some.txt", 30)
    at = ("--round", members["name"])
    assert on_server("simulate", *at, "--tickets", "some.txt", "--users", "19").code == 0
    Path("rest.txt").write_text("\n".join(tickets[19:]) + "\n\n")  # as editors leave it
    assert (
        on_server(
            "attack", "mga", "--target", "1", *at, "--tickets", "rest.txt", "--beta", "0.05"
        ).code
        == 0
    )
    assert server.frequencies(members["id"])["n"] == 20


@pytest.mark.parametrize(
    ("content", "options", "word"),
    [
        ("{0}\n{1}\n", ("--users", "3"), "3 users need 3 tickets, not 2"),
        ("{0}\nticket\n", (), "line 2 of t.txt must be a ticket"),
        ("{0}\n\n{1}\n", (), "line 2 of t.txt must be a ticket"),
        ("\n\n", (), "t.txt contains no ticket"),
        ("{0}\n{1}\n{0}\n", (), "line 3 of t.txt repeats the ticket of an earlier line"),
        ("", (), "t.txt contains no ticket"),
        (None, (), "t.txt cannot be read"),
    ],
)
@pytest.mark.parametrize("command", [("simulate",), ("attack", "manip")], ids=" ".join)
def test_a_file_that_has_not_a_ticket_for_each_is_refused(
    on_server: Any,
    server: Any,
    command: Any,
    content: str | None,
    options: tuple[str, ...],
    word: str,
) -> None:
    round_ = server.open_round(access="ticket")
    tickets = minted(on_server, round_, "two.txt", 2)
    if content is not None:
        Path("t.txt").write_text(content.format(*tickets))
    result = on_server(*command, *options, "--tickets", "t.txt", "--round", round_["name"])
    assert result.code == 2
    assert word in result.error
    assert server.frequencies(round_["id"])["n"] == 0


def test_a_share_beyond_the_tickets_is_refused(on_server: Any, server: Any, members: Any) -> None:
    minted(on_server, members, "users.txt", 20)
    minted(on_server, members, "one.txt", 1)
    at = ("--round", members["name"])
    on_server("simulate", *at, "--tickets", "users.txt")
    result = on_server("attack", "manip", *at, "--tickets", "one.txt", "--beta", "0.2")
    assert result.code == 2
    assert "5 users need 5 tickets, not 1" in result.error


def test_a_round_without_tickets_takes_none(on_server: Any, server: Any, lunch: Any) -> None:
    other = server.open_round(access="ticket")
    minted(on_server, other, "t.txt", 2)
    result = on_server("simulate", "--round", lunch["name"], "--tickets", "t.txt")
    assert result.code == 2
    assert "takes no tickets: leave out --tickets" in result.error


def test_a_closed_round_takes_nothing(on_server: Any, cities: Any) -> None:
    on_server("round", "close", cities["name"])
    for arguments, note in (
        (
            ("report", "Reno, NV"),
            " (the report will never be counted, and its epsilon stays spent)",
        ),
        (("simulate", "--users", "3"), " (0 of 3 reports were accepted)"),
        (("attack", "manip", "--users", "3"), " (0 of 3 reports were accepted)"),
    ):
        result = on_server(*arguments, "--round", cities["name"])
        assert result.code == 1
        assert result.error == (
            f"The round is closed; nothing of this submission is stored{note}; "
            "open another with `ldprecover round open`"
        )


@pytest.mark.parametrize("command", [("simulate",), ("attack", "manip")], ids=" ".join)
def test_json_comes_without_bars_even_on_a_terminal(
    on_server: Any, lunch: Any, watched: Any, command: Any
) -> None:
    shown = watched(*command, "--users", "50", "--round", lunch["name"], "--json")
    code, out = shown.ended()
    assert (code, shown.shown) == (0, "")
    assert json.loads(out)["accepted"] == 50


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name
)
@pytest.mark.parametrize("command", [("simulate",), ("attack", "manip")], ids=" ".join)
def test_a_signal_in_the_midst_of_them_says_how_many_were_accepted(
    on_server: Any, lunch: Any, server: Any, watched: Any, command: Any, number: signal.Signals
) -> None:
    crowd = watched(*command, "--users", "6000000", "--round", lunch["name"])
    assert crowd.watch(until="0000/6000000")
    crowd.process.send_signal(number)
    assert crowd.ended() == (128 + number, "")
    accepted = server.frequencies(lunch["id"])["n"]
    assert 0 < accepted < 6_000_000
    rest = f"`ldprecover {command[0]} --resume` sends the rest"
    ended = "Interrupted" if number == signal.SIGINT else "Ended"
    assert crowd.shown.endswith(
        f"{ended}. ({accepted} of 6000000 reports were accepted; {rest})\r\n"
    )
    assert "Traceback" not in crowd.shown


def test_what_is_no_attack_is_refused_before_the_server_is_asked(run: Any) -> None:
    ended = run("attack", "nonsense", "--users", "3", "--url", "http://127.0.0.1:9")
    assert ended.code == 2
    assert "attack must be one of aa, apa," in ended.err
