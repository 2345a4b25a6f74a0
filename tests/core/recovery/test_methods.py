"""Suite of all recovery methods under every protocol: promises, symmetries, reasons."""

import contextlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.recovery.poisoned_round import estimates_of

from ldprecover import (
    GRR,
    OLH,
    OUE,
    FrequencyOracle,
    ParameterError,
    Recovery,
    RecoveryRequest,
    frequency_oracle,
    recover,
)
from ldprecover.protocols import LLH, PROTOCOLS, SS
from ldprecover.recovery import (
    METHODS,
    NEEDS,
    Method,
    RecoveryInputs,
    run_method,
)
from ldprecover.reports import ReportSource
from ldprecover_attacker import make_attack

ORACLES = [GRR(0.5, 2), GRR(1, 13), OUE(2, 13), OLH(1, 13, 4)]
each_oracle = pytest.mark.parametrize(
    "oracle", ORACLES, ids=lambda o: f"{o.protocol}-d{o.domain_size}"
)
each_method = pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
COUNTED = [name for name, method in METHODS.items() if "reports" not in method.needs]
READING = [name for name, method in METHODS.items() if "reports" in method.needs]
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
    assert method.name in (result.method, "auto")
    assert np.isfinite(result.eta)
    assert result.eta >= 0
    assert result.notes
    assert all(note.endswith(".") for note in result.notes)
    if result.conclusions is None:
        return
    lower, upper, f = result.conclusions.lower, result.conclusions.upper, result.recovered
    if lower is not None and upper is not None:
        assert ((lower >= 0) & (upper <= 1)).all()
        assert ((lower <= f + 1e-9) & (f <= upper + 1e-9)).all()
    assert all(0 <= p <= 1 for _, p in result.conclusions.suspects)


def _run(
    oracle: FrequencyOracle,
    frequencies: Any,
    request: RecoveryRequest,
    n: int | None = None,
    reports: Any = None,
) -> Recovery:
    """Return the recovery from frequencies that need not be those of the reports."""
    source = None if reports is None else ReportSource(oracle, reports)
    return run_method(RecoveryInputs(oracle, frequencies, request, n=n, reports=source))


def attempted(
    oracle: FrequencyOracle,
    frequencies: Any,
    n: int | None = None,
    reports: Any = None,
    **fields: Any,
) -> Recovery | None:
    """Return the recovery, or None if it raises ParameterError with a reason."""
    try:
        return _run(oracle, frequencies, RecoveryRequest(**fields), n, reports)
    except ParameterError as error:
        reason = str(error)
    assert len(reason) > 20
    return None


def counts_of(oracle: FrequencyOracle) -> st.SearchStrategy[np.ndarray]:
    """Return frequencies of any counts of 1,000 reports."""
    d, n = oracle.domain_size, 1000
    if oracle.protocol == "grr":
        cuts = st.lists(st.integers(0, n), min_size=d - 1, max_size=d - 1).map(sorted)
        return cuts.map(lambda c: oracle.estimate(np.diff([0, *c, n]), n))
    return st.lists(st.integers(0, n), min_size=d, max_size=d).map(lambda c: oracle.estimate(c, n))


@pytest.mark.parametrize(
    ("protocol", "name"),
    [("oue", name) for name in READING] + [("grr", name) for name in READING if name not in FEW],
)
def test_relabelled_reports_give_the_relabelled_result(name: str, protocol: str) -> None:
    """Not of OLH, where a report is no function of labels that could be changed.

    Subsets of a histogram are drawn in the order of its reports, which are labels.
    """
    d, rng = 20, np.random.default_rng(5)
    oracle: FrequencyOracle = GRR(1, d) if protocol == "grr" else OUE(1, d)
    items = rng.choice(d, 3000, p=np.arange(1, d + 1) / 210)
    rows = oracle.supports(oracle.perturb(items, rng))
    if protocol == "oue":
        crafted = rng.random((200, d)) < 0.1
        crafted[:, :5] = True
        rows = np.concatenate([rows, crafted])

    def recovered(rows: np.ndarray, target: int) -> Recovery | None:
        reports = np.packbits(rows, axis=1, bitorder="little")
        if protocol == "grr":
            reports = rows.argmax(axis=1).astype("<u4")
        f_z = estimates_of(oracle, reports)
        return attempted(
            oracle, f_z, method=name, targets=[target], reports=reports, options=FEW.get(name, {})
        )

    result, mirrored = recovered(rows, 2), recovered(rows[:, ::-1], d - 3)
    assert (result is None) == (mirrored is None)
    if result is not None and mirrored is not None:
        np.testing.assert_allclose(mirrored.recovered, result.recovered[::-1], rtol=0, atol=1e-6)


@each_method
@each_oracle
def test_refusal_is_the_error_of_the_recovery(method: Method, oracle: FrequencyOracle) -> None:
    for missing in [None, *sorted(method.needs - {"counts"})]:
        reason = method.refusal(oracle, frozenset(NEEDS) - {missing})
        if reason is None:
            assert missing is None
            continue
        assert method.name in reason
        fields: dict[str, Any] = {
            "n": 100,
            "targets": [0],
            "reports": oracle.perturb(np.zeros(100, np.int64)),
        }
        fields.pop(str(missing), None)
        if missing == "n":
            del fields["reports"]
        request = RecoveryRequest(method.name, targets=fields.pop("targets", ()))
        with pytest.raises(ParameterError) as error:
            _run(oracle, np.full(oracle.domain_size, 0.3), request, **fields)
        assert str(error.value) == reason


