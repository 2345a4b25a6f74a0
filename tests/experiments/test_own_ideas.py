"""Attacks and recoveries of one's own: functions, objects, and names of a module."""

import hashlib
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from ldprecover import FrequencyOracle, ParameterError, PluginError, project_simplex, recover
from ldprecover.plugins import name_of
from ldprecover.recovery import METHODS, Method
from ldprecover_attacker import MGA
from ldprecover_attacker.functions import attack_class
from ldprecover_experiments import (
    AttackSpec,
    ExperimentError,
    MethodSpec,
    SimulatedRound,
    Study,
    dataset_of,
    simulate,
)

COUNTS = {"cat": 600, "dog": 300, "newt": 80, "fish": 20}

MODULE = """
import numpy as np
from ldprecover import project_simplex
from ldprecover_attacker import MGA

newts = MGA(["newt"])
number = 3

def send(oracle, rng, m):
    return oracle.encode(np.full(m, 2), rng)

def raised(oracle, rng, m, targets):
    return oracle.encode(rng.choice(targets, size=m), rng)

def projected(estimates, oracle):
    return project_simplex(estimates)
"""


def send(oracle: FrequencyOracle, rng: np.random.Generator, m: int) -> Any:
    return oracle.encode(np.full(m, 2), rng)


pytestmark = pytest.mark.usefixtures("forgets_modules")


def raised(oracle: FrequencyOracle, rng: np.random.Generator, m: int, targets: Any) -> Any:
    return oracle.encode(rng.choice(targets, size=m), rng)


def projected(estimates: Any, oracle: FrequencyOracle) -> Any:
    return project_simplex(estimates)


@pytest.fixture
def clean() -> SimulatedRound:
    return simulate(COUNTS, "oue", seed=3)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgets_modules: None) -> str:
    """The name of a new module of attacks and methods."""
    name = f"own_{re.sub(r'[^a-z0-9]', '_', tmp_path.name.lower())}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_function_makes_the_reports_of_the_malicious_users(clean: SimulatedRound) -> None:
    attacked = clean.attack(send, beta=0.2)
    assert attacked.round.malicious.n == 250
    assert attacked.round.malicious.counts(clean.parameters.oracle).tolist() == [0, 0, 250, 0]
    assert attacked.targets == ()
    again = clean.attack(send, beta=0.2)
    assert attacked.round.tally == again.round.tally


def test_function_is_given_the_targets(clean: SimulatedRound) -> None:
    attacked = clean.attack(raised, targets=["fish", "newt"], beta=0.2)
    counts = attacked.round.malicious.counts(clean.parameters.oracle)
    assert counts[:2].tolist() == [0, 0]
    assert counts.sum() == 250
    assert attacked.targets == ("newt", "fish")


def test_partial_keeps_the_targets_that_it_binds(clean: SimulatedRound) -> None:
    attacked = clean.attack(partial(raised, targets=[3]), beta=0.2)
    assert attacked.round.malicious.counts(clean.parameters.oracle).tolist() == [0, 0, 0, 250]
    keys = {"methods": "norm-sub", "protocols": "oue", "trials": 1}
    aimed = {"name": name_of(raised), "targets": ["newt"]}
    hashed = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    gains = []
    for attack, title in ((partial(raised, targets=["newt"]), " partial"), (aimed, "")):
        study = Study.of({**keys, "attacks": attack}, data=[clean_data()])
        assert study.record["sha256"] == {f"{__name__}:raised{title}": hashed}
        gains.append(study.run().outcomes[1].fg)
    assert gains[0] == pytest.approx(gains[1], rel=0.1)


def test_attack_is_taken_as_it_is(clean: SimulatedRound) -> None:
    attacked = clean.attack(MGA(["newt"]), beta=0.2)
    named = clean.attack("mga", targets=["newt"], beta=0.2)
    assert attacked.targets == named.targets == ("newt",)
    assert attacked.round.tally == named.round.tally


