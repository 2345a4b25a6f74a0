"""Studies: their files, their cells and their results."""

import json
import math
import re
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldprecover import ParameterError, RecoveryRequest, recover
from ldprecover.estimation.metrics import frequency_gain, mse
from ldprecover.protocols import PROTOCOLS
from ldprecover.recovery import METHODS
from ldprecover_attacker import ATTACKS
from ldprecover_client import DatasetError
from ldprecover_experiments import AttackSpec, Cell, MethodSpec, Results, Study
from ldprecover_experiments.studies.cells import simulate_round
from ldprecover_experiments.studies.latex import latex_means
from ldprecover_experiments.studies.study import PRESETS

SMALL = 'users = 1000\ntrials = 1\nattacks = ["mga"]\nmethods = ["norm-sub"]\n'


def study(**keys: Any) -> Study:
    """Return a study of few users under MGA, with norm-sub on GRR unless stated otherwise."""
    small = {"users": 500, "trials": 1, "protocols": "grr", "attacks": "mga"}
    return Study.of(small | {"methods": "norm-sub"} | keys)


def test_defaults_are_the_papers_setting(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('attacks = "mga"\nmethods = "ldprecover"\n')
    result = Study.load(tmp_path / "mine.toml")
    assert (result.name, result.trials, result.seed) == ("mine", 10, 0)
    assert len(result.cells) == 30
    assert result.cells[0] == Cell("cities", "grr", AttackSpec(name="mga"), 0.05, 0.5, eta=0.2)
    assert result.users_by_data["cities"].n == 389_894


def test_every_value_meets_every_other_once() -> None:
    result = study(
        data=["cities", "fire"],
        protocols=["grr", "oue"],
        beta=[0.01, 0.05],
        epsilon=[0.5, 1.0],
        eta=[0.1, 0.2, 0.4],
        trials=3,
        questions=[1, 5],
        assign=["ticket", "client"],
        attacks=["none", "mga", {"name": "apa", "each": 4}, {"name": "apa2", "protocols": "oue"}],
    )
    # Without an attack there is no beta to vary.
    attacks = {"grr": 1 + 2 * 2, "oue": 1 + 3 * 2}
    assert len(result.cells) == len(set(result.cells)) == 2 * sum(attacks.values()) * 2 * 3 * 4 * 3
    assert {cell.beta for cell in result.cells if not cell.attack.malicious} == {0.0}


def test_every_attack_runs_against_every_method() -> None:
    """All but em, which takes minutes, on GRR, where some methods are refused, and on OLH.

    The two methods that take half a second run against one attack and none.
    """
    attacks = ["none", *(name for name in ATTACKS if name not in ("apa2", "cancel", "joint"))]
    slow = ["auto", "unmix"]
    methods = [name for name in METHODS if name not in ("em", *slow)]
    for each in (
        study(protocols=["grr", "olh"], attacks=["none", "mga"], methods=slow).run().outcomes
    ):
        assert np.isfinite(each.mse)
    result = study(protocols=["grr", "olh"], attacks=attacks, methods=methods).run()
    assert len(result.cells) == 2 * (len(ATTACKS) - 2)
    assert result.methods == ["genuine", "poisoned", *methods]
    refused = {outcome.method for outcome in result.outcomes if np.isnan(outcome.mse)}
    assert {"fiad", "diffstats"} <= refused  # under GRR
    assert not refused & {"norm-sub", "ldprecover", "k-means"}


def test_numbers_of_numpy_are_taken_and_truth_values_are_not() -> None:
    attacks = {"name": "apa", "targets": np.int64(5), "each": np.uint8(2)}
    of_numpy = study(users=np.int64(500), epsilon=[np.float32(0.5)], attacks=attacks)
    plain = study(users=500, epsilon=0.5, attacks={"name": "apa", "targets": 5, "each": 2})
    assert of_numpy.cells == plain.cells
    for name in ("users", "epsilon"):
        with pytest.raises(ParameterError, match=f"{name} must be"):
            study(**{name: np.True_})


def test_outcome_is_the_librarys_recovery_of_the_round() -> None:
    result = study(
        protocols="oue",
        users=5000,
        seed=7,
        methods=[
            {"method": "ldprecover", "targets": True, "name": "targets"},
            {"method": "ldprecover", "support": True, "eta": "true", "name": "right"},
        ],
    )
    (cell,) = result.cells
    round_ = simulate_round(cell, result.users_by_data["cities"], 7)
    outcomes = {outcome.method: outcome for outcome in result.run().outcomes}
    assert round_.targets is not None
    m = round_.malicious.n
    share = round_.malicious.counts(round_.oracle) / m
    requests = {
        "targets": RecoveryRequest("ldprecover", targets=round_.targets),
        "right": RecoveryRequest(
            "ldprecover", eta=m / 5000, malicious_model="custom", support=share
        ),
    }
    for name, request in requests.items():
        expected = recover(round_.oracle, round_.poisoned.frequencies, request).recovered
        assert outcomes[name].mse == mse(expected, round_.truth)
        assert outcomes[name].fg == frequency_gain(expected, round_.f_genuine, round_.targets)
    # With the true share and the true eta LDPRecover subtracts exactly what was added.
    assert outcomes["right"].malicious_mse == pytest.approx(0, abs=1e-20)


def test_study_without_an_attack_has_nothing_to_remove() -> None:
    """Under every protocol, whose tallies differ; a method may be told the support of nobody."""
    custom = {"method": "ldprecover", "support": True, "eta": 0.0}
    result = study(protocols=list(PROTOCOLS), attacks="none", methods=["norm-sub", custom]).run()
    for row in result.cells:
        genuine, poisoned, norm_sub, ldprecover = (outcome.mse for outcome in row.outcomes)
        assert genuine == poisoned
        assert ldprecover == pytest.approx(norm_sub)


@pytest.mark.parametrize("d", [2, 7, 40])
def test_methods_know_random_items_where_nobody_attacks(d: int) -> None:
    """At most half of them, others in each trial; nobody raised them, so they have no gain."""
    star = {"method": "ldprecover", "targets": True}
    items = {f"item {i}": 100 for i in range(d)}
    result = Study.of({"attacks": "none", "methods": star, "protocols": "oue"}, data=[items])
    chosen = [
        simulate_round(cell, next(iter(result.users_by_data.values())), 0).targets
        for cell in result.cells
    ]
    assert {len(each or ()) for each in chosen} == {min(10, d // 2)}
    assert len(set(chosen)) > 1
    assert [each.fg for row in result.run().cells for each in row.outcomes] == [None] * 30


def test_gain_grows_only_for_attackers_who_choose_their_question() -> None:
    """By k/(1 + (k - 1) β), and assigned it stays: to five standard errors, 1e-6 false alarms.

    A gain that is off by 7 % if assigned, or 1.5 % if chosen, is missed once in 100.
    """
    forms = {"questions": [1, 10], "assign": ["ticket", "client"], "users": 100_000, "trials": 20}
    result = study(data="geometric", protocols="oue", epsilon=1, **forms).run()
    one, same, assigned, chosen = (means["poisoned"].fg or 0 for means in result.means.values())
    assert one == same  # a form of one question
    assert assigned / one == pytest.approx(1, abs=0.05)
    assert chosen / one == pytest.approx(10 / 1.45, rel=0.01)
    last = result.table().rows[-1][:2]
    assert last == ["10", "mga (crafted), client"]


def test_cost_counts_the_reports_that_methods_read() -> None:
    law = "; all other counts are drawn from their law"
    many = study(attacks=["none", "mga"], trials=100_000).cost
    assert many.startswith("study: 200,000 cells, 200,000 recoveries, 2,600,000 reports to make")
    assert study(trials=2).cost == f"study: 2 cells, 2 recoveries, 52 reports to make{law}."
    assert "1,052 reports to make" in study(trials=2, methods="k-means").cost


def test_numbers_depend_on_the_seed_not_on_the_processes() -> None:
    keys: dict[str, Any] = {"protocols": ["grr", "oue"], "trials": 2}
    one, two, other = study(**keys).run(), study(**keys).run(jobs=2), study(seed=1, **keys).run()
    errors = [[outcome.mse for outcome in each.outcomes] for each in (one, two, other)]
    assert errors[0] == errors[1] != errors[2]
    assert one.cells == two.cells
    for jobs in (0, None, "1", True):
        with pytest.raises(ParameterError, match="jobs must be an integer from 1"):
            study().run(jobs)  # type: ignore[arg-type]


def test_data_files_are_relative_to_the_study_file(tmp_path: Path) -> None:
    pets = "\n".join(f"{i},{pet}" for i, pet in enumerate(["cat"] * 5 + ["dog"] * 3 + ["newt"]))
    (tmp_path / "pets.csv").write_text(f"owner,pet\n{pets}\n")
    (tmp_path / "mine.toml").write_text(
        'data = [{file = "pets.csv", column = "pet"}]\nattacks = [{name = "mga", targets = '
        '["newt"]}]\nmethods = "norm-sub"\n'
    )
    result = Study.load(tmp_path / "mine.toml")
    assert result.users_by_data["pets.csv"].counts.tolist() == [5, 3, 1]
    assert simulate_round(result.cells[0], result.users_by_data["pets.csv"], 0).targets == (2,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("protocls = 1", "there is no key 'protocls' of a study; did you mean 'protocols'?"),
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
        ('methods = ["norm-sub", "norm-sub"]', "methods has norm-sub twice"),
        (
            'methods = [{ method = "fiad", name = "poisoned" }]',
            "a method cannot be called 'poisoned'",
        ),
        ("methods = []", "methods must name at least one"),
        (
            'attacks = [{name = "mga", targets = 102}]',
            "cities has 102 items, and attacks need fewer targets (10 by default)",
        ),
        ('attacks = [{name = "mga", targets = ["Oz"]}]', "no item is labelled 'Oz'"),
        (
            'attacks = [{name = "rpa", model = "sampled"}]',
            "the model of rpa must be one of crafted, input",
        ),
        ('attacks = [{name = "apa2"}]\nprotocols = ["grr"]', "the attack apa2 on grr reports: "),
        (
            (
                'attacks = [{name = "mga", model = "one-hot"}]\nmethods = ["k-means"]\nprotocols = '
                '"olh"'
            ),
            "no OLH report",
        ),
        ("beta = 0.95", "beta must be a number from 0 to 0.9"),
        ('data = ["cities", "cities"]', "data has cities twice"),
        ('protocols = ["ss", "ss"]', "protocols has ss twice"),
        (
            'attacks = [{name = "mga", protocols = ["grr", "sue"]}]',
            "sue, of the attack mga, is not in protocols",
        ),
        ("epsilon = [1, 0.5, 1.0]", "epsilon has 1.0 twice"),
        ('attacks = ["none", "mga", {name = "mga"}]', "attacks has mga, crafted twice"),
        (
            "trials = 1000000000",
            "a study has at most 1,000,000 cells: give fewer trials",
        ),
        ('eta = "auto"', "eta must be a valid number, not 'auto'"),
        ("data = [{column = 'pet'}]", "data needs the key 'file'"),
        ("[", "is not a TOML file"),
    ],
)
def test_rejects_invalid_study(tmp_path: Path, text: str, message: str) -> None:
    stated = {part.split(" =")[0] for part in text.splitlines()}
    rest = [line for line in SMALL.splitlines() if line.split(" =")[0] not in stated]
    (tmp_path / "mine.toml").write_text("\n".join([*rest, text]))
    with pytest.raises(ParameterError) as error:
        Study.load(tmp_path / "mine.toml").cells  # noqa: B018  some errors depend on the data
    assert message in str(error.value)


def test_rejects_missing_files(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"cannot read .*nowhere\.toml: No such file"):
        Study.load(tmp_path / "nowhere.toml")
    with pytest.raises(DatasetError, match=r"there is no file .*nowhere\.csv"):
        study(data="nowhere.csv").cells  # noqa: B018


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "mga"),
        ({"targets": 5, "model": "input"}, 'mga {"targets": 5}'),
        ({"name": "aa", "kind": "peaked", "attackers": 5, "size": 3}, 'aa-peaked-x5 {"size": 3}'),
        ({"name": "mla", "item": "New York, NY"}, 'mla {"item": "New York, NY"}'),
    ],
)
def test_attack_has_a_text_and_is_its_json(fields: dict[str, Any], text: str) -> None:
    attack = AttackSpec(**{"name": "mga"} | fields)
    assert str(attack) == text
    assert AttackSpec.model_validate_json(attack.model_dump_json(exclude_none=True)) == attack


