"""What a drill's form can ask for, and what is refused before anything is sent."""

from pathlib import Path
from typing import Any

import pytest

from ldprecover import LDPRecoverError
from ldprecover.planning.choosing import choose
from ldprecover.protocols import PROTOCOLS
from ldprecover.recovery import METHODS
from ldprecover_attacker import ATTACKS, MODELS, RPA
from ldprecover_experiments import DemoSettings
from ldprecover_experiments.datasets import NAMES
from ldprecover_experiments.drill import words
from ldprecover_experiments.drill.drill_round import MAX_USERS
from ldprecover_experiments.drill.form import FormChoices
from ldprecover_experiments.drill.heat_map import MAX_MAP_USERS
from ldprecover_experiments.drill.words import EVALUATED_ATTACKS, AttackWords, attack_words
from ldprecover_experiments.unmixing_evaluation import ATTACKS as IN_TABLES

SMALL = FormChoices(DemoSettings(users=1000, targets=3))


def test_choices_are_the_registries() -> None:
    choices = SMALL.as_json()
    assert list(choices["protocols"]) == ["auto", *PROTOCOLS]
    assert list(choices["attacks"]) == sorted(ATTACKS)
    assert choices["methods"].keys() == METHODS.keys() - {"norm-sub", "auto"}
    assert tuple(choices["models"]) == MODELS
    assert [each["name"] for each in choices["datasets"]] == list(NAMES)
    assert choices["defaults"]["users"] == 1000
    assert choices["limits"] == {"users": MAX_USERS, "map_users": MAX_MAP_USERS, "trials": 10}


def test_every_choice_is_accepted() -> None:
    choices = SMALL.as_json()
    lacking = {"apa2": ("grr", "ss", "hr", "llh"), "joint": ("hr", "llh")}  # without such reports
    for protocol in choices["protocols"]:
        for name, attack in choices["attacks"].items():
            if protocol in lacking.get(name, ()):
                continue
            played = SMALL.round({"protocol": protocol, "attack": name})
            assert (played.demo.targets is not None) == attack["targeted"]
    for each in choices["datasets"]:
        assert len(SMALL.round({"dataset": each["name"]}).demo.parameters.items) == each["items"]


def test_auto_is_the_protocol_of_the_planner() -> None:
    for epsilon, users in ((0.5, 1000), (6.0, 1000)):
        best = choose(102, epsilon, users).best.oracle.protocol
        form = {"protocol": "auto", "epsilon": epsilon, "users": users}
        assert SMALL.round(form).settings["protocol"] == best
        assert SMALL.map(form).settings["protocol"] == best
    with pytest.raises(LDPRecoverError, match="epsilon"):
        SMALL.round({"protocol": "auto", "epsilon": 11})


def test_every_attack_has_words() -> None:
    for name in ATTACKS:
        attack = attack_words(name)
        assert attack.title != name
        assert attack.sentence.count(".") == 2
        assert "to know" in attack.sentence or "needs a guess" in attack.sentence
    assert EVALUATED_ATTACKS.keys() == IN_TABLES.keys()


