"""Any array is counted as the definition says, or refused, whichever backend counts."""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ldprecover import (
    GRR,
    LLH,
    OUE,
    SS,
    FrequencyOracle,
    ParameterError,
    ReportError,
    RoundParameters,
    Tally,
    counting,
    frequency_oracle,
    recover,
)
from ldprecover.counting import numba_kernels, numpy_kernels
from ldprecover.protocols import PROTOCOLS
from ldprecover.reports import ReportSource, tally_sampler

D = 11
ORACLES = {name: frequency_oracle(name, 1.0, D) for name in PROTOCOLS}
each_protocol = pytest.mark.parametrize("oracle", ORACLES.values(), ids=ORACLES)
BITS = ("oue", "sue", "ss")
Errors = (ParameterError, ReportError)
typed: Any = np  # its numbers are taken where the annotations say int and float


def supported(oracle: Any, z: Any, v: int) -> bool:
    """The definition of each protocol, on Python's integers."""
    if oracle.protocol in BITS:
        return bool(z[v] if len(z) == D else z[v // 8] >> v % 8 & 1)
    if oracle.protocol == "grr":
        return int(z) == v
    if oracle.protocol == "hr":
        return (int(z) & (v + 1)).bit_count() % 2 == 0
    if oracle.protocol == "olh":
        hashed = xxhash.xxh32_intdigest(v.to_bytes(4, "little"), int(z["seed"]))
        return hashed * oracle.hash_range >> 32 == z["bucket"]
    g, (r, y) = oracle.hash_range, divmod(int(z), oracle.hash_range)
    return sum(r // g**i % g * (v // g**i % g) for i in range(oracle.digits)) % g == y


def outcome(oracle: FrequencyOracle, values: Any, backend: Any) -> Any:
    """Return the counts, or the text of the error, with one backend."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_counting", lambda: backend)
        try:
            counts = oracle.support_counts(values)
            tally = Tally.of(oracle, values)
        except Errors as error:
            return str(error)
        assert counts.dtype == np.int64
        assert tally.counts(oracle).tolist() == counts.tolist()
        return counts.tolist()


SHAPES = st.sampled_from([(3,), (0,), (2, D), (2, 2), (1, 1), (2, 3, 2), (4, 0), ()])
INTEGERS = arrays.integer_dtypes(endianness="?") | arrays.unsigned_integer_dtypes(endianness="?")
DTYPES = (
    INTEGERS
    | arrays.boolean_dtypes()
    | arrays.floating_dtypes()
    | arrays.datetime64_dtypes()
    | arrays.unicode_string_dtypes()
    | st.sampled_from([np.dtype(object), ORACLES["olh"].wire.dtype, np.dtype([("seed", ">i8")])])
)


def some_arrays(dtype: np.dtype) -> st.SearchStrategy[Any]:
    kinds: list[Any] = [None]
    if dtype.kind in "iu":
        kinds += [st.integers(0, 1), st.integers(0, 20)]
    if dtype.kind == "O":
        kinds = [st.sampled_from([0, 1, 2, -1, 1.0, True, "1", None, 2**70]), st.integers(0, 4)]
    return st.one_of([arrays.arrays(dtype, SHAPES, elements=elements) for elements in kinds])


@st.composite
def reports_of(draw: Any, oracle: FrequencyOracle) -> Any:
    """Draw reports in some type of integers, of which one may be made another."""
    items = draw(st.lists(st.integers(0, D - 1), min_size=1, max_size=4))
    reports = oracle.perturb(items, np.random.default_rng(draw(st.integers(0, 99))))
    if reports.dtype.names is None:
        is_matrix = oracle.protocol in BITS and draw(st.booleans())
        values = oracle.supports(reports) if is_matrix else reports
        reports = values.astype(draw(INTEGERS | st.just(values.dtype)))
        if draw(st.booleans()):
            reports[0] = draw(st.integers(0, 1) | st.integers(0, 60))
    elif draw(st.booleans()):
        reports["bucket"][0] = draw(st.integers(0, 9))
    return reports


@each_protocol
@settings(max_examples=60)
@given(data=st.data(), form=st.sampled_from(["array", "list", "matrix", "F"]))
def test_any_array_is_counted_as_defined_or_refused(
    oracle: FrequencyOracle, data: st.DataObject, form: str
) -> None:
    array = data.draw(DTYPES.flatmap(some_arrays) | reports_of(oracle))
    values = array.tolist() if form == "list" else array
    if form == "matrix" and array.ndim == 2:
        values = array.view(np.matrix)
    if form == "F":
        values = np.asfortranarray(array)
    result = outcome(oracle, values, numpy_kernels)
    assert result == outcome(oracle, values, numba_kernels)
    if isinstance(result, list):
        rows = np.asarray(values)
        assert result == [sum(supported(oracle, z, v) for z in rows) for v in range(D)]


def conversions(oracle: FrequencyOracle, reports: Any) -> Iterator[Any]:
    """Yield arrays and lists with the same reports."""
    yield from (list(reports), np.asfortranarray(reports), np.repeat(reports, 2, axis=0)[::2])
    if reports.dtype.names:
        for dtype in ([("bucket", "i8"), ("seed", ">u8")], np.dtype(reports.dtype, align=True)):
            other = np.empty(reports.shape, dtype)
            other["seed"], other["bucket"] = reports["seed"], reports["bucket"]
            yield other
        return
    yield from (reports.astype(dtype) for dtype in ("i8", ">u4", "<u2", "u8", object))
    yield from (reports.tolist(), np.ma.array(reports))
    if reports.ndim == 1:
        yield from (pd.Series(reports), pd.Series(reports, dtype="Int64"), pa.array(reports))
    if oracle.protocol in BITS:
        bits = oracle.supports(reports)
        yield from (bits, bits.astype(int), bits.tolist(), bits.astype("u1"), pd.DataFrame(bits))


@each_protocol
def test_reports_in_any_form_are_converted(oracle: FrequencyOracle) -> None:
    reports = oracle.perturb(np.arange(60) % D, np.random.default_rng(1))
    counts = oracle.support_counts(reports).tolist()
    for values in conversions(oracle, reports):
        assert outcome(oracle, values, numpy_kernels) == counts
        assert outcome(oracle, values, numba_kernels) == counts
        assert np.array_equal(oracle.wire.checked(values), reports)
        assert oracle.wire.to_json(values) == oracle.wire.to_json(reports)
        if not reports.dtype.names:
            assert np.array_equal(oracle.supports(values), oracle.supports(reports))
            assert np.array_equal(oracle.support_sizes(values), oracle.support_sizes(reports))
        assert ReportSource(oracle, values).tally().counts(oracle).tolist() == counts


@each_protocol
@pytest.mark.parametrize(
    "values",
    [
        *(b"\1\0\0\0", bytearray(4), memoryview(bytes(4)), "12", 3, None, {1, 2}, iter([1])),
        *([1, True], [1, 2.0], [[1], [1, 2]], np.array([1.0]), np.ones((2, D))),
        np.ma.array([1, 2], mask=[False, True]),
    ],
    ids=lambda values: type(values).__name__,
)
def test_what_numpy_would_reinterpret_is_refused(oracle: FrequencyOracle, values: Any) -> None:
    with pytest.raises(ParameterError, match="reports must"):
        oracle.support_counts(values)


@pytest.mark.parametrize(
    ("oracle", "values", "message"),
    [
        (GRR(1, 5), [0, 3, -1], r"integers from 0 to 4; entry 2 is -1"),
        (GRR(1, 5), np.array([5], "u4"), "report 0: the item must be from 0 to 4"),
        (OUE(1, 9), np.full((2, 9), 2), "entry 0, 0 is 2"),
        (OUE(1, 9), np.ones((2, 9)), r"not of type float64: astype\(int\)"),
        (OUE(1, 9), np.ones((2, 8), int), r"n rows of shape \(2,\), not of \(2, 8\)"),
        (OUE(1, 9), np.full((2, 2), 2), "report 0: the padding bits"),
        (SS(1, 9, 3), np.eye(9, dtype=bool), "report 0: exactly 3 bits"),
        (LLH(1, 5, 3), [27], "from 0 to 26; entry 0 is 27"),
    ],
)
def test_error_names_what_was_given(oracle: FrequencyOracle, values: Any, message: str) -> None:
    checks: list[Callable[[Any], object]] = [oracle.support_counts, partial(Tally.of, oracle)]
    checks += [oracle.wire.checked, lambda each: recover(oracle, np.asarray(each), "norm-sub")]
    for check in checks[: 3 if np.asarray(values).dtype.kind == "f" else 4]:
        with pytest.raises(Errors, match=message):
            check(values)


COUNTS = np.array([3, 0, 7, 0, 0])


@pytest.mark.parametrize(
    "counts",
    [
        *([1, 2], [0, 0, np.nan, 0, 0], ["1"] * 5, [0, -1, 0, 0, 0]),
        *([0, 11, 0, 0, 0], [3, 3, 3, 3, 0], [True] * 5, 7, []),
    ],
)
def test_estimate_needs_counts_of_reports(counts: Any) -> None:
    with pytest.raises(ParameterError):
        GRR(1, 5).estimate(counts, 10)


def test_estimate_takes_numbers_of_numpy_and_tables_of_counts() -> None:
    oracle, expected = GRR(1, 5), GRR(1, 5).estimate(COUNTS.tolist(), 10)
    for counts in (COUNTS, COUNTS.astype(np.float32), COUNTS.astype(object), pd.Series(COUNTS)):
        assert np.array_equal(oracle.estimate(counts, typed.int64(10)), expected)
    assert np.array_equal(oracle.estimate([COUNTS, COUNTS], 10), [expected, expected])
    assert np.allclose(oracle.estimate(COUNTS / 10, 1), expected)
    with pytest.raises(ParameterError, match="10 reports must sum to at most 30"):
        SS(1, 5, 3).estimate([10, 10, 10, 10, 0], 10)


@each_protocol
def test_parameters_of_numpy_become_pythons(oracle: FrequencyOracle) -> None:
    own, items = [typed.int16(value) for value in oracle.own.values()], (*map(str, range(D)),)
    typed_ones = RoundParameters(
        oracle.protocol, typed.float32(1), items, parameter=own[0] if own else None
    )
    plain = RoundParameters(
        oracle.protocol, 1.0, items, parameter=next(iter(oracle.own.values()), None)
    )
    assert typed_ones.digest == plain.digest
    assert json.dumps([typed_ones.epsilon, typed_ones.own]) == json.dumps([1.0, oracle.own])
    epsilon: Any = Decimal(1)
    again = frequency_oracle(oracle.protocol, epsilon, typed.int64(D), *own)
    assert (repr(again), type(again.domain_size)) == (repr(oracle), int)
    assert type(Tally(np.zeros(D, int), typed.uint8(0)).n) is int


def test_tables_of_floats_are_named_reports_and_users_are_whole() -> None:
    with pytest.raises(ParameterError, match="bits of reports must be integers"):
        recover(ORACLES["oue"], np.ones((2, D)), "norm-sub")
    n: Any = 1.9
    with pytest.raises(ParameterError, match=r"n must be an integer from 0, not 1\.9"):
        tally_sampler(ORACLES["oue"]).population_tally(
            np.full(D, 1 / D), n, np.random.default_rng(0)
        )


def test_sums_of_counts_do_not_wrap_around() -> None:
    half = 2**62
    for counts in ([half, half, 0], [2**63, 0, 0], [1.0, 0, 0]):
        with pytest.raises(ParameterError, match="true_counts must"):
            tally_sampler(GRR(1, 3)).honest_tally(counts, np.random.default_rng(0))
    columns = np.zeros(4, np.int64)
    columns[:] = half  # their sum is 0 modulo 2^64
    with pytest.raises(ParameterError, match="more than its n"):
        Tally(columns, half).counts(frequency_oracle("hr", 1.0, 3))
    with pytest.raises(ParameterError, match="not to 3"):
        Tally(columns, half) + 3  # type: ignore[operator]


@each_protocol
def test_items_are_integers(oracle: FrequencyOracle) -> None:
    wrong: Any = [[True, False], [0, True], [1.0], ["1"], [[1]], [D], [-1], [2**70], 3, [None]]
    for items in wrong:
        with pytest.raises(ParameterError, match="items must"):
            oracle.perturb(items)
    right: Any = [[0, 10], (0, 10), np.array([0, 10], ">i2"), pd.Series([0, 10]), [0, np.int8(10)]]
    for items in right:
        assert len(oracle.perturb(items)) == 2


@pytest.mark.parametrize("oracle", [ORACLES["olh"], LLH(1, D, 3)])
def test_seeds_and_buckets_are_integers_in_range(oracle: Any) -> None:
    for seeds, buckets in (([-1], [0]), ([1.0], [0]), ([1], [9]), ([2**40], [0]), ([True], [0])):
        with pytest.raises(ParameterError, match=r"(seeds|buckets) must be integers"):
            oracle.reports(seeds, buckets)
