"""What every recovery method keeps to, under every protocol: promises, symmetries, refusals with a
reason.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
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
    recover,
)
from ldprecover.recovery import METHODS, NEEDS, Method

ORACLES = [GRR(0.5, 2), GRR(1, 13), OUE(0.5, 2), OUE(2, 13), OLH(0.5, 2, 3), OLH(1, 13, 4)]
each_oracle = pytest.mark.parametrize(
    "oracle", ORACLES, ids=lambda o: f"{o.protocol}-d{o.domain_size}"
)
each_method = pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
COUNTED = [name for name, method in METHODS.items() if "reports" not in method.needs]
READING = [name for name, method in METHODS.items() if "reports" in method.needs]
SHIFT_FREE = ["norm-sub", "norm", "normalization"]
FEW = {"k-means": {"subsets": 4}, "ldprecover-km": {"subsets": 4}, "em": {"iterations": 5}}


def promised(method: Method, result: Recovery) -> None:
    """Assert what the method says it gives."""
    d = result.poisoned.size
    for vector in (result.poisoned, result.malicious, result.genuine, result.recovered):
        assert vector.shape == (d,)
        assert np.isfinite(vector).all()
    if method.gives != "frequencies":
        assert result.recovered.sum() == pytest.approx(
            1, abs=1e-9 * max(1, np.abs(result.recovered).max())
        )
    if method.gives == "distribution":
        assert (result.recovered >= 0).all()
    assert result.method == method.name
    assert np.isfinite(result.eta)
    assert result.eta >= 0
    assert result.notes
    assert all(note.endswith(".") for note in result.notes)


def attempted(
    oracle: FrequencyOracle,
    frequencies: Any,
    n: int | None = None,
    reports: Any = None,
    **fields: Any,
) -> Recovery | None:
    """Return the recovery, or None where it is refused in words."""
    try:
        return recover(oracle, frequencies, RecoveryRequest(**fields), n=n, reports=reports)
    except ParameterError as refused:
        reason = str(refused)
    assert len(reason) > 20
    return None


def counts_of(oracle: FrequencyOracle) -> st.SearchStrategy[np.ndarray]:
    """Return frequencies of any counts of 1,000 reports."""
    d, n = oracle.domain_size, 1000
    if oracle.protocol == "grr":
        cuts = st.lists(st.integers(0, n), min_size=d - 1, max_size=d - 1).map(sorted)
        return cuts.map(lambda c: oracle.estimate(np.diff([0, *c, n]), n))
    return st.lists(st.integers(0, n), min_size=d, max_size=d).map(lambda c: oracle.estimate(c, n))


@each_oracle
@pytest.mark.parametrize("name", COUNTED)
@settings(max_examples=40)
@given(data=st.data(), eta=st.floats(0, 10) | st.just("auto"))
def test_a_method_on_counts_keeps_its_promise_or_says_why_not(
    oracle: FrequencyOracle, name: str, data: st.DataObject, eta: float | str
) -> None:
    """And relabelling the items relabels the result."""
    f_z, d = data.draw(counts_of(oracle)), oracle.domain_size
    targets = data.draw(st.lists(st.integers(0, d - 1), max_size=d - 1, unique=True))
    result = attempted(oracle, f_z, method=name, eta=eta, targets=targets, n=1000)
    mirrored = attempted(
        oracle, f_z[::-1], method=name, eta=eta, targets=[d - 1 - t for t in targets], n=1000
    )
    assert (result is None) == (mirrored is None)
    if result is not None and mirrored is not None:
        promised(METHODS[name], result)
        np.testing.assert_allclose(mirrored.recovered, result.recovered[::-1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", SHIFT_FREE)
@given(data=st.data(), shift=st.floats(-100, 100))
def test_result_ignores_a_constant_added_to_all_items(
    name: str, data: st.DataObject, shift: float
) -> None:
    oracle = data.draw(st.sampled_from(ORACLES))
    f_z = data.draw(counts_of(oracle))
    base = recover(oracle, f_z, name, n=1000).recovered
    moved = recover(oracle, f_z + shift, name, n=1000).recovered
    np.testing.assert_allclose(moved, base, rtol=0, atol=1e-9)


@each_oracle
@pytest.mark.parametrize("name", READING)
@settings(max_examples=30)
@given(data=st.data())
def test_a_method_on_reports_keeps_its_promise_or_says_why_not(
    oracle: FrequencyOracle, name: str, data: st.DataObject
) -> None:
    """And the same reports in any blocks, given as an array or by a function, give the same
    result.
    """
    d = oracle.domain_size
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    held = rng.integers(0, d, data.draw(st.integers(0, 60)))
    malicious = np.repeat(
        oracle.encode(np.array([d - 1]), rng), data.draw(st.integers(0, 20)), axis=0
    )
    reports = np.concatenate([oracle.perturb(held, rng), malicious])
    if not len(reports):
        assert attempted(oracle, np.zeros(d), method=name, targets=[0], reports=reports) is None
        return
    f_z = oracle.estimate(oracle.support_counts(reports), len(reports))
    fields: dict[str, Any] = {"method": name, "targets": [d - 1], "options": FEW.get(name, {})}
    result = attempted(oracle, f_z, reports=reports, **fields)
    cut = len(reports) // 3
    chunked = attempted(oracle, f_z, reports=lambda: iter([reports[:cut], reports[cut:]]), **fields)
    assert (result is None) == (chunked is None)
    if result is not None and chunked is not None:
        promised(METHODS[name], result)
        np.testing.assert_allclose(chunked.recovered, result.recovered, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", READING)
@pytest.mark.parametrize("protocol", ["grr", "oue"])
def test_relabelled_reports_give_the_relabelled_result(name: str, protocol: str) -> None:
    """Not of OLH, where a report is no function of labels that could be changed."""
    d, rng = 20, np.random.default_rng(5)
    oracle: FrequencyOracle = GRR(1, d) if protocol == "grr" else OUE(1, d)
    held = rng.choice(d, 3000, p=np.arange(1, d + 1) / 210)
    rows = oracle.supports(oracle.perturb(held, rng))
    if protocol == "oue":
        crafted = rng.random((200, d)) < 0.1
        crafted[:, :5] = True
        rows = np.concatenate([rows, crafted])

    def packed(rows: np.ndarray) -> np.ndarray:
        return (
            rows.argmax(axis=1).astype("<u4")
            if protocol == "grr"
            else np.packbits(rows, axis=1, bitorder="little")
        )

    def recovered(reports: np.ndarray, target: int) -> Recovery | None:
        f_z = oracle.estimate(oracle.support_counts(reports), len(reports))
        return attempted(
            oracle, f_z, method=name, targets=[target], reports=reports, options=FEW.get(name, {})
        )

    result, mirrored = recovered(packed(rows), 2), recovered(packed(rows[:, ::-1]), d - 3)
    assert (result is None) == (mirrored is None)
    if result is not None and mirrored is not None:
        np.testing.assert_allclose(mirrored.recovered, result.recovered[::-1], rtol=0, atol=1e-6)


@each_method
@each_oracle
def test_refusal_is_the_error_of_the_recovery(method: Method, oracle: FrequencyOracle) -> None:
    known = frozenset(NEEDS)
    for missing in [None, *sorted(method.needs - {"counts"})]:
        reason = method.refusal(oracle, known - {missing})
        if missing is not None:
            assert reason is not None
            assert method.name in reason
        fields: dict[str, Any] = {
            "n": 100,
            "targets": [0],
            "reports": oracle.perturb(np.zeros(100, np.int64)),
        }
        if missing == "n":
            fields = {"targets": [0]}
        elif missing is not None:
            del fields[missing]
        if reason is not None:
            request = RecoveryRequest(method.name, targets=fields.pop("targets", ()))
            with pytest.raises(ParameterError) as refused:
                recover(oracle, np.full(oracle.domain_size, 0.3), request, **fields)
            assert str(refused.value) == reason


@each_method
def test_a_method_says_what_it_needs_gives_and_costs(method: Method) -> None:
    assert METHODS[method.name] is method
    assert method.needs <= set(NEEDS)
    assert method.cost
    assert "\n" not in method.cost + method.summary
    assert "reports" in method.needs or "counts" in method.needs
    for option in method.options:
        assert option.meaning
        for fitting in (option.default, option.low, option.high):
            for value in (fitting, float(fitting), np.float64(fitting)):
                taken = method.checked({option.name: value})[option.name]
                assert (type(taken), taken) == (type(option.default), fitting)
        for bad in (option.low - 1, option.high + 1, "1", True, None, np.nan):
            with pytest.raises(ParameterError, match=f"{option.name} must be"):
                method.checked({option.name: bad})
    with pytest.raises(ParameterError, match=f"{method.name} has no option 'magic'"):
        recover(OUE(1, 9), np.zeros(9), RecoveryRequest(method.name, options={"magic": 1}))


def test_the_range_of_an_integer_is_said_in_full() -> None:
    with pytest.raises(
        ParameterError, match=r"seed must be an integer from 0 to 4294967295, not 0\.5"
    ):
        METHODS["k-means"].checked({"seed": 0.5})
    with pytest.raises(ParameterError, match=r"rate must be a number from 1e-12 to 0\.5, not 1"):
        METHODS["fiad"].checked({"rate": 1})


@pytest.mark.parametrize("reports", [[1, 2], iter([1]), "abc", 3])
def test_reports_are_an_array_or_a_function(reports: Any) -> None:
    with pytest.raises(
        ParameterError, match="reports must be an array of packed reports, or a function"
    ):
        recover(OUE(1, 9), np.zeros(9), reports=reports)


@pytest.mark.parametrize(
    "given",
    [np.zeros(4), np.zeros((4, 3), np.uint8), [[1, 2]], np.zeros(4, np.uint8)],
    ids=["float", "wide", "list", "flat"],
)
def test_reports_of_another_form_are_refused(given: Any) -> None:
    with pytest.raises(ParameterError, match="rows of the report type of oue"):
        recover(OUE(1, 16), np.zeros(16), "diffstats", reports=lambda: [given])


def test_method_without_need_reads_no_reports() -> None:
    def never() -> list[np.ndarray]:
        raise AssertionError("read")

    assert recover(
        OUE(1, 9), np.zeros(9), "norm-sub", reports=never
    ).recovered.sum() == pytest.approx(1)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "7"])
def test_the_number_of_reports_is_a_positive_integer(n: Any) -> None:
    with pytest.raises(ParameterError, match="n, the number of reports"):
        recover(OUE(1, 9), np.zeros(9), n=n)


def test_reports_other_than_those_of_the_frequencies_are_noted() -> None:
    """A round that is still open may have grown between its counts and its reports."""
    oracle, rng = OUE(1, 30), np.random.default_rng(1)
    reports = oracle.perturb(rng.integers(0, 30, 500), rng)
    f_z = oracle.estimate(Tally.of(oracle, reports).counts(oracle), 500)
    same = recover(oracle, f_z, RecoveryRequest("detection-any", targets=[1]), reports=reports)
    other = recover(
        oracle, f_z + 0.01, RecoveryRequest("detection-any", targets=[1]), reports=reports
    )
    assert not any("not those of the poisoned" in note for note in same.notes)
    assert any("not those of the poisoned" in note for note in other.notes)