def test_attack_of_a_plugin_has_its_docstring(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bribe(RPA):
        """Pays users.

        Handsomely.
        """

    monkeypatch.setattr(words, "ATTACKS", {"bribe": Bribe})
    assert attack_words("bribe") == AttackWords("bribe", "Pays users.")


def test_methods_know_the_targets_if_they_use_them() -> None:
    def named(**form: Any) -> list[str]:
        return [
            each.name
            for each in SMALL.round(
                {"methods": ["norm-cut", "ldprecover", "detection-all"], **form}
            ).methods
        ]

    names = [
        "LDPRecover",
        "LDPRecover told the targets",
        "norm-cut",
        "detection-all told the targets",
    ]
    assert named() == names
    assert named(told=False) == ["LDPRecover", "norm-cut", "detection-all"]
    assert named(attack="manip") == ["LDPRecover", "norm-cut", "detection-all"]


def test_file_of_the_command_is_a_choice(tmp_path: Path) -> None:
    file = tmp_path / "pets.csv"
    file.write_text("owner,pet\n" + "1,cat\n" * 5 + "2,dog\n" * 3 + "3,newt\n")
    offer = FormChoices(DemoSettings(dataset=str(file), column="pet", users=100, targets=1))
    choices = offer.as_json()
    assert choices["datasets"][-1] == {
        "name": "pets.csv",
        "items": 3,
        "source": "column pet of the file pets.csv",
    }
    assert choices["defaults"]["dataset"] == "pets.csv"
    assert str(tmp_path) not in str(choices)
    played = offer.round({"dataset": "pets.csv"})
    assert played.demo.parameters.items == ("cat", "dog", "newt")
    assert str(tmp_path) not in str(played.settings)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ([], "a drill must be an object"),
        ({"userz": 3}, "there is no key 'userz'"),
        ({"column": "pet"}, "there is no key 'column'"),
        ({"dataset": "/etc/passwd"}, "dataset must be one of"),
        ({"kind": "mpa"}, "kind must be 'round' or 'map', not 'mpa'"),
        ({"protocol": "rappor"}, "protocol must be one of"),
        ({"epsilon": "1"}, "epsilon must be a "),
        ({"epsilon": 11}, "epsilon"),
        ({"epsilon": 10**400}, "epsilon must be a "),
        ({"users": 0}, "users must be greater than or equal to 1, not 0"),
        ({"users": MAX_USERS, "beta": 0.1}, "malicious ones included"),
        ({"users": 10**6, "beta": 0.0, "dataset": "emoji", "protocol": "oue"}, None),
        ({"beta": 0.95}, "beta must be from 0 to 0.9"),
        ({"attack": "bribe"}, "attack must be one of"),
        ({"model": "one-hot"}, "model must be one of"),
        ({"targets": 102}, "targets"),
        ({"eta": -1}, "eta"),
        ({"seed": -1}, "seed must be greater than or equal to 0"),
        ({"methods": ["norm-sub"]}, "methods must be one of"),
        ({"methods": ["auto"]}, "methods must be one of"),
        ({"told": 1}, "told must be a valid boolean"),
        ({"attack": "apa2", "protocol": "grr"}, "apa2"),
    ],
    ids=str,
)
def test_rejects_invalid_round_form_with_its_field(form: Any, message: str | None) -> None:
    if message is None:
        assert SMALL.round(form).settings["users"] == form["users"]
        return
    with pytest.raises(LDPRecoverError) as refused:
        SMALL.round(form)
    assert message in str(refused.value)


def test_rejects_reports_beyond_the_memory_limit(tmp_path: Path) -> None:
    file = tmp_path / "wide.csv"
    file.write_text("item,count\n" + "".join(f"i{i},1\n" for i in range(10_000)))
    offer = FormChoices(DemoSettings(dataset=str(file), users=1000))
    with pytest.raises(
        LDPRecoverError, match="would take 1,192 MiB, and a drill makes at most 256"
    ):
        offer.round({"users": MAX_USERS, "beta": 0, "protocol": "oue"})
    with pytest.raises(LDPRecoverError, match="more than 256 MiB"):
        offer.map({"users": MAX_MAP_USERS, "beta": 0.5, "protocol": "oue", "reports": True})


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"users": MAX_MAP_USERS + 1}, "users must be less than or equal to 200000"),
        ({"trials": 11}, "trials must be less than or equal to 10"),
        ({"targets": 51}, "targets must be fewer than half of the 102 items"),
        ({"attack": "mga"}, "there is no key 'attack'"),
        ({"reports": "yes"}, "reports must be a valid boolean"),
        ({"eta": 11}, "eta must be from 0 to 10"),
        ({"beta": 1}, "beta must be from 0 to 0.9"),
        ({"epsilon": 0}, "epsilon"),
        ({"beta": -(10**400)}, "beta must be a "),
    ],
    ids=str,
)
def test_rejects_invalid_map_form_with_its_field(form: Any, message: str) -> None:
    with pytest.raises(LDPRecoverError) as refused:
        SMALL.map(form)
    assert message in str(refused.value)