@pytest.fixture(scope="module")
def results() -> Results:
    """Two settings, one of them with targets; a method that refuses GRR; a name that is markup."""
    methods = (MethodSpec(method="norm-sub", name="<b>norm</b>"), MethodSpec(method="fiad"))
    attacks = (AttackSpec(name="mga"), AttackSpec(name="manip"))
    study = Study(
        name="<i>x", methods=methods, attacks=attacks, protocols=("grr",), users=1000, trials=2
    )
    return study.run()


def test_results_come_back_from_json(results: Results) -> None:
    text = results.to_json()
    again = Results.from_json(text)
    assert again.to_json() == text
    assert again.means.keys() == results.means.keys()
    rows = json.loads(text)["cells"]
    assert {row["cell"]["attack"]["name"] for row in rows} == {"mga", "manip"}
    assert all(row["outcomes"][-1]["mse"] is None for row in rows)  # fiad refuses GRR


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
    (cell,) = (cell for cell in results.means if cell.attack.name == "mga")
    assert mean == pytest.approx(results.means[cell]["poisoned"].mse)
    assert frame[frame.method == "fiad"].mse.isna().all()
    means = results.to_frame(means=True)
    written = pd.read_csv(StringIO(results.to_csv()))
    shown = ["attack", "method", "trials", "mse", "mse_standard_error"]
    pd.testing.assert_frame_equal(written[shown], means[shown], check_dtype=False, rtol=1e-3)
    errors = frame.groupby(["attack", "method"], sort=False).mse.sem()
    assert means.mse_standard_error.tolist() == pytest.approx(errors.tolist(), nan_ok=True)


