"""Reporting, simulating and attacking on a real server."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldprecover_cli.attackers import draw_targets
from ldprecover_client import Ledger, Population, load_dataset


@pytest.fixture
def lunch(server: Any) -> Any:
    return server.open_round("grr", 1.0, items=["soup", "salad", "fish [and] chips"])


@pytest.fixture
def cities(server: Any) -> Any:
    return server.open_round("grr", 0.5, items=list(load_dataset("cities").items))


def test_one_value_is_reported_once(on_server: Any, lunch: Any, server: Any, tmp_path: Path) -> None:
    arguments = ("report", "soup", "--round", lunch["name"], "--ledger", str(tmp_path / "ledger"))
    receipt = on_server(*arguments, "--json").json
    assert (receipt["round"], receipt["state"], receipt["epsilon"]) == (lunch["id"], "accepted", 1.0)
    again = on_server(*arguments)
    assert again.code == 1
    assert "epsilon" in again.error
    assert server.frequencies(lunch["id"])["n"] == 1


def test_the_ledger_is_in_the_state_directory_unless_told_otherwise(on_server: Any, lunch: Any, tmp_path: Path) -> None:
    result = on_server("report", "fish [and] chips", "--round", lunch["name"])
    assert result.code == 0
    assert lunch["id"] in result.out
    assert (tmp_path / "state" / "ldprecover" / "ledger.sqlite3").is_file()
    assert on_server("report", "soup", "--round", lunch["name"]).code == 1


def test_a_value_that_is_no_item_gets_its_close_matches(on_server: Any, cities: Any, server: Any) -> None:
    result = on_server("report", "denver", "--round", cities["name"])
    assert result.code == 2
    assert "did you mean 'Denver, CO'" in result.error
    assert server.frequencies(cities["id"])["n"] == 0


def test_epsilon_above_the_user_s_limits_is_refused(on_server: Any, server: Any) -> None:
    dear = server.open_round("grr", 3.0)
    high = on_server("report", "1", "--round", dear["name"])
    assert high.code == 1
    assert "--max-epsilon" in high.error
    total = on_server("report", "1", "--round", dear["name"], "--max-epsilon", "3", "--max-total-epsilon", "2")
    assert total.code == 1
    assert "--max-total-epsilon" in total.error
    assert server.frequencies(dear["id"])["n"] == 0
    assert on_server("report", "1", "--round", dear["name"], "--max-epsilon", "3").code == 0


def test_a_report_that_finds_no_answer_is_kept_and_resumed(
    run: Any, start_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is gone between the round's parameters and the report; another on the same database takes it."""
    own = start_server()
    port = int(own.url.rpartition(":")[2])
    lunch = own.open_round("olh", 1.0)
    monkeypatch.setenv("LDPRECOVER_URL", own.url)
    claim = Ledger.claim

    def claim_and_kill(*args: Any, **options: Any) -> Any:
        claimed = claim(*args, **options)
        own.kill()
        return claimed

    ledger = ("--ledger", str(tmp_path / "ledger"))
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "claim", claim_and_kill)
        lost = run("report", "1", "--round", lunch["name"], *ledger)
    assert lost.code == 1
    assert "ldprecover report --resume" in lost.error
    still_lost = run("report", "--resume", *ledger, "--json")
    assert still_lost.code == 1
    own._settings["port"] = port
    own.start()
    resumed = run("report", "--resume", *ledger, "--json").json["resent"]
    assert [(receipt["state"], receipt["resent"]) for receipt in resumed] == [("accepted", True)]
    assert own.frequencies(lunch["id"])["n"] == 1
    assert run("report", "--resume", *ledger).out == "Every report in the ledger has its answer.\n"


def test_report_wants_a_value_or_resume(run: Any) -> None:
    assert "--resume" in run("report").error
    assert "--resume" in run("report", "soup", "--resume").error


def test_genuine_users_follow_the_data_set_and_the_seed(on_server: Any, cities: Any, server: Any) -> None:
    arguments = ("simulate", "--round", cities["name"], "--dataset", "cities", "--users", "5000", "--seed", "4")
    answer = on_server(*arguments, "--json").json
    population = Population.of(load_dataset("cities"), 5000, 4)
    assert answer == {"round": cities["id"], "accepted": 5000, "seed": 4, "true_counts": population.counts.tolist()}
    assert server.frequencies(cities["id"])["n"] == 5000
    said = on_server(*arguments)
    assert said.out == f"5,000 genuine users reported to {cities['name']}.\n"


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
    ],
    ids=" ".join,
)
def test_every_attack_sends_its_reports(on_server: Any, cities: Any, server: Any, arguments: tuple[str, ...]) -> None:
    result = on_server("attack", *arguments, "--users", "300", "--round", cities["name"])
    assert result.code == 0, result.err
    assert "300 malicious users" in result.out
    assert server.frequencies(cities["id"])["n"] == 300


def test_a_search_budget_is_mga_s_on_olh(on_server: Any, server: Any) -> None:
    olh = server.open_round("olh", 0.5, domain_size=20)
    arguments = ("attack", "--target", "3", "--target", "4", "--users", "50", "--round", olh["name"])
    assert on_server(*arguments, "--search", "50").code == 0
    frequencies = server.frequencies(olh["id"])
    assert [frequencies["counts"][i] for i in (3, 4)] == [50, 50]


def test_a_share_counts_on_the_reports_already_there_and_targets_are_the_seed_s(
    on_server: Any, cities: Any, server: Any
) -> None:
    on_server("simulate", "--round", cities["name"], "--users", "1900")
    arguments = ("attack", "--beta", "0.05", "--targets", "3", "--seed", "9", "--round", cities["name"], "--json")
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


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ((), "--users"),
        (("--users", "5", "--beta", "0.1"), "--beta"),
        (("manip", "--beta", "1"), "beta"),
        (("--users", "5"), "targets"),
        (("--users", "5", "--targets", "3", "--target", "Reno, NV"), "--targets"),
        (("--users", "5", "--targets", "102"), "101"),
        (("--users", "5", "--target", "reno"), "Reno, NV"),
        (("--users", "5", "--target", "Reno, NV", "--search", "all"), "exhaustive"),
        (("--users", "5", "--target", "Reno, NV", "--size", "3"), "size"),
        (("aa", "--users", "5", "--kind", "round"), "diffuse"),
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


def test_a_closed_round_takes_nothing(on_server: Any, cities: Any) -> None:
    on_server("round", "close", cities["name"])
    for arguments in (("report", "Reno, NV"), ("simulate", "--users", "3"), ("attack", "manip", "--users", "3")):
        result = on_server(*arguments, "--round", cities["name"])
        assert result.code == 1
        assert "closed" in result.err.splitlines()[-1]
        assert "Traceback" not in result.err
