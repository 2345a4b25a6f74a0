"""LDPRecover, LDPRecover* and Norm-Sub: the printed equations, their edges, and what the methods
say of themselves.
"""

import re
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from ldprecover import (
    GRR,
    OLH,
    OUE,
    FrequencyOracle,
    ParameterError,
    RecoveryRequest,
    project_simplex,
    recover,
)
from ldprecover.recovery import METHODS, RecoveryInputs

SAME = "no malicious mass was removed"
SUBTRACTING = (
    "ldprecover",
    "norm-sub",
)  # whose result is the projection of what they state as genuine


def poisoned_of(oracle: FrequencyOracle) -> st.SearchStrategy[np.ndarray]:
    """Return estimates of any counts at all: every value a round's estimate can take."""
    d = oracle.domain_size
    if oracle.protocol == "grr":  # each report supports one item
        counts = st.lists(st.integers(0, 50), min_size=d, max_size=d).filter(any).map(np.array)
        return counts.map(lambda c: oracle.estimate(c, int(c.sum())))
    return st.lists(st.integers(0, 1000), min_size=d, max_size=d).map(
        lambda c: oracle.estimate(c, 1000)
    )


SMALL = [
    GRR(0.5, 2),
    GRR(0.5, 12),
    GRR(3, 5),
    OUE(0.5, 2),
    OUE(0.5, 12),
    OUE(2, 5),
    OLH(0.5, 2, 3),
    OLH(1, 12, 4),
]
small_oracles = pytest.mark.parametrize(
    "oracle", SMALL, ids=lambda o: f"{o.protocol}-d{o.domain_size}"
)


def algorithm_1(f_z: np.ndarray, s: float, eta: float) -> np.ndarray:
    """Return Algorithm 1 line by line (paper, V-D), D1 not empty."""
    d0, d1 = [v for v, f in enumerate(f_z) if f <= 0], [v for v, f in enumerate(f_z) if f > 0]
    f_y = dict.fromkeys(d0, 0.0) | {v: s / len(d1) for v in d1}
    f_x = {v: (1 + eta) * f_z[v] - eta * f_y[v] for v in range(len(f_z))}
    kept = set(f_x)
    while True:
        mu = (sum(f_x[v] for v in kept) - 1) / len(kept)
        refined = {v: f_x[v] - mu for v in kept}
        if min(refined.values()) >= 0:
            return np.array([refined.get(v, 0.0) for v in range(len(f_z))])
        kept = {v for v in kept if refined[v] >= 0}


@small_oracles
@given(data=st.data(), eta=st.floats(0, 10))
def test_ldprecover_is_algorithm_1(
    oracle: FrequencyOracle, data: st.DataObject, eta: float
) -> None:
    f_z = data.draw(poisoned_of(oracle).filter(lambda f: (f > 0).any()))
    s = (1 - oracle.q * oracle.domain_size) / (oracle.p - oracle.q)
    result = recover(oracle, f_z, RecoveryRequest(eta=eta))
    assert result.malicious_sum == s
    assert result.malicious.sum() == pytest.approx(s)
    np.testing.assert_allclose(result.recovered, algorithm_1(f_z, s, eta), rtol=0, atol=1e-10)


