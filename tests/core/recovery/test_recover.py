"""LDPRecover, LDPRecover* and Norm-Sub: the printed equations, their edges, and what the methods
say of themselves.
"""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldprecover import (
    GRR,
    OLH,
    OUE,
    FrequencyOracle,
    ParameterError,
    Recovery,
    RecoveryRequest,
    Tally,
    project_simplex,
    recover,
)
from ldprecover.recovery import METHODS

SAME = "the attack was not removed"


def poisoned_of(oracle: FrequencyOracle) -> st.SearchStrategy[np.ndarray]:
    """Return estimates of any counts at all: every value a round's estimate can take."""
    d = oracle.domain_size
    if oracle.protocol == "grr":  # each report supports one item
        counts = st.lists(st.integers(0, 50), min_size=d, max_size=d).filter(any).map(np.array)
        return counts.map(lambda c: oracle.estimate(c, int(c.sum())))
    return st.lists(st.integers(0, 1000), min_size=d, max_size=d).map(
        lambda c: oracle.estimate(c, 1000)
    )


def ldprecover(oracle: FrequencyOracle, frequencies: Any, **fields: Any) -> Recovery:
    return recover(oracle, frequencies, RecoveryRequest("ldprecover", **fields))


SMALL = [GRR(0.5, 2), GRR(0.5, 12), OUE(2, 5), OLH(1, 12, 4)]
small_oracles = pytest.mark.parametrize(
    "oracle", SMALL, ids=lambda o: f"{o.protocol}-d{o.domain_size}"
)


def algorithm_1(f_z: np.ndarray, s: float, eta: float) -> np.ndarray:
    """Return Algorithm 1 line by line (paper, V-D), D1 not empty."""
    d0, d1 = [v for v, f in enumerate(f_z) if f <= 0], [v for v, f in enumerate(f_z) if f > 0]
    f_y = dict.fromkeys(d0, 0.0) | {v: s / len(d1) for v in d1}
    f_x = {v: (1 + eta) * f_z[v] - eta * f_y[v] for v in range(len(f_z))}
    remaining = set(f_x)
    while True:
        mu = (sum(f_x[v] for v in remaining) - 1) / len(remaining)
        refined = {v: f_x[v] - mu for v in remaining}
        if min(refined.values()) >= 0:
            return np.array([refined.get(v, 0.0) for v in range(len(f_z))])
        remaining = {v for v in remaining if refined[v] >= 0}


@small_oracles
@given(data=st.data(), eta=st.floats(0, 10))
def test_ldprecover_is_algorithm_1(
    oracle: FrequencyOracle, data: st.DataObject, eta: float
) -> None:
    f_z = data.draw(poisoned_of(oracle).filter(lambda f: (f > 0).any()))
    s = (1 - oracle.q * oracle.domain_size) / (oracle.p - oracle.q)
    result = ldprecover(oracle, f_z, eta=eta)
    assert result.malicious_sum == s
    assert result.malicious.sum() == pytest.approx(s)
    np.testing.assert_allclose(result.recovered, algorithm_1(f_z, s, eta), rtol=0, atol=1e-10)


@small_oracles
@given(data=st.data(), eta=st.floats(0, 10))
def test_malicious_sum_has_no_effect_on_large_positive_estimates(
    oracle: FrequencyOracle, data: st.DataObject, eta: float
) -> None:
    """If (1+eta) sum_D1 f~_Z and this less eta S are at least 1, D0 becomes zero either way, and
    D1 is shifted as a whole. GRR always fulfils it: its S is 1.
    """
    f_z = data.draw(poisoned_of(oracle).filter(lambda f: (f > 0).any()))
    positive = (1 + eta) * f_z[f_z > 0].sum()
    result = ldprecover(oracle, f_z, eta=eta)
    if oracle.protocol == "grr" or min(positive, positive - eta * oracle.malicious_sum) >= 1:
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
    result = ldprecover(oracle, f_z, eta=0.2)
    assert result.recovered[4] == 1
    assert project_simplex(1.2 * f_z)[9] > 0.2
    assert not any(SAME in note for note in result.notes)


@small_oracles
@given(data=st.data(), eta=st.floats(0.3, 10))
def test_eta_zero_is_norm_sub(oracle: FrequencyOracle, data: st.DataObject, eta: float) -> None:
    f_z = data.draw(poisoned_of(oracle))
    expected = project_simplex(f_z).tolist()
    for targets in ([], [0]):
        request = RecoveryRequest("ldprecover", eta=0, targets=targets)
        assert recover(oracle, f_z, request).recovered.tolist() == expected
    plain = recover(oracle, f_z, RecoveryRequest("norm-sub", eta=eta, targets=[1]))
    assert plain.recovered.tolist() == expected
    assert (plain.eta, plain.targets) == (0, ())
    assert not plain.malicious.any()