def test_function_and_method_recover(clean: SimulatedRound) -> None:
    attacked = clean.attack(send, beta=0.2)
    expected = attacked.recover("norm-sub").recovery.recovered
    for method in (projected, Method.of(projected, "mine"), METHODS["norm-sub"]):
        recovered = attacked.recover(method)
        assert recovered.recovery.recovered == pytest.approx(expected)
    assert attacked.recover(projected).recovery.method == "projected"
    assert "<th>recovered by projected</th>" in attacked.recover(projected)._repr_html_()
    counts = recover(attacked.parameters.oracle, attacked.round.tally, projected)
    assert counts.recovered == pytest.approx(expected)
    assert "projected" not in METHODS
    assert attacked.recover(METHODS["auto"]).recovery.method == "unmix"


def test_name_of_a_module_is_what_the_module_has_now(module: str, clean: SimulatedRound) -> None:
    first = clean.recover(f"{module}:projected").recovery.recovered
    sys.modules[module].projected = lambda estimates, oracle: estimates  # type: ignore[attr-defined]
    now = clean.recover(f"{module}:projected").recovery
    assert now.recovered.tolist() == now.poisoned.tolist() != first.tolist()


def test_support_and_gain_of_a_function_are_measured(clean: SimulatedRound) -> None:
    oracle, rng = clean.parameters.oracle, np.random.default_rng(0)
    attack = attack_class(raised)([2])  # type: ignore[call-arg]
    assert attack.support(oracle, rng).tolist() == [0, 0, 1, 0]
    assert attack.gain(oracle, clean.round.truth, 0.1) == pytest.approx(
        MGA([2]).gain(oracle, clean.round.truth, 0.1)
    )


def test_study_takes_names_of_a_module(module: str) -> None:
    aimed = {"name": f"{module}:raised", "targets": ["newt"]}
    keys = {
        "attacks": [f"{module}:send", f"{module}:newts", aimed],
        "methods": ["norm-sub", f"{module}:projected"],
        "protocols": "oue",
        "trials": 1,
    }
    results = Study.of(keys, data=[clean_data()]).run()
    assert results.methods == ["genuine", "poisoned", "norm-sub", f"{module}:projected"]
    for row in results.cells:
        *_, norm_sub, own = row.outcomes
        assert own.refused is None
        assert own.mse == pytest.approx(norm_sub.mse)
    gains = [row.outcomes[1].fg or 0 for row in results.cells]
    assert [gain > 0.03 for gain in gains] == [False, True, True]