@small_oracles
@given(data=st.data(), eta=st.floats(0, 1))
def test_no_solver_finds_a_better_answer_to_the_papers_problem(
    oracle: FrequencyOracle, data: st.DataObject, eta: float
) -> None:
    """Minimise |f' - f~_X~| over the simplex (paper, V-D) with SLSQP, with and without targets."""
    f_z = data.draw(poisoned_of(oracle))
    targets = data.draw(st.lists(st.integers(0, oracle.domain_size - 1), max_size=1))
    result = recover(oracle, f_z, RecoveryRequest(eta=eta, targets=targets))
    shifted = (
        result.genuine - result.genuine.max()
    )  # the solver starts near, the problem is the same
    d = oracle.domain_size
    solved = minimize(
        lambda y: ((y - shifted) ** 2).sum(),
        np.full(d, 1 / d),
        jac=lambda y: 2 * (y - shifted),
        bounds=[(0, None)] * d,
        constraints={"type": "eq", "fun": lambda y: y.sum() - 1, "jac": lambda y: np.ones_like(y)},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    mine = ((result.recovered - shifted) ** 2).sum()
    assert mine <= solved.fun * (1 + 1e-9) + 1e-9


@small_oracles
@pytest.mark.parametrize("method", SUBTRACTING)
@given(data=st.data(), eta=st.floats(0, 10), model=st.sampled_from(["paper", "exact"]))
def test_every_recovery_is_a_distribution_made_as_it_says(
    oracle: FrequencyOracle, method: str, data: st.DataObject, eta: float, model: str
) -> None:
    d = oracle.domain_size
    f_z = data.draw(poisoned_of(oracle))
    targets = data.draw(
        st.lists(st.integers(0, d - 1), max_size=2 * d).filter(lambda t: len(set(t)) < d)
    )
    result = recover(
        oracle, f_z, RecoveryRequest(method, eta=eta, targets=targets, malicious_model=model)
    )
    assert result.method == method
    assert (result.recovered >= 0).all()
    assert result.recovered.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_array_equal(result.poisoned, f_z)
    used = result.eta
    assert used in (0, eta)
    np.testing.assert_allclose(
        result.genuine, (1 + used) * f_z - used * result.malicious, rtol=1e-12, atol=1e-12
    )
    np.testing.assert_array_equal(result.recovered, project_simplex(result.genuine))
    assert result.notes
    if any(SAME in note for note in result.notes):
        np.testing.assert_allclose(
            result.recovered, project_simplex((1 + eta) * f_z), rtol=0, atol=1e-8
        )
    # Relabelling the items relabels the recovery.
    order = np.arange(d)[::-1]
    mirrored = recover(
        oracle,
        f_z[order],
        RecoveryRequest(
            method, eta=eta, targets=[d - 1 - t for t in targets], malicious_model=model
        ),
    )
    np.testing.assert_allclose(mirrored.recovered, result.recovered[order], rtol=0, atol=1e-12)


@given(data=st.data(), eta=st.floats(0, 10), d=st.integers(2, 120))
def test_ldprecover_on_grr_projects_the_scaled_estimates(
    data: st.DataObject, eta: float, d: int
) -> None:
    """S = 1 whatever is sent, so the positive estimates sum to 1 or more and S cannot matter."""
    oracle = GRR(0.5, d)
    result = recover(oracle, data.draw(poisoned_of(oracle)), RecoveryRequest(eta=eta))
    np.testing.assert_allclose(
        result.recovered, project_simplex((1 + eta) * result.poisoned), rtol=0, atol=1e-12
    )
    assert any(SAME in note for note in result.notes)


@small_oracles
@given(data=st.data(), eta=st.floats(0, 10))
def test_malicious_sum_has_no_effect_on_large_positive_estimates(
    oracle: FrequencyOracle, data: st.DataObject, eta: float
) -> None:
    """(1+eta) sum_D1 f~_Z >= 1 and (1+eta) sum_D1 f~_Z - eta S >= 1 zero D0 either way; D1 is
    shifted as a whole.
    """
    f_z = data.draw(poisoned_of(oracle).filter(lambda f: (f > 0).any()))
    kept = (1 + eta) * f_z[f_z > 0].sum()
    result = recover(oracle, f_z, RecoveryRequest(eta=eta))
    if min(kept, kept - eta * oracle.malicious_sum) >= 1:
        np.testing.assert_allclose(
            result.recovered, project_simplex((1 + eta) * f_z), rtol=0, atol=1e-10
        )
        assert any(SAME in note for note in result.notes)


def test_malicious_sum_matters_for_small_positive_estimates() -> None:
    """One-hot OUE reports push nearly every estimate below zero: one item is left in D1 and takes
    all.
    """
    oracle = OUE(0.5, 20)
    f_z = np.full(20, -0.3)
    f_z[4], f_z[9] = 0.02, -0.01
    result = recover(oracle, f_z, RecoveryRequest(eta=0.2))
    assert result.recovered[4] == 1
    assert project_simplex(1.2 * f_z)[9] > 0.2
    assert not any(SAME in note for note in result.notes)


@pytest.mark.parametrize(
    "oracle", [GRR(0.5, 6), OUE(0.5, 6), OLH(0.5, 6, 3)], ids=lambda o: o.protocol
)
def test_where_no_estimate_is_positive_nothing_is_subtracted(oracle: FrequencyOracle) -> None:
    f_z = np.array([-0.5, -0.1, 0.0, -2.0, -0.3, -0.1])
    result = recover(oracle, f_z)
    assert not result.malicious.any()
    np.testing.assert_allclose(result.recovered, project_simplex(1.2 * f_z), rtol=0, atol=1e-15)
    assert any("no estimate is positive" in note for note in result.notes)


def test_two_items_are_recovered_by_hand() -> None:
    """GRR with d = 2, as for Harmony's mean: f~_Z = (1.2, -0.2), S = 1 on item 0 alone."""
    result = recover(GRR(0.5, 2), [1.2, -0.2], RecoveryRequest(eta=0.5))
    assert result.malicious == pytest.approx([1, 0])
    assert result.genuine == pytest.approx([1.3, -0.3])
    assert result.recovered.tolist() == [1, 0]
    balanced = recover(GRR(0.5, 2), [0.7, 0.3], RecoveryRequest(eta=0.5))
    assert balanced.malicious == pytest.approx([0.5, 0.5])
    assert balanced.recovered == pytest.approx([0.8, 0.2])  # 1.05 - 0.25 and 0.45 - 0.25


def test_two_items_one_of_them_a_target() -> None:
    """OUE with d = 2 is small enough for S > 1 at large epsilon; the printed and exact forms by
    hand.
    """
    oracle = OUE(2, 2)
    p, q = oracle.p, oracle.q
    paper = recover(oracle, [0.9, 0.2], RecoveryRequest(eta=0.1, targets=[0]))
    assert paper.malicious == pytest.approx([1 / (p - q), -2 * q / (p - q)])
    exact = recover(
        oracle, [0.9, 0.2], RecoveryRequest(eta=0.1, targets=[0], malicious_model="exact")
    )
    assert exact.malicious == pytest.approx([(1 - q) / (p - q), -q / (p - q)])


@small_oracles
@given(data=st.data(), eta=st.floats(0, 10))
def test_eta_zero_is_norm_sub(oracle: FrequencyOracle, data: st.DataObject, eta: float) -> None:
    f_z = data.draw(poisoned_of(oracle))
    expected = project_simplex(f_z)
    targeted = recover(oracle, f_z, RecoveryRequest(eta=0, targets=[0]))
    assert (
        targeted.recovered.tolist()
        == recover(oracle, f_z, RecoveryRequest(eta=0)).recovered.tolist()
        == expected.tolist()
    )
    plain = recover(oracle, f_z, RecoveryRequest("norm-sub", eta=eta, targets=[1]))
    assert plain.recovered.tolist() == expected.tolist()
    assert (plain.eta, plain.targets) == (0, ())
    assert not plain.malicious.any()
    assert (
        plain.notes[-1] == f"norm-sub does not use {'targets' if eta == 0.2 else 'eta, targets'}."
    )


@pytest.mark.parametrize(
    "oracle", [GRR(0.5, 102), OUE(0.5, 102), OLH(0.5, 102, 3)], ids=lambda o: o.protocol
)
@given(
    targets=st.lists(st.integers(0, 101), min_size=1, max_size=101, unique=True).filter(
        lambda t: len(t) < 102
    )
)
def test_targeted_models_sum_to_s_with_their_own_totals(
    oracle: FrequencyOracle, targets: list[int]
) -> None:
    d, r, q, gap = 102, len(targets), oracle.q, oracle.p - oracle.q
    others = [v for v in range(d) if v not in targets]
    for model, others_total in (("paper", -q * d / gap), ("exact", -q * (d - r) / gap)):
        result = recover(
            oracle, np.zeros(d), RecoveryRequest(targets=targets, malicious_model=model)
        )
        malicious = result.malicious
        assert malicious.sum() == pytest.approx(result.malicious_sum, abs=1e-9)
        assert malicious[others].sum() == pytest.approx(others_total)
        assert np.ptp(malicious[others]) == np.ptp(malicious[targets]) == 0
        assert result.targets == tuple(sorted(targets))


@pytest.mark.parametrize(
    ("oracle", "excess"),
    [(GRR(0.5, 102), "1.11"), (OUE(0.5, 102), "5.19"), (OLH(0.5, 102, 3), "4.7")],
    ids=lambda value: getattr(value, "protocol", value),
)
def test_note_states_the_excess_of_the_printed_model(oracle: FrequencyOracle, excess: str) -> None:
    """1 + r q d/(d - r) with r = 10: the share that the printed total over D' adds to the targets'
    lead.
    """
    by_hand = 1 + 10 * oracle.q * 102 / 92
    assert f"{by_hand:.3g}" == excess
    printed = recover(oracle, np.full(102, 1 / 102), RecoveryRequest(targets=range(10)))
    assert any(f"{excess} times" in note for note in printed.notes)
    exact = recover(
        oracle, np.full(102, 1 / 102), RecoveryRequest(targets=range(10), malicious_model="exact")
    )
    assert not any("times" in note and "printed" in note for note in exact.notes)


def test_exact_model_inverts_a_noiseless_attack(
    oracle: FrequencyOracle,
) -> None:
    """f~_Z = (f + eta f~_Y)/(1 + eta) with f~_Y its expectation, and the true eta, is undone to
    rounding.
    """
    d = oracle.domain_size
    f = 1 / np.arange(1, d + 1)
    f /= f.sum()
    support = np.zeros(d)
    support[-1] = 1
    f_y = (support - oracle.q) / (oracle.p - oracle.q)
    result = recover(
        oracle,
        (f + 0.05 * f_y) / 1.05,
        RecoveryRequest(eta=0.05, targets=[d - 1], malicious_model="exact"),
    )
    tolerance = 1e-12 * max(1, np.abs(f_y).max())
    np.testing.assert_allclose(result.recovered, f, rtol=0, atol=tolerance)
    np.testing.assert_allclose(result.malicious, f_y, rtol=1e-12)


def test_without_targets_both_models_are_the_same_and_it_is_said() -> None:
    oracle = OUE(0.5, 8)
    f_z = np.linspace(-1, 1, 8)
    paper, exact = (
        recover(oracle, f_z, RecoveryRequest(malicious_model=model)) for model in ("paper", "exact")
    )
    assert paper.recovered.tolist() == exact.recovered.tolist()
    assert any("the malicious models paper and exact are the same" in note for note in exact.notes)


def test_repeated_targets_merge_and_come_back_in_order() -> None:
    targets: list[Any] = [5, 2, np.int64(5), 2]
    result = recover(OUE(1, 6), np.zeros(6), RecoveryRequest(targets=targets))
    assert result.targets == (2, 5)
    assert all(type(target) is int for target in result.targets)


@pytest.mark.parametrize("bad", [[6], [-1], [1.0], ["1"], [True], [None], "12", [np.nan], [2**70]])
def test_targets_are_items_of_the_round(bad: Any) -> None:
    with pytest.raises(ParameterError, match=r"every target must be an integer (from 0 to 5|of)"):
        recover(OUE(1, 6), np.zeros(6), RecoveryRequest(targets=bad))


@pytest.mark.parametrize("method", SUBTRACTING)
def test_every_item_a_target_is_refused(method: str) -> None:
    with pytest.raises(ParameterError, match="leave out at least one of the 6 items"):
        recover(OUE(1, 6), np.zeros(6), RecoveryRequest(method, targets=[*range(6), 0]))
    assert recover(
        OUE(1, 6), np.zeros(6), RecoveryRequest(method, targets=range(5))
    ).recovered.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "eta", [-0.01, 10.01, np.nan, np.inf, -np.inf, "0.2", True, None, 1j, 10**400, np.ones(2)]
)
def test_eta_is_a_number_from_0_to_10(eta: Any) -> None:
    with pytest.raises(ParameterError, match="eta must be"):
        RecoveryRequest(eta=eta)