@pytest.mark.parametrize(
    "oracle", [GRR(0.5, 102), OUE(0.5, 102), OLH(0.5, 102, 3)], ids=lambda o: o.protocol
)
@given(targets=st.lists(st.integers(0, 101), min_size=1, max_size=101))
def test_targeted_models_sum_to_s_with_their_own_totals(
    oracle: FrequencyOracle, targets: list[int]
) -> None:
    """Repeated targets count once."""
    unique = sorted(set(targets))
    d, r, q, gap = 102, len(unique), oracle.q, oracle.p - oracle.q
    others = np.setdiff1d(np.arange(d), unique)
    for model, others_total in (("paper", -q * d / gap), ("exact", -q * (d - r) / gap)):
        result = ldprecover(oracle, np.zeros(d), targets=targets, malicious_model=model)
        malicious = result.malicious
        assert malicious.sum() == pytest.approx(result.malicious_sum, abs=1e-9)
        assert malicious[others].sum() == pytest.approx(others_total)
        assert np.ptp(malicious[others]) == np.ptp(malicious[unique]) == 0
        assert result.targets == tuple(unique)


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
    printed = ldprecover(oracle, np.full(102, 1 / 102), targets=range(10))
    assert any(f"{excess} times" in note for note in printed.notes)
    exact = ldprecover(oracle, np.full(102, 1 / 102), targets=range(10), malicious_model="exact")
    assert not any("times" in note and "printed" in note for note in exact.notes)


def test_exact_model_inverts_a_noiseless_attack(oracle: FrequencyOracle) -> None:
    """f~_Z = (f + eta f~_Y)/(1 + eta) with f~_Y its expectation, and the true eta."""
    d = oracle.domain_size
    f = 1 / np.arange(1, d + 1)
    f /= f.sum()
    f_y = oracle.estimate(np.eye(d)[-1], 1)
    result = ldprecover(
        oracle, (f + 0.05 * f_y) / 1.05, eta=0.05, targets=[d - 1], malicious_model="exact"
    )
    tolerance = 1e-12 * max(1, np.abs(f_y).max())
    np.testing.assert_allclose(result.recovered, f, rtol=0, atol=tolerance)
    np.testing.assert_allclose(result.malicious, f_y, rtol=1e-12)


@pytest.mark.parametrize(
    "frequencies",
    [
        [0, np.nan, 0],
        [0, 0, -np.inf],
        [0, 0],
        [0] * 4,
        [[0, 0, 0]],
        ["a", "b", "c"],
        [None] * 3,
        1,
        [[0], [0, 0], [0]],
        [0, 1j, 0],
        None,
    ],
)
def test_frequencies_are_finite_and_of_the_rounds_items(frequencies: Any) -> None:
    with pytest.raises(ParameterError, match="frequencies must be"):
        recover(OUE(1, 3), frequencies, "ldprecover")


def test_counts_are_refused_in_place_of_frequencies() -> None:
    for frequencies in ([1.7e308, 0, 0], [50.0, 30.0, 20.0]):
        with pytest.raises(ParameterError, match=r"such frequencies: `oracle\.estimate` takes"):
            ldprecover(OUE(1, 3), frequencies, eta=10)


SUPPORT = np.full(9, 0.5)


def test_recovery_shares_no_memory_with_its_input() -> None:
    f_z = np.array([0.5, 0.6, -0.1])
    result = recover(OUE(1, 3), f_z, "norm-sub")
    f_z[:] = 0
    assert result.poisoned.tolist() == result.genuine.tolist() == [0.5, 0.6, -0.1]
    assert not np.shares_memory(result.poisoned, result.genuine)


def test_every_method_uses_the_default_assumptions() -> None:
    for name, method in METHODS.items():
        if method.needs <= {"counts", "n"}:
            result = recover(OUE(1, 9), np.linspace(-0.2, 0.5, 9), name, n=100)
            assert not any("does not use" in note for note in result.notes)