def test_attack_without_a_report_in_the_question_gains_nothing() -> None:
    """Its trials count: otherwise the mean gain of assigned questions is too large."""
    result = study(protocols="oue", attacks="mga", questions=20, users=100, trials=20).run()
    gains = [each.fg for each in result.outcomes if each.method == "poisoned"]
    assert 0.0 in gains
    assert None not in gains


def test_means_have_the_probability_of_an_attack() -> None:
    results = study(protocols="oue", attacks="mga", methods="unmix", users=20_000, trials=2).run()
    (means,) = results.means.values()
    outcomes = [each for each in results.outcomes if each.method == "unmix"]
    probabilities = [each.attack_probability or 0.0 for each in outcomes]
    assert min(probabilities) > 0.9
    assert means["unmix"].attack_probability == pytest.approx(sum(probabilities) / 2)
    assert means["poisoned"].attack_probability is None


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
    gains = results.table("fg")
    assert [(row[0], row[1], row[-1]) for row in gains.rows] == [("mga (crafted)", "0.00", "")]


def test_notebook_shows_tables_with_escaped_names(results: Results) -> None:
    html = results._repr_html_()
    assert html.count("<table>") == 2
    assert "&lt;b&gt;norm&lt;/b&gt;" in html
    assert "&lt;i&gt;x" in html
    assert not {"<b>", "<i>"} & {*re.findall("<.>", html)}


