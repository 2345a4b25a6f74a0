"""The plugins that the page shows, installed: in the checks, the command, a server and a study."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ADMIN_KEY, ServerProcess, StartServer
from tests.plugins.conftest import Run, StartWithPlugins, shown

COMMAND = ("-m", "ldprecover_cli")


@pytest.fixture(scope="module")
def with_plugins(start_with_plugins: StartWithPlugins, site: Path) -> ServerProcess:
    """A server that has the plugins loaded."""
    return start_with_plugins(site, "kue,above-median")


def test_protocol_passes_every_check_when_loaded(run: Run, site: Path) -> None:
    run(
        "-c",
        "import sys\n"
        "import ldprecover_attacker, ldprecover_client, ldprecover_server\n"
        "from ldprecover import frequency_oracle, plugins\n"
        "from ldprecover.testing import check_protocol\n"
        "assert plugins.installed()['ldprecover.protocols'] == ('kue',)\n"
        "assert plugins.loaded() == ()\n"
        "assert not {'my_protocol', 'my_method', 'my_attack'} & sys.modules.keys()\n"
        "plugins.load(['kue'])\n"
        "assert plugins.loaded() == ('kue',)\n"
        "plugins.load()\n"
        "plugins.load()\n"
        "assert plugins.loaded() == ('above-median', 'kue')\n"
        "check_protocol(frequency_oracle('kue', 1.0, 12))\n"
        "check_protocol(frequency_oracle('kue', 0.3, 5, 40))\n",
        sees=(site,),
    )


def test_a_whole_round_is_played_by_the_command(
    run: Run, site: Path, with_plugins: ServerProcess
) -> None:
    def command(*arguments: str) -> Any:
        options = ("--url", with_plugins.url, "--key", ADMIN_KEY, "--json")
        ended = run(*COMMAND, *arguments, *options, sees=(site,))
        return json.loads(ended.stdout)

    opened = ("round", "open", "lunch", "--protocol", "kue", "--epsilon", "2", "--domain-size", "8")
    assert command(*opened, "--parameter", "keep=60")["keep"] == 60
    simulated = command("sim", "users", "lunch", "--users", "300", "--seed", "1")
    assert simulated["accepted"] == 300
    attack = ("sim", "attack", "first", "lunch", "--users", "100", "--target", "3", "--seed", "1")
    assert command(*attack)["accepted"] == 100
    recovered = command("result", "recover", "lunch", "--method", "above-median")
    assert recovered["n"] == 400
    assert recovered["method"] == "above-median"
    assert max(recovered["recovered"]) == recovered["recovered"][3]


def test_plugins_are_loaded_by_their_names(run: Run, site: Path) -> None:
    code = (
        "from ldprecover import ParameterError, RecoveryRequest, frequency_oracle\n"
        "from ldprecover_attacker import make_attack\n"
        "from ldprecover_experiments import simulate\n"
        "for package, make, name in (('', lambda name: frequency_oracle(name, 1.0, 2), 'kue'),\n"
        "        ('', RecoveryRequest, 'above-median'), ('_attacker', make_attack, 'first')):\n"
        "    try:\n"
        "        make(name)\n"
        "    except ParameterError as error:\n"
        "        how = f\"not loaded: call ldprecover{package}.plugins.load(['{name}'])\"\n"
        "        assert str(error).endswith(how), error\n"
        "r = simulate({'tea': 60, 'beer': 40}, 'kue').attack('first', targets=['tea'])\n"
        "print(r.recover('above-median').recovery.method)\n"
    )
    assert run("-c", code, sees=(site,)).stdout == "above-median\n"


def test_the_server_and_its_analyses_have_the_plugins(with_plugins: ServerProcess) -> None:
    opened = with_plugins.open_round("kue", 1.0)
    assert opened["keep"] == 75
    assert opened["p"] == 0.75
    place = f"/rounds/{opened['id']}"
    many = {"reports": ["1000", "0110"] * 100}
    assert (
        with_plugins.http.post(
            f"{place}/reports", json=many, headers=with_plugins.admin
        ).status_code
        == 202
    )
    named = {
        method["name"] for method in with_plugins.http.get(f"{place}/methods").json()["methods"]
    }
    assert {"above-median", "ldprecover"} <= named
    assert with_plugins.http.get(f"{place}/alarms").json()["reports_read"] is True
    document = with_plugins.http.get("/openapi.json").json()["components"]["schemas"]
    assert "KueReports" in document


def test_the_processes_of_analyses_have_the_plugins(with_plugins: ServerProcess) -> None:
    """What reads reports works in one, and whatever takes long: a method too, with 5,000 items."""
    place = f"/rounds/{with_plugins.open_round('kue', 1.0, domain_size=5000)['id']}"
    report = bytes([1]) + bytes(624)
    assert with_plugins.submit(place.rpartition("/")[2], 100 * report).status_code == 202
    for method in ("above-median", "fiad"):
        answer = with_plugins.http.post(
            f"{place}/recover", json={"method": method}, headers=with_plugins.admin
        )
        assert answer.status_code == 200, answer.text
        assert max(answer.json()["recovered"]) == answer.json()["recovered"][0]


def test_round_without_its_plugin_can_only_be_listed_and_deleted(
    start_with_plugins: StartWithPlugins, start_server: StartServer, run: Run, site: Path
) -> None:
    server = start_with_plugins(site, "kue")
    stored, grr = server.open_round("kue", 1.0), server.open_round("grr", 1.0)
    deleted = server.open_round("kue", 1.0)
    server.http.post(
        f"/rounds/{stored['id']}/reports", json={"reports": ["1000"]}, headers=server.admin
    )
    server.kill()
    without = start_server(database_url=server.database_url)

    listed = {each["id"]: each for each in without.http.get("/rounds").json()["rounds"]}
    assert listed.keys() == {each["id"] for each in (stored, grr, deleted)}
    listing = listed[stored["id"]]
    assert (listing["p"], listing["q"]) == (None, None)
    for same in ("name", "protocol", "epsilon", "domain_size", "digest", "state"):
        assert listing[same] == stored[same]
    assert listing["n"] == 1

    place = f"/rounds/{stored['id']}"
    reads = ("parameters", "frequencies", "methods", "alarms", "export", "stats")
    calls = [
        ("GET", "", None),
        *(("GET", f"/{path}", None) for path in reads),
        ("POST", "/recover", {}),
        ("POST", "/reports", {"reports": ["1000"]}),
        ("POST", "/close", None),
        ("POST", "/tickets", {"count": 1}),
    ]
    for method, path, body in calls:
        answer = without.http.request(method, place + path, json=body, headers=without.admin)
        assert answer.status_code == 503, (path, answer.text)
        assert answer.json()["type"].endswith("#plugin-not-loaded")
        assert "'kue'" in answer.json()["detail"]
    assert without.http.get(f"/rounds/{grr['id']}").status_code == 200
    line = f"round delete {deleted['id']} --yes --url {without.url} --key {ADMIN_KEY}"
    run(*COMMAND, *line.split())
    assert without.http.delete(place, headers=without.admin).status_code == 204
    (remaining,) = without.http.get("/rounds").json()["rounds"]
    assert remaining["id"] == grr["id"]
    assert without.http.get(place).status_code == 404


def test_client_without_the_plugin_fails_before_perturbing(
    with_plugins: ServerProcess, run: Run
) -> None:
    with_plugins.open_round("kue", 1.0, name="theirs")
    stderr = run(*COMMAND, "send", "value", "1", "theirs", "--url", with_plugins.url, code=2).stderr
    assert "protocol 'kue' is not known here: install and load the plugin that has it" in stderr


def test_a_study_takes_all_three(run: Run, site: Path, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(shown("data = "))
    run(*COMMAND, "study", "run", "study.toml", "--jobs", "2", "--output", "results", sees=(site,))
    lines = (tmp_path / "results" / "cells.jsonl").read_text().splitlines()
    cells = [json.loads(line)["cell"] for line in lines]
    assert {cell["protocol"] for cell in cells} == {"kue"}
    assert {cell["attack"]["name"] for cell in cells} == {"none", "first"}
    assert all('"method":"above-median","mse":' in line for line in lines)