@pytest.mark.parametrize(
    "frequencies",
    [
        *(
            [0, np.nan, 0],
            [np.inf, 0, 0],
            [0, 0, -np.inf],
            [0, 0],
            [0] * 4,
            [[0, 0, 0]],
            ["a", "b", "c"],
            [None] * 3,
            1,
        ),
        *([[0], [0, 0], [0]], [0, 1j, 0], np.array([0, 1j, 0]), None),
    ],
)
def test_frequencies_are_finite_and_of_the_rounds_items(frequencies: Any) -> None:
    with pytest.raises(ParameterError, match="frequencies must be"):
        recover(OUE(1, 3), frequencies)


def test_frequencies_that_overflow_are_refused_not_returned() -> None:
    with pytest.raises(ParameterError, match="must be finite"):
        recover(OUE(1, 3), [1.7e308, 0, 0], RecoveryRequest(eta=10))


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ParameterError, match=r"method must be one of ldprecover, norm-sub, .*, not 'magic'"
    ):
        recover(OUE(1, 3), [0, 0, 0], "magic")
    with pytest.raises(
        ParameterError, match=r"malicious_model must be one of paper, exact, .*, not 'magic'"
    ):
        recover(OUE(1, 3), [0, 0, 0], RecoveryRequest(malicious_model="magic"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(
            ("method", ["norm-sub"]),
            ("method", None),
            ("malicious_model", ["paper"]),
            ("malicious_model", None),
        ),
        *(("targets", None), ("targets", 0), ("options", 3), ("options", []), ("options", "alpha")),
    ],
)
def test_a_field_of_another_type_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=f"{field} must be"):
        recover(OUE(1, 3), [0, 0, 0], RecoveryRequest(**{field: value}))


