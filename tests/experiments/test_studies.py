"""A study of one's own: what its file may say, what it runs, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldprecover import GRR, OUE, ParameterError, RecoveryRequest, recover
from ldprecover.estimation.metrics import frequency_gain, mse
from ldprecover.recovery import METHODS
from ldprecover_attacker import ATTACKS
from ldprecover_client import DatasetError
from ldprecover_experiments import AttackSpec, MethodSpec, Results, Study
from ldprecover_experiments.attacks import Mix, parse
from ldprecover_experiments.poisoned_round import simulate_round

SMALL = 'users = 1000\ntrials = 1\nattacks = ["mga"]\nmethods = ["norm-sub"]\n'


@pytest.fixture
def study(tmp_path: Path) -> Callable[[str], Study]:
    """Write a file and load it."""

    def load(text: str) -> Study:
        (tmp_path / "mine.toml").write_text(text)
        return Study.load(tmp_path / "mine.toml")

    return load


def test_a_small_file_has_the_paper_s_setting(study: Callable[[str], Study]) -> None:
    result = study('attacks = "mga"\nmethods = "ldprecover"\n')
    assert (result.name, result.protocols, result.trials, result.seed) == (
        "mine",
        ("grr", "oue", "olh"),
        10,
        0,
    )
    assert len(result.cells) == 30
    cell = result.cells[0]
    assert (cell.data, cell.beta, cell.epsilon, cell.eta, cell.model) == (
        "cities",
        0.05,
        0.5,
        0.2,
        "crafted",
    )
    assert result.users_by_data["cities"].n == 389_894


def test_every_value_meets_every_other_once(study: Callable[[str], Study]) -> None:
    result = study(
        'data = ["cities", "fire"]\nprotocols = ["grr", "oue"]\nbeta = [0.01, 0.05]\nepsilon = '
        "[0.5, 1.0]\n"
        'eta = [0.1, 0.2, 0.4]\nusers = 1000\ntrials = 3\nattacks = ["none", "mga", {name = '
        '"apa", each = 4}]\n'
        'methods = ["norm-sub"]\n'
    )
    # Without an attack there is no beta to vary.
    assert len(result.cells) == len(set(result.cells)) == 2 * 2 * (1 + 2 * 2) * 2 * 3 * 3
    assert {cell.beta for cell in result.cells if cell.attack is None} == {0.0}


def test_every_attack_can_be_played_against_every_method_that_fits(
    study: Callable[[str], Study],
) -> None:
    """Every pair of attack and protocol that there is, with every method but em, which takes
    minutes.
    """
    attacks = ", ".join(f'"{name}"' for name in ATTACKS if name != "apa2")
    methods = ", ".join(f'"{name}"' for name in METHODS if name != "em")
    result = study(
        f'users = 2000\ntrials = 1\nattacks = ["none", {attacks}]\nmethods = '
        f'[{methods}]\nprotocols = ["grr", "olh"]\n'
    ).run()
    assert len(result.cells) == 2 * len(ATTACKS)
    assert result.methods == ["genuine", "poisoned", *(name for name in METHODS if name != "em")]
    refused = {outcome.method for outcome in result.outcomes if np.isnan(outcome.mse)}
    assert {"fiad", "diffstats"} <= refused  # under GRR
    assert not refused & {"norm-sub", "ldprecover", "k-means"}


def test_an_outcome_is_what_the_library_makes_of_the_round(study: Callable[[str], Study]) -> None:
    result = study(
        'protocols = "oue"\nusers = 5000\ntrials = 1\nseed = 7\nattacks = ["mga"]\n'
        'methods = [{method = "ldprecover", targets = true, name = "told"}, '
        '{method = "ldprecover", support = true, eta = "true", name = "right"}]\n'
    )
    (cell,) = result.cells
    round_ = simulate_round(cell, result.users_by_data["cities"], 7)
    outcomes = {outcome.method: outcome for outcome in result.run().outcomes}
    assert round_.targets is not None
    poisoned, m = round_.poisoned.frequencies, round_.malicious.n
    named = recover(round_.oracle, poisoned, RecoveryRequest(targets=round_.targets)).recovered
    share = round_.malicious.counts(round_.oracle) / m
    right = recover(
        round_.oracle,
        poisoned,
        RecoveryRequest(eta=m / 5000, malicious_model="custom", support=share),
    ).recovered
    for name, expected in (("told", named), ("right", right)):
        assert outcomes[name].mse == mse(expected, round_.truth)
        assert outcomes[name].fg == frequency_gain(expected, round_.f_genuine, round_.targets)
    # With the true share and the true eta LDPRecover subtracts exactly what was added.
    assert outcomes["right"].malicious_mse == pytest.approx(0, abs=1e-20)


def test_methods_that_read_reports_have_all_of_them_made(study: Callable[[str], Study]) -> None:
    counts = study(
        'users = 1000\ntrials = 2\nprotocols = "grr"\nattacks = "mga"\nmethods = "norm-sub"\n'
    )
    reports = study(
        'users = 1000\ntrials = 2\nprotocols = "grr"\nattacks = "mga"\nmethods = "k-means"\n'
    )
    assert counts.cost == (
        "mine: 2 cells, 2 recoveries, 106 reports to make; all other counts are drawn from their "
        "law."
    )
    assert "2,106 reports to make" in reports.cost
    assert all(outcome.mse >= 0 for outcome in reports.run().outcomes)


def test_the_numbers_depend_on_the_seed_not_on_the_processes(study: Callable[[str], Study]) -> None:
    text = (
        'users = 1000\ntrials = 6\nprotocols = ["grr", "oue"]\nattacks = "mga"\nmethods = '
        '"ldprecover"\n'
    )
    one, two, other = study(text).run(), study(text).run(jobs=2), study(text + "seed = 1\n").run()
    errors = [[outcome.mse for outcome in result.outcomes] for result in (one, two, other)]
    assert errors[0] == errors[1] != errors[2]
    assert list(one.cells) == list(two.cells)


def test_data_files_are_found_from_the_file_s_folder(
    study: Callable[[str], Study], tmp_path: Path
) -> None:
    people = "\n".join(
        f"{i},{pet}" for i, pet in enumerate(["cat"] * 50 + ["dog"] * 30 + ["newt"] * 20)
    )
    (tmp_path / "pets.csv").write_text(f"owner,pet\n{people}\n")
    result = study(
        'data = [{file = "pets.csv", column = "pet"}]\ntrials = 1\nattacks = [{name = "mga", '
        'targets = ["newt"]}]\n'
        'methods = ["norm-sub"]\n'
    )
    assert result.users_by_data["pets.csv"].counts.tolist() == [50, 30, 20]
    assert simulate_round(result.cells[0], result.users_by_data["pets.csv"], 0).targets == (2,)


def test_other_methods_are_other_rows_of_a_file_of_cells(study: Callable[[str], Study]) -> None:
    doors = {
        study(SMALL).variant,
        study(SMALL.replace('"norm-sub"', '{method = "norm-sub"}')).variant,
    }
    assert len(doors) == 1
    assert study(SMALL.replace('"norm-sub"', '"norm-cut"')).variant not in doors
    named = '{method = "ldprecover", name = "norm-sub", eta = 0.3}'
    assert study(SMALL.replace('"norm-sub"', named)).variant not in doors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("protocls = 1", "there is no key 'protocls' of a study; did you mean 'protocols'?"),
        ("columns = {}", "there is no key 'columns' of a study"),
        (
            'attacks = [{name = "apa", eech = 4}]',
            "there is no key 'eech' of an attack; did you mean 'each'?",
        ),
        (
            'methods = [{method = "ldprecover", target = true}]',
            "no key 'target' of a method; did you mean 'targets'?",
        ),
        ('methods = ["ldprecovr"]', "there is no method 'ldprecovr'; did you mean 'ldprecover'?"),
        ('methods = [{method = "k-means", options = {rat = 1}}]', "rat"),
        ('methods = ["norm-sub", "norm-sub"]', "two methods are called 'norm-sub'"),
        (
            'methods = [{ method = "fiad", name = "poisoned" }]',
            "a method cannot be called 'poisoned'",
        ),
        ("methods = []", "methods must name at least one"),
        ('attacks = ["bribe"]', "attack must be none or one of aa, apa"),
        ('attacks = [{name = "aa", targets = 3}]', "targets does not belong to aa"),
        (
            'attacks = [{name = "mga", targets = 0}]',
            "targets must be greater than or equal to 1, not 0",
        ),
        (
            'attacks = [{name = "mga", targets = 102}]',
            "cities has 102 items; the experiments need more than 102",
        ),
        ('attacks = [{name = "mga", targets = ["Oz"]}]', "no item is labelled 'Oz'"),
        (
            'attacks = [{name = "rpa", model = "sampled"}]',
            "the model of rpa must be one of crafted, input",
        ),
        (
            'attacks = [{name = "mga", model = "two-hot"}]',
            "the model of mga must be one of crafted, input, one-hot",
        ),
        ('attacks = [{name = "apa2"}]\nprotocols = ["grr"]', "apa2"),
        ('attacks = [{name = "aa", kind = "round"}]', "kind"),
        (
            (
                'attacks = [{name = "mga", model = "one-hot"}]\nmethods = ["k-means"]\nprotocols = '
                '"olh"'
            ),
            "no OLH report",
        ),
        ('protocols = ["rappor"]', "protocol must be one of"),
        ("epsilon = 0", "epsilon"),
        ("beta = 0.95", "beta must be from 0 to 0.9"),
        ("beta = true", "beta must be a valid number, not True"),
        ("eta = 11", "eta must be from 0 to 10"),
        ("users = 0", "users must be an integer of at least 1"),
        ("trials = 1.5", "trials must be a valid integer, not 1.5"),
        ("seed = -1", "seed must be an integer of at least 0"),
        ('data = ["cities", "cities"]', "two data sets are called cities"),
        ('protocols = ["ss", "ss"]', "protocols has ss twice"),
        ("epsilon = [1, 0.5, 1.0]", "epsilon has 1.0 twice"),
        ("beta = [0.1, 0.1]", "beta has 0.1 twice"),
        ('attacks = ["none", "mga", {name = "mga"}]', "attacks has mga, crafted twice"),
        (
            "trials = 1000000000",
            "a study has at most 1,000,000 cells, not 3,000,000,000: give fewer trials",
        ),
        ('name = "../../x"', "name must be a plain file name, without a folder, not '../../x'"),
        ('name = ""', "name must be a plain file name"),
        ('name = ".."', "name must be a plain file name"),
        ("name = 5", "name must be a valid string, not 5"),
        ("data = [{column = 'pet'}]", "data needs the key 'file'"),
        ("[", "is not a TOML file"),
    ],
)
def test_rejects_invalid_study_with_the_name_of_its_file(
    study: Callable[[str], Study], text: str, message: str
) -> None:
    rest = [
        line
        for line in SMALL.splitlines()
        if line.split(" =")[0] not in {part.split(" =")[0] for part in text.splitlines()}
    ]
    with pytest.raises(ParameterError) as refused:
        study("\n".join([*rest, text])).cells  # noqa: B018  what the data decide shows with them
    assert message in str(refused.value)


def test_cost_is_known_before_the_cells_are_made(
    study: Callable[[str], Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = study(
        'attacks = ["none", "mga"]\nmethods = "ldprecover"\nusers = 1000\ntrials = 100000\n'
    )
    monkeypatch.setattr(Study, "cells", None)
    assert result.cost.startswith(
        "mine: 600,000 cells, 600,000 recoveries, 15,900,000 reports to make"
    )


def test_rejects_missing_files(tmp_path: Path, study: Callable[[str], Study]) -> None:
    with pytest.raises(ParameterError, match=r"cannot read .*nowhere\.toml: No such file"):
        Study.load(tmp_path / "nowhere.toml")
    with pytest.raises(DatasetError, match=r"there is no file .*nowhere\.csv"):
        study(SMALL + 'data = "nowhere.csv"').cells  # noqa: B018


@pytest.mark.parametrize(
    "text",
    [
        "mga",
        "aa-peaked-x5",
        "mga-a",
        "apa2",
        'apa {"each": 4}',
        'mla {"item": "New York, NY"}',
        "mga-x3",
    ],
)
def test_an_attack_is_its_text(text: str) -> None:
    assert str(AttackSpec.parse(text)) == text


def test_rejects_text_of_no_attack() -> None:
    with pytest.raises(ParameterError, match="attack must be one of"):
        AttackSpec.parse("mga-b")


def test_a_mix_is_its_text_and_shares_the_users_out() -> None:
    """GRR: 1,000 users, a fifth sends targets and the others any item, to 6 sd (2e-9)."""
    mix = Mix(
        (
            (1.0, AttackSpec("mga", options={"targets": 3}), "sampled"),
            (4.0, AttackSpec("rpa"), "crafted"),
        )
    )
    assert str(mix) == 'mix [[1.0, "mga {\\"targets\\": 3}", "sampled"], [4.0, "rpa", "crafted"]]'
    assert parse(str(mix)) == mix
    assert (mix.targeted, mix.targets) == (True, 3)
    reports = mix.make("crafted", (0, 1, 2)).reports(GRR(1.0, 100), 1_000, np.random.default_rng(5))
    expected = 1_000 * (0.2 + 0.8 * 0.03)
    assert abs((reports < 3).sum() - expected) < 6 * (expected * (1 - expected / 1_000)) ** 0.5


@pytest.mark.parametrize(
    "text", ["mix", "mix 3", "mix [[1]]", 'mix [[1, "mga"]]', 'mix [["a", "mga", "crafted"]]']
)
def test_rejects_text_of_no_mix(text: str) -> None:
    with pytest.raises(ParameterError, match=r"a mix is a list|attack must be one of"):
        parse(text)


def test_sets_deal_the_targets_to_attackers_of_their_own() -> None:
    """Every OUE report has both targets of one set and, of padding, seldom both of the other."""
    attack = AttackSpec.parse('mga {"sets": 2, "targets": 4}').make("sampled", (0, 1, 2, 3))
    supports = OUE(1.0, 100).supports(attack.reports(OUE(1.0, 100), 200, np.random.default_rng(5)))
    assert {tuple(np.flatnonzero(row).tolist()) for row in supports} <= {(0,), (1,), (2,), (3,)}
    crafted = AttackSpec.parse('mga {"sets": 2, "targets": 4}').make("crafted", (0, 1, 2, 3))
    supports = OUE(1.0, 100).supports(crafted.reports(OUE(1.0, 100), 200, np.random.default_rng(5)))
    assert (supports[:, [0, 2]].all(axis=1) | supports[:, [1, 3]].all(axis=1)).all()
    assert not supports[:, :4].all(axis=1).all()


@pytest.fixture(scope="module")
def results() -> Results:
    """Two settings, one of them with targets; a method that refuses GRR; a name that is markup."""
    spec = [MethodSpec("<b>norm</b>", "norm-sub"), MethodSpec("fiad", "fiad")]
    attacks = [(AttackSpec("mga"), "crafted"), (AttackSpec("manip"), "crafted")]
    return Study("<i>x", spec, attacks, protocols=("grr",), users=1000, trials=2).run()


def test_results_come_back_from_json(results: Results) -> None:
    text = results.to_json()
    again = Results.from_json(text)
    assert again.to_json() == text
    assert again.means.keys() == results.means.keys()
    assert {row["attack"] for row in json.loads(text)["cells"]} == {"mga", "manip"}
    refused = {
        o["mse"]
        for row in json.loads(text)["cells"]
        for o in row["outcomes"]
        if o["method"] == "fiad"
    }
    assert refused == {None}


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"name": "x", "cells": [{}]}', '{"name": "x", "cells": []}']
)
def test_rejects_json_of_no_results(text: str) -> None:
    with pytest.raises(ParameterError, match="not the results of a study"):
        Results.from_json(text)


def test_the_frame_has_a_row_for_each_cell_and_method(results: Results) -> None:
    frame = results.to_frame()
    assert len(frame) == 2 * 2 * 4
    mean = frame[(frame.attack == "mga") & (frame.method == "poisoned")].mse.mean()
    (cell,) = (cell for cell in results.means if cell.attack == AttackSpec("mga"))
    assert mean == pytest.approx(results.means[cell]["poisoned"].mse)
    assert frame[frame.method == "fiad"].mse.isna().all()


def test_table_has_a_row_for_each_setting(results: Results) -> None:
    table = results.table()
    assert table.columns == ("attack", "genuine", "poisoned", "<b>norm</b>", "fiad")
    assert [(row[0], row[-1]) for row in table.rows] == [
        ("mga (crafted)", "refused"),
        ("manip (crafted)", "refused"),
    ]
    assert (
        table.title
        == "<i>x: MSE, data cities, protocol grr, epsilon 0.5, beta 0.05, eta 0.2, 2 trials"
    )
    gains = results.table(gains=True)
    assert [(row[0], row[1], row[-1]) for row in gains.rows] == [("mga (crafted)", "0.00", "")]


def test_a_notebook_shows_tables_with_every_name_escaped(results: Results) -> None:
    html = results._repr_html_()
    assert html.count("<table>") == 2
    assert "&lt;b&gt;norm&lt;/b&gt;" in html
    assert "&lt;i&gt;x" in html
    assert "<b>" not in html
    assert "<i>" not in html


@pytest.mark.parametrize("number", ["mse", "fg"])
def test_the_picture_has_a_panel_for_each_protocol(number: str) -> None:
    """Over the parameter that varies as lines, otherwise as bars."""
    base: Any = {
        "methods": ["norm-sub"],
        "attacks": ["none", "mga", "manip"],
        "protocols": ["grr", "oue"],
        "users": 500,
    }
    for more, is_line in (({"beta": [0.01, 0.05, 0.1]}, True), ({}, False)):
        figure = Study.of(base | {"trials": 1} | more).run().plot(number)
        titles = [panel.get_title() for panel in figure.axes]
        assert titles == ["cities, GRR", "cities, OUE"]
        assert bool(figure.axes[0].lines) or not is_line
        assert bool(figure.axes[0].patches) is not is_line
        figure.canvas.draw()


def test_refused_method_has_no_bar(results: Results) -> None:
    figure = results.plot()
    figure.canvas.draw()
    heights = [bar.get_height() for bar in figure.axes[0].patches]  # type: ignore[attr-defined]
    assert len(heights) == 2 * 4
    assert np.isnan(heights).sum() == 2


def test_rejects_unknown_number(results: Results) -> None:
    with pytest.raises(ParameterError, match="number must be"):
        results.plot("rmse")