@pytest.mark.parametrize(
    ("method", "fields", "unused"),
    [
        ("ldprecover", {"eta": 0.1, "targets": [1], "malicious_model": "exact"}, None),
        ("ldprecover", {"malicious_model": "custom", "support": SUPPORT}, None),
        ("ldprecover", {"support": SUPPORT}, "support under the malicious model paper"),
        (
            "ldprecover",
            {"targets": [1], "malicious_model": "custom", "support": SUPPORT},
            "targets under .* custom",
        ),
        (
            "norm-sub",
            {"eta": 0.1, "targets": [1], "malicious_model": "custom", "support": SUPPORT},
            "eta, .*, support",
        ),
        ("norm-sub", {"history": [(OUE(1, 9), Tally(np.ones(9, np.int64), 1))]}, "history"),
        ("fiad", {"eta": 0.1, "targets": [1]}, "eta, targets"),
        ("ldprecover-km", {"eta": 0.1, "targets": [1]}, "targets"),
        ("detection", {"eta": 0.1, "targets": [1]}, "eta"),
        ("conditional-probability", {"eta": 0.1, "targets": [1]}, None),
    ],
)
def test_notes_name_the_assumptions_that_are_not_used(
    method: str, fields: dict[str, Any], unused: str | None
) -> None:
    oracle, rng = OUE(1, 9), np.random.default_rng(1)
    reports = oracle.perturb(rng.integers(0, 9, 400), rng)
    result = recover(oracle, reports, RecoveryRequest(method, **fields))
    notes = [note for note in result.notes if "does not use" in note]
    assert len(notes) == (unused is not None)
    if unused is not None:
        assert re.fullmatch(f"{method} does not use {unused}\\.", notes[0])
        assert "targets" not in notes[0] or result.targets == ()


def test_numbers_of_numpy_are_numbers() -> None:
    oracle, f_z = OUE(1, 6), np.linspace(-0.2, 0.5, 6)
    numpys: dict[str, Any] = {"eta": np.float32(0.5), "targets": np.array([2], np.uint8)}
    n: Any = np.int64(1000)
    plain = recover(oracle, f_z, RecoveryRequest("ldprecover", eta=0.5, targets=[2]), n=1000)
    result = recover(oracle, f_z.astype(object), RecoveryRequest("ldprecover", **numpys), n=n)
    assert result.recovered.tolist() == plain.recovered.tolist()
    assert (type(result.eta), result.eta, result.targets) == (float, 0.5, (2,))
    assert type(result.targets[0]) is int


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("method", "Unmx", r"not 'Unmx'; did you mean 'unmix'\?"),
        ("method", "magic", r"method must be one of auto, ldprecover, norm-sub, .*, not 'magic'"),
        ("method", ["norm-sub"], "method must be"),
        ("malicious_model", "magic", r"malicious_model must be one of paper, .*, not 'magic'"),
        ("malicious_model", None, "malicious_model must be"),
        ("targets", 0, "targets must be"),
        ("options", [], "options must be"),
        ("eta", "automatic", "eta must be a number from 0 to 10 or 'auto', not 'automatic'"),
        *(
            ("eta", eta, "eta must be a number from 0 to 10 or")
            for eta in (-0.01, 10.01, np.nan, -np.inf, "0.2", True, None, 1j, 10**400, np.ones(2))
        ),
    ],
)
def test_rejects_a_field_with_another_value(field: str, value: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        RecoveryRequest(**{field: value})


def test_rejects_all_items_as_targets() -> None:
    with pytest.raises(ParameterError, match="leave out at least one of the 6 items"):
        recover(OUE(1, 6), np.zeros(6), RecoveryRequest("norm-sub", targets=[*range(6), 0]))
    request = RecoveryRequest("ldprecover", targets=range(5))
    assert recover(OUE(1, 6), np.zeros(6), request).recovered.sum() == pytest.approx(1)


def test_models_are_the_same_without_targets() -> None:
    oracle, f_z = OUE(0.5, 8), np.linspace(-1, 1, 8)
    paper, exact = (ldprecover(oracle, f_z, malicious_model=model) for model in ("paper", "exact"))
    assert paper.recovered.tolist() == exact.recovered.tolist()
    assert any("the malicious models paper and exact are the same" in note for note in exact.notes)


def test_subtracts_nothing_if_no_estimate_is_positive() -> None:
    f_z = np.array([-0.5, -0.1, 0.0, -2.0, -0.3, -0.1])
    result = recover(OUE(0.5, 6), f_z, "ldprecover")
    assert not result.malicious.any()
    np.testing.assert_allclose(result.recovered, project_simplex(1.2 * f_z), rtol=0, atol=1e-15)
    assert any("no estimate is positive" in note for note in result.notes)


@pytest.mark.parametrize("oracle", [GRR(1.0, 2), OUE(1.0, 2), OLH(1.0, 2, 4)])
def test_of_two_items_the_paper_stretches_the_mean_and_says_so(oracle: FrequencyOracle) -> None:
    result = ldprecover(oracle, [0.35, 0.65], eta=0.2)
    assert result.recovered[1] - result.recovered[0] == pytest.approx(1.2 * 0.3)
    assert any("multiplies the difference" in note for note in result.notes)
    for request in (
        RecoveryRequest("ldprecover", eta=0.0),
        RecoveryRequest("ldprecover", eta=0.2, targets=[1]),
    ):
        notes = recover(oracle, [0.35, 0.65], request).notes
        assert not any("multiplies the difference" in note for note in notes)
    three = ldprecover(GRR(1.0, 3), [0.2, 0.3, 0.5], eta=0.2)
    assert not any("multiplies the difference" in note for note in three.notes)