def test_the_numbers_of_numpy_are_numbers() -> None:
    oracle, f_z = OUE(1, 6), np.linspace(-0.2, 0.5, 6)
    plain = recover(oracle, f_z, RecoveryRequest(eta=0.5, targets=[2]), n=1000)
    half: Any = np.float32(0.5)
    thousand: Any = np.int64(1000)
    two: Any = np.int8(2)
    alpha: Any = np.float32(1)
    nines: list[Any] = [9, np.uint16(9)]
    result = recover(
        oracle,
        f_z.astype(object),
        RecoveryRequest(eta=half, targets=np.array([2], np.uint8)),
        n=thousand,
    )
    assert result.recovered.tolist() == plain.recovered.tolist()
    assert (type(result.eta), result.eta) == (float, 0.5)
    assert recover(oracle, f_z, RecoveryRequest(eta=two)).eta == 2
    cut = [
        recover(oracle, f_z, RecoveryRequest("base-cut", options={"alpha": alpha}), n=n)
        for n in nines
    ]
    assert cut[0].recovered.tolist() == cut[1].recovered.tolist()


SUPPORT = np.full(9, 0.5)


@pytest.mark.parametrize(
    ("method", "fields", "said"),
    [
        ("ldprecover", {"eta": 0.1, "targets": [1], "malicious_model": "exact"}, None),
        ("ldprecover", {"malicious_model": "custom", "support": SUPPORT}, None),
        ("ldprecover", {"support": SUPPORT}, "support under the malicious model paper"),
        (
            "ldprecover",
            {"targets": [1], "malicious_model": "exact", "support": SUPPORT},
            "support under .* exact",
        ),
        (
            "ldprecover",
            {"targets": [1], "malicious_model": "custom", "support": SUPPORT},
            "targets under .* custom",
        ),
        ("norm-sub", {"malicious_model": "exact"}, "malicious_model"),
        (
            "norm-sub",
            {"eta": 0.1, "targets": [1], "malicious_model": "custom", "support": SUPPORT},
            "eta, .*, support",
        ),
        ("mle", {"eta": "auto"}, "eta"),
        ("fiad", {"eta": 0.1, "targets": [1]}, "eta, targets"),
        ("diffstats", {"eta": "auto", "targets": [1]}, "eta, targets"),
        ("k-means", {"eta": 0.1, "targets": [1]}, "eta, targets"),
        ("ldprecover-km", {"eta": 0.1}, None),
        ("ldprecover-km", {"eta": 0.1, "targets": [1]}, "targets"),
        ("detection-all", {"targets": [1]}, None),
        ("detection-all", {"eta": 0.1, "targets": [1]}, "eta"),
        ("conditional-probability", {"eta": 0.1, "targets": [1]}, None),
    ],
)
def test_unused_assumptions_are_noted_and_change_nothing(
    method: str, fields: dict[str, Any], said: str | None
) -> None:
    oracle, rng = OUE(1, 9), np.random.default_rng(1)
    reports = oracle.perturb(rng.integers(0, 9, 400), rng)
    f_z = oracle.estimate(oracle.support_counts(reports), 400)
    result = recover(oracle, f_z, RecoveryRequest(method, **fields), reports=reports)
    notes = [note for note in result.notes if "does not use" in note]
    if said is None:
        assert notes == []
        return
    assert len(notes) == 1
    assert re.fullmatch(f"{method} does not use {said}\\.", notes[0])
    assert "targets" not in notes[0] or result.targets == ()