def test_figure_has_a_panel_for_each_protocol_and_line() -> None:
    """Lines of each attack over the parameter with most values, otherwise rows of dots."""
    keys: dict[str, Any] = {"protocols": ["grr", "oue"], "epsilon": [1, 2]}
    lines = study(beta=[0.01, 0.05, 0.1], **keys).run().plot("fg", wide=True)
    panels = [panel.get_title() for panel in lines.axes]
    titles = [f"cities, {name}, ε {epsilon}" for name in ("GRR", "OUE") for epsilon in (1, 2)]
    assert panels == [f"{title}, mga (crafted)" for title in titles]
    assert (lines.get_figwidth(), lines.axes[0].get_yscale()) == (7, "linear")


def test_dots_are_told_apart_and_labels_do_not_overlap(results: Results) -> None:
    figure = results.plot()
    figure.draw_without_rendering()
    (panel,) = figure.axes
    dots = [line for line in panel.lines if line.get_marker() != "None"]
    assert (
        len({line.get_marker() for line in dots}) == len({line.get_color() for line in dots}) == 4
    )
    assert figure.get_figwidth() == 3.5
    assert panel.get_xscale() == "log"  # values span decades
    assert all(label.get_window_extent().x0 >= 0 for label in panel.get_yticklabels())
    for axis in (panel.xaxis, panel.yaxis):
        boxes = [label.get_window_extent() for label in axis.get_ticklabels()]
        assert not any(a.overlaps(b) for a, b in pairwise(boxes))