def test_range_of_an_option_is_stated_in_full() -> None:
    with pytest.raises(
        ParameterError, match=r"seed must be an integer from 0 to 4294967295, not 0\.5"
    ):
        METHODS["k-means"].checked({"seed": 0.5})
    with pytest.raises(ParameterError, match=r"rate must be a number from 1e-12 to 0\.5, not 1"):
        METHODS["fiad"].checked({"rate": 1})


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "7"])
def test_n_is_a_positive_integer(n: Any) -> None:
    with pytest.raises(ParameterError, match="n, the number of reports"):
        recover(OUE(1, 9), np.zeros(9), "ldprecover", n=n)


@pytest.mark.parametrize(
    "array",
    [np.zeros(4), np.zeros((4, 3), np.uint8), [[1, 2, 3]], np.zeros(4, np.uint8)],
    ids=["float", "wide", "list", "flat"],
)
def test_rejects_reports_of_another_form(array: Any) -> None:
    with pytest.raises(ParameterError, match="reports must be"):
        recover(OUE(1, 16), lambda: [array], "diffstats")


@each_method
def test_method_states_what_it_needs_gives_and_costs(method: Method) -> None:
    fields = {*RecoveryRequest.__dataclass_fields__, *RecoveryInputs.__dataclass_fields__}
    assert METHODS[method.name] is method
    assert method.uses <= fields - {"method", "oracle", "poisoned", "request"}
    assert method.needs <= set(NEEDS)
    assert method.cost
    assert method.summary
    assert "\n" not in method.cost + method.summary
    assert "reports" in method.needs or "counts" in method.needs
    for option in method.options:
        assert option.meaning
        if option.choices:
            fitting: list[Any] = [*option.choices]
            unfit: list[Any] = ["1", 1, True, None]
        else:
            assert option.low is not None
            assert option.high is not None
            fitting = [option.default, option.low, option.high]
            unfit = [option.low - 1, option.high + 1, "1", True, None, np.nan]
        for value in fitting:
            for given_value in (value, value if option.choices else np.float64(value)):
                taken = method.checked({option.name: given_value})[option.name]
                assert (type(taken), taken) == (type(option.default), value)
        for bad in unfit:
            with pytest.raises(ParameterError, match=f"{option.name} must be"):
                method.checked({option.name: bad})
    with pytest.raises(ParameterError, match=f"{method.name} has no option 'magic'"):
        RecoveryRequest(method.name, options={"magic": 1})


def reports_of(
    oracle: FrequencyOracle,
    rng: np.random.Generator,
    honest: int,
    malicious: int,
    targets: Iterable[int],
    attack: str = "mga",
) -> np.ndarray:
    """Return honest reports of items drawn evenly, and malicious ones if the protocol has them."""
    reports = oracle.perturb(rng.integers(oracle.domain_size, size=honest), rng)
    if malicious:
        with contextlib.suppress(ParameterError):
            named: dict[str, Any] = {} if attack in ("aa", "manip") else {"targets": targets}
            crafted = make_attack(attack, **named).reports(oracle, malicious, rng)
            reports = np.concatenate([reports, crafted])
    return reports


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_method_on_reports_keeps_its_promise_or_says_why_not(protocol: str) -> None:
    rng = np.random.default_rng(39)
    for _ in range(6):
        d, n = int(rng.integers(2, 9)), int(10 ** rng.uniform(0, 3.7))
        with contextlib.suppress(ParameterError):
            oracle = frequency_oracle(protocol, 10 ** rng.uniform(-2, 0.5), d)
            targets = tuple(range(int(rng.integers(1, d))))
            attack = str(rng.choice(["mga", "apa", "ria", "aa", "manip", "mimicry"]))
            reports = reports_of(oracle, rng, n, n // 5, targets, attack)
            f_z = estimates_of(oracle, reports)
            for name, method in METHODS.items():
                for named in ((), targets):
                    result = attempted(oracle, f_z, None, reports, method=name, targets=named)
                    if result is not None:
                        promised(method, result)


@pytest.mark.parametrize(
    ("oracle", "targets", "beta"),
    [(LLH(1.0, 4, 3), [0], 0.0), (OUE(1.0, 2), [1], 0.2), (SS(1.0, 10, 3), [0, 1, 2, 3], 0.9)],
    ids=["no set of all items", "only sizes of none and all", "no set but one item"],
)
@pytest.mark.parametrize("seed", range(3))
def test_drops_no_reports_that_leave_nothing(
    oracle: FrequencyOracle, targets: list[int], beta: float, seed: int
) -> None:
    malicious = round(3000 * beta / (1 - beta))
    reports = reports_of(oracle, np.random.default_rng(seed), 3000, malicious, targets)
    promised(METHODS["auto"], recover(oracle, reports))


@each_oracle
@pytest.mark.parametrize("name", COUNTED)
@settings(max_examples=15)
@given(data=st.data(), eta=st.floats(0, 10) | st.just("auto"))
def test_method_on_counts_keeps_its_promise_or_says_why_not(
    oracle: FrequencyOracle, name: str, data: st.DataObject, eta: float | str
) -> None:
    """Relabelling the items relabels the result."""
    f_z, d = data.draw(counts_of(oracle)), oracle.domain_size
    targets = data.draw(st.lists(st.integers(0, d - 1), max_size=d - 1, unique=True))
    fields: dict[str, Any] = {"method": name, "eta": eta, "n": 1000}
    result = attempted(oracle, f_z, targets=targets, **fields)
    mirrored = attempted(oracle, f_z[::-1], targets=[d - 1 - t for t in targets], **fields)
    assert (result is None) == (mirrored is None)
    if result is not None and mirrored is not None:
        promised(METHODS[name], result)
        np.testing.assert_allclose(mirrored.recovered, result.recovered[::-1], rtol=0, atol=1e-9)