def test_the_default_assumptions_are_in_vain_nowhere() -> None:
    oracle = OUE(1, 9)
    for name in METHODS:
        if METHODS[name].needs <= {"counts", "n"}:
            result = recover(oracle, np.linspace(-0.2, 0.5, 9), name, n=100)
            assert not any("does not use" in note for note in result.notes)


def test_recovery_is_frozen_and_shares_no_memory_with_its_input() -> None:
    f_z = np.array([0.5, 0.6, -0.1])
    result = recover(OUE(1, 3), f_z, "norm-sub")
    f_z[:] = 0
    assert result.poisoned.tolist() == result.genuine.tolist() == [0.5, 0.6, -0.1]
    assert not np.shares_memory(result.poisoned, result.genuine)
    with pytest.raises(FrozenInstanceError):
        result.eta = 1  # type: ignore[misc]


def test_every_method_names_itself_and_what_it_uses() -> None:
    fields = {*RecoveryRequest.__dataclass_fields__, *RecoveryInputs.__dataclass_fields__}
    for name, method in METHODS.items():
        assert method.name == name
        assert method.summary
        assert method.uses <= fields - {"method", "oracle", "poisoned", "request"}


@pytest.mark.parametrize("method", SUBTRACTING)
def test_changing_what_a_method_does_not_use_changes_nothing(method: str) -> None:
    f_z = np.array([0.5, 0.3, -0.1, 0.2])
    base = recover(OUE(1, 4), f_z, RecoveryRequest(method, targets=[3]))
    changes: dict[str, Any] = {"eta": 0.9, "targets": [0], "malicious_model": "exact"}
    for field, value in changes.items():
        other = recover(
            OUE(1, 4), f_z, RecoveryRequest(method, **({"targets": [3]} | {field: value}))
        )
        assert (other.genuine.tolist() != base.genuine.tolist()) == (field in METHODS[method].uses)


@pytest.mark.parametrize(
    ("oracle", "s"),
    [
        (GRR(0.5, 102), 1),
        (OUE(0.5, 102), -306.30),
        (OLH(0.5, 102, 3), -278.41),
        (GRR(0.5, 490), 1),
        (OUE(0.5, 490), -1502.50),
        (OLH(0.5, 490, 3), -1369.56),
    ],
    ids=lambda value: (
        f"{value.protocol}-d{value.domain_size}"
        if isinstance(value, FrequencyOracle)
        else str(value)
    ),
)
def test_the_malicious_sum_at_the_papers_settings(oracle: FrequencyOracle, s: float) -> None:
    """(1 - qd)/(p - q), to the second decimal."""
    assert oracle.malicious_sum == pytest.approx(s, abs=0.005)
    assert recover(oracle, np.zeros(oracle.domain_size)).malicious_sum == oracle.malicious_sum