def test_latex_is_a_tabular_of_booktabs() -> None:
    methods = [{"method": "norm-sub", "name": "a&b_%$#{}\\^~<|\n"}, "ldprecover", "fiad"]
    table = study(name="50%\n\\x", trials=3, methods=methods).run().table()
    comment, begin, unit, header, row, *end = table.latex().splitlines()
    assert comment.startswith(r"% 50\% \textbackslash{}x: MSE")
    assert begin == r"\begin{tabular}{lrrrrr} \toprule"
    span = r"& \multicolumn{5}{c}{MSE in $10^{-3}$, mean $\pm$ standard error}"
    assert unit == rf"{span} \\ \cmidrule{{2-6}}"
    special = r"a\&b\_\%\$\#\{\}\textbackslash{}\textasciicircum{}\textasciitilde{}\textless{}"
    assert header.split(" & ")[3] == rf"{special}\textbar{{}}"
    number = r"\d+(\.\d+)? \\pm \d+(\.\d+)?"
    cells = row.removesuffix(r" \\").split(" & ")
    assert cells[5] == "refused"
    assert all(re.fullmatch(rf"\$({number}|\\mathbf{{{number}}})\$", cell) for cell in cells[1:5])
    assert end == [r"\bottomrule", r"\end{tabular}"]


def test_bold_is_the_best_within_its_error() -> None:
    row = [(0.1, 0.0), (-2.0, 0.5), (2.4, 0.1), (2.6, 0.9), (None, None), (math.nan, None)]
    shown = latex_means(row, 0, [False, *[True] * 5])
    bold = [r"$\mathbf{-2.00 \pm 0.50}$", r"$\mathbf{2.40 \pm 0.10}$"]
    assert shown == [r"$0.10 \pm 0.00$", *bold, r"$2.60 \pm 0.90$", "--", "refused"]


def test_number_without_error_keeps_two_digits_below_a_large_unit() -> None:
    shown = latex_means([(3.7e-3, None), (71.904, None), (0.0, None)], -1, 3 * [False])
    assert shown == ["$0.037$", "$719.04$", "$0.00$"]


def test_rejects_unknown_number(results: Results) -> None:
    with pytest.raises(ParameterError, match="number must be"):
        results.plot("rmse")


@pytest.mark.parametrize("name", PRESETS)
def test_shipped_study_loads_by_name(name: str) -> None:
    loaded = Study.load(name)
    assert loaded.name == name
    assert loaded.cells


def test_file_comes_before_a_shipped_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("unmix").write_text('methods = "mle"\nattacks = "none"\n')
    assert [spec.name for spec in Study.load("unmix").methods] == ["mle"]
    Path("forms").mkdir()  # such as the results of an interrupted run
    assert Study.load("forms").questions == (1, 2, 5, 10, 20)