def test_study_takes_functions_and_objects() -> None:
    def also(estimates: Any, oracle: FrequencyOracle) -> Any:
        return project_simplex(estimates)

    keys = {
        "attacks": [send, {"name": raised, "targets": ["newt"]}, MGA(["newt"])],
        "methods": [projected, also, {"method": lambda f, oracle: f, "name": "same"}, "norm-sub"],
        "protocols": "oue",
        "trials": 1,
    }
    results = Study.of(keys, data=[clean_data()]).run(jobs=2)
    own = ["projected", "test_study_takes_functions_and_objects.<locals>.also", "same"]
    assert [name.rpartition(":")[2] for name in results.methods[2:]] == [*own, "norm-sub"]
    for row in results.cells:
        _, poisoned, named, local, same, norm_sub = (outcome.mse for outcome in row.outcomes)
        assert same == poisoned
        assert named == local == pytest.approx(norm_sub)
    gains = [row.outcomes[1].fg for row in results.cells]
    assert [None if gain is None else gain > 0.03 for gain in gains] == [None, True, True]
    with pytest.raises(ParameterError, match="an attack must be an object, not 7"):
        Study.of({**keys, "attacks": 7})


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An empty module in place of the main one."""
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    return module


def test_name_of_a_function_is_not_in_the_seed(main: ModuleType) -> None:
    keys = {"methods": "norm-sub", "protocols": "oue", "trials": 1}
    errors, names = [], []
    for name in ("first", "first", "second"):
        exec(f"def {name}(oracle, rng, m): return oracle.encode([2] * m, rng)", main.__dict__)
        attack = getattr(main, name)
        (row,) = Study.of({**keys, "attacks": attack}, data=[clean_data()]).run().cells
        names.append(row.cell.attack.name)
        errors.append([each.mse for each in row.outcomes])
    assert names == ["__main__:first", "__main__:first", "__main__:second"]
    assert errors == 3 * errors[:1]
    main.__file__ = "<stdin>"
    assert AttackSpec(name=main.__dict__["first"]).code is None


def test_script_that_its_workers_import_needs_a_guard(
    main: ModuleType, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    keys = {"attacks": "mga", "methods": "norm-sub", "users": 100, "trials": 20}
    script = tmp_path / "script.py"
    script.write_text(f"from ldprecover_experiments import Study\nStudy.of({keys}).run(jobs=2)\n")
    main.__file__ = str(script)
    with pytest.raises(ExperimentError, match="if __name__ =="):
        Study.of(keys).run(jobs=2)
    assert "Traceback" not in capfd.readouterr().err


def clean_data() -> Any:
    return dataset_of({**COUNTS, **{f"other {i}": 10 for i in range(20)}})


def test_results_of_an_earlier_version_of_the_module_are_not_reused(
    module: str, tmp_path: Path
) -> None:
    keys = {"methods": f"{module}:projected", "attacks": f"{module}:send", "protocols": "oue"}
    first, again = (Study.of(keys, data=[clean_data()]).rows for _ in range(2))
    assert first == again
    (tmp_path / f"{module}.py").write_text(MODULE + "# changed\n")
    assert first != Study.of(keys, data=[clean_data()]).rows
    assert MethodSpec(method="norm-sub").code is None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda r: r.attack(MGA), r"give an attack of the class, as MGA(...)"),
        (lambda r: r.attack(3), "must be an Attack or a function (oracle, rng, m) -> reports"),
        (lambda r: r.attack(lambda oracle, m: 0), "too many positional arguments"),
        (lambda r: r.recover(lambda f: f), "frequencies: too many positional arguments"),
        (lambda r: r.attack(raised), "raised needs targets"),
        (lambda r: r.attack(send, search=3), "search is an option of attacks by name"),
        (lambda r: r.attack(lambda o, rng, m: send(o, rng, 3)), "reports, not 3"),
        (lambda r: r.attack(lambda o, rng, m: [0.5]), "the reports of <lambda>: "),
        (lambda r: r.attack("no_such:attack"), "No module named 'no_such'"),
        (lambda r: r.attack(":"), "':' cannot be loaded"),
        (lambda r: r.recover(etta=0.1), "no assumption 'etta'; did you mean 'eta'?"),
        (lambda r: r.recover(3), "a function (estimates, oracle) -> frequencies, not 3"),
        (
            lambda r: MethodSpec.of_mapping({"method": projected, "eta": 1}),
            "given no eta or targets",
        ),
        (lambda r: r.attack(MGA([1]), targets=[2]), "give them to the attack alone"),
        (lambda r: r.recover(lambda f, oracle: f[:3]), "the result of <lambda> must be of the 4"),
        (lambda r: r.recover("string:digits"), "string:digits: a method must be a Method or a "),
        (lambda r: Study.of({"attacks": "string:digits", "methods": "norm-sub"}), "string:digits"),
        (lambda r: r.attack("json:dumpz"), "did you mean 'dump'?"),
        (
            lambda r: Study.of({"attacks": "x1", "methods": "norm-sub"}),
            "a plugin must be installed",
        ),
    ],
)
def test_rejects_what_is_no_attack_and_no_method(
    clean: SimulatedRound, wrong: Callable[[SimulatedRound], Any], words: str
) -> None:
    with pytest.raises(ParameterError, match=re.escape(words)):
        wrong(clean)


def test_error_of_a_module_is_of_a_plugin(module: str) -> None:
    with pytest.raises(PluginError, match=f"{module}:number: an attack must be an Attack"):
        simulate(COUNTS).attack(f"{module}:number")
