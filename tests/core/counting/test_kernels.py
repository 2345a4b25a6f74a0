"""Support counting: numpy and numba against the definition, to the bit. Without numba these tests
fail.
"""

import threading
import tracemalloc
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ReportError
from ldprecover.counting import (
    numba_kernels,
    numpy_kernels,
    olh_buckets,
    packed_lines,
    walsh_hadamard,
)
from ldprecover.counting.xxhash32 import bucket_of, bucket_ranges, hash_items

BACKENDS = [numpy_kernels, numba_kernels]
SEEDS = st.integers(0, 2**32 - 1)

every_backend = pytest.mark.parametrize("backend", BACKENDS, ids=["numpy", "numba"])
domain_sizes = st.one_of(st.integers(2, 40), st.sampled_from([63, 64, 65, 490, 1000, 8200]))
hash_ranges = st.one_of(
    st.integers(2, 20), st.sampled_from([255, 256, 257, 22_028, 65_535, 65_536])
)


def counts(backend: ModuleType, oracle: FrequencyOracle, reports: Any) -> Any:
    """Count with this backend, whichever the package would choose."""
    if isinstance(oracle, OLH):
        return backend.olh_counts(
            reports["seed"], reports["bucket"], oracle.domain_size, oracle.hash_range
        )
    if isinstance(oracle, OUE):
        return backend.oue_counts(reports, oracle.domain_size)
    return backend.grr_counts(reports, oracle.domain_size)


def random_reports(oracle: FrequencyOracle, n: int, rng: np.random.Generator) -> Any:
    """Draw n reports, uniform over all that are well-formed."""
    if isinstance(oracle, OLH):
        return oracle.reports(
            rng.integers(0, 2**32, n, dtype=np.uint32), rng.integers(0, oracle.hash_range, n)
        )
    if isinstance(oracle, OUE):
        bits = rng.integers(0, 2, (n, oracle.domain_size), dtype=np.uint8)
        return np.packbits(bits, axis=1, bitorder="little")
    return rng.integers(0, oracle.domain_size, n).astype("<u4")


def definition(oracle: FrequencyOracle, reports: Any) -> Any:
    """Sum the support matrix, 1[v in S(z)], over a few reports at a time."""
    total = np.zeros(oracle.domain_size, dtype=np.int64)
    for start in range(0, len(reports), 500):
        total += oracle.supports(reports[start : start + 500]).sum(axis=0)
    return total


@every_backend
@pytest.mark.parametrize("bits", [0, 1, 2, 3, 4, 5, 7, 10])
def test_the_walsh_hadamard_transform_is_its_definition(backend: ModuleType, bits: int) -> None:
    size = 1 << bits
    values = np.random.default_rng(bits).integers(0, 1000, size)
    numbers = np.arange(size)
    signs = 1 - 2 * (np.bitwise_count(numbers[:, None] & numbers).astype(np.int64) & 1)
    assert np.array_equal(backend.walsh_hadamard(values), signs @ values)


@every_backend
@pytest.mark.parametrize("bits", [4, 17])
@pytest.mark.parametrize("total", [1 << 20, (1 << 53) + 1, (1 << 62) + 12_345])
def test_transform_is_its_own_inverse_beyond_float_precision(
    backend: ModuleType, bits: int, total: int
) -> None:
    size = 1 << bits
    values = np.random.default_rng(1).integers(0, total // size, size)
    values[3] += total - int(values.sum())
    transformed = backend.walsh_hadamard(values)
    assert transformed[0] == total
    # Modulo 2^64, as sums of integers are: at most `total` each, so that the first is exact.
    with np.errstate(over="ignore"):
        again = numba_kernels.walsh_hadamard(transformed)
    assert np.array_equal(again, values * size)


def test_only_a_power_of_two_is_transformed() -> None:
    with pytest.raises(ValueError, match="2\\^b"):
        walsh_hadamard(np.zeros(6, dtype=np.int64))


oracles = st.one_of(
    st.builds(GRR, st.just(0.5), domain_sizes),
    st.builds(OUE, st.just(0.5), domain_sizes),
    st.builds(OLH, st.just(0.5), domain_sizes, hash_ranges),
)


@given(oracle=oracles, n=st.integers(0, 300), seed=SEEDS)
def test_numpy_numba_and_the_definition_give_the_same_counts(
    oracle: FrequencyOracle, n: int, seed: int
) -> None:
    reports = random_reports(oracle, n, np.random.default_rng(seed))
    expected = definition(oracle, reports)
    for backend in BACKENDS:
        actual = counts(backend, oracle, reports)
        assert actual.dtype == np.int64
        assert np.array_equal(expected, actual)


@given(oracle=oracles, cuts=st.lists(st.integers(0, 200), max_size=5), seed=SEEDS)
def test_counts_of_any_split_add_up(oracle: FrequencyOracle, cuts: list[int], seed: int) -> None:
    reports = random_reports(oracle, 200, np.random.default_rng(seed))
    for backend in BACKENDS:
        parts = [counts(backend, oracle, part) for part in np.split(reports, sorted(cuts))]
        assert np.array_equal(counts(backend, oracle, reports), sum(parts))


@every_backend
@pytest.mark.parametrize(
    ("oracle", "n"),
    [
        (GRR(0.5, 490), 2 * 65_536 + 3),
        (GRR(0.5, 100_000), 2000),
        (OUE(0.5, 2), 1023),
        (OUE(0.5, 2), 20_000),
        (OUE(0.5, 9), 9000),
        (OUE(0.5, 102), 1024),
        (OUE(0.5, 490), 20_011),
        (OUE(0.5, 2048), 2300),
        (OUE(0.5, 99_992), 1040),
        (OLH(0.5, 2, 2), 40_000),
        (OLH(0.5, 7, 65_536), 10_001),
        (OLH(0.5, 490, 3), 8193),
        (OLH(0.5, 490, 3), 33_000),
        (OLH(0.5, 8200, 3), 255),
        (OLH(0.5, 70_000, 22_028), 257),
        (OLH(0.5, 100_000, 7), 1),
    ],
    ids=lambda value: (
        f"{value.protocol}-d{value.domain_size}"
        if isinstance(value, FrequencyOracle)
        else f"n{value}"
    ),
)
def test_counts_equal_the_definition_across_blocks(
    backend: ModuleType, oracle: FrequencyOracle, n: int
) -> None:
    """Sizes on both sides of every block, line and column that a kernel cuts the work into."""
    reports = random_reports(oracle, n, np.random.default_rng(n))
    assert np.array_equal(definition(oracle, reports), counts(backend, oracle, reports))


@every_backend
@pytest.mark.parametrize(
    ("oracle", "n"),
    [
        (OLH(0.5, 2, 2), 0),
        (OLH(0.5, 2, 2), 40_000),
        (OLH(0.5, 7, 65_536), 10_001),
        (OLH(0.5, 490, 3), 33_000),
        (OLH(0.5, 8200, 3), 255),
        (OLH(0.5, 70_000, 3), 40),
        (OLH(0.5, 100_000, 7), 1),
    ],
    ids=lambda value: (
        f"{value.protocol}-d{value.domain_size}"
        if isinstance(value, FrequencyOracle)
        else f"n{value}"
    ),
)
def test_sizes_counted_with_the_counts_are_exact(backend: ModuleType, oracle: OLH, n: int) -> None:
    reports = random_reports(oracle, n, np.random.default_rng(n))
    sized = backend.olh_counts_and_sizes(
        reports["seed"], reports["bucket"], oracle.domain_size, oracle.hash_range
    )
    parts = [oracle.supports(reports[i : i + 500]) for i in range(0, max(n, 1), 500)]
    assert np.array_equal(definition(oracle, reports), sized[0])
    assert np.array_equal(np.concatenate([part.sum(axis=1) for part in parts]), sized[1])
    assert sized[1].dtype == np.int64


@every_backend
@pytest.mark.parametrize(
    ("oracle", "n", "k"),
    [
        (OLH(0.5, 2, 2), 0, 2),
        (OLH(0.5, 30, 3), 9, 0),
        (OLH(0.5, 2, 2), 40_000, 1),
        (OLH(0.5, 9, 65_536), 2049, 9),
        (OLH(0.5, 9, 65_535), 2049, 9),
        (OLH(0.5, 490, 3), 33_000, 24),
        (OLH(0.5, 100_000, 7), 40, 70_000),
        (OUE(0.5, 2), 0, 2),
        (OUE(0.5, 30), 9, 0),
        (OUE(0.5, 9), 5000, 9),
        (OUE(0.5, 490), 4097, 24),
        (OUE(0.5, 99_992), 300, 64),
    ],
    ids=lambda value: (
        f"{value.protocol}-d{value.domain_size}"
        if isinstance(value, FrequencyOracle)
        else str(value)
    ),
)
def test_supported_items_match_the_definition(
    backend: ModuleType, oracle: FrequencyOracle, n: int, k: int
) -> None:
    """On both sides of every block; items in any order, some of them twice."""
    rng = np.random.default_rng(n)
    reports = random_reports(oracle, n, rng)
    items = rng.integers(0, oracle.domain_size, k, dtype=np.uint32)
    if isinstance(oracle, OLH):
        actual = backend.olh_supported(reports["seed"], reports["bucket"], items, oracle.hash_range)
        hashed = bucket_of(hash_items(reports["seed"], items[:, None]), oracle.hash_range)
        expected = hashed == reports["bucket"]
    else:
        actual = backend.unary_supported(reports, items)
        expected = (reports[:, items // 8] >> (items % 8).astype(np.uint8)).T & 1
    assert actual.dtype == np.bool_
    assert actual.shape == (k, n)
    assert np.array_equal(actual, expected)


@every_backend
@pytest.mark.parametrize(
    ("n", "d"), [(0, 9), (1, 2), (9000, 9), (5000, 102), (300, 2048), (260, 2049), (3, 99_992)]
)
def test_sizes_of_unary_reports_are_their_ones(backend: ModuleType, n: int, d: int) -> None:
    rows = random_reports(OUE(0.5, d), n, np.random.default_rng(d))
    sizes = backend.unary_sizes(rows)
    assert sizes.dtype == np.int64
    assert np.array_equal(sizes, np.unpackbits(rows, axis=1).sum(axis=1))
    assert np.array_equal(backend.unary_sizes(rows[::-2]), sizes[::-2])


@every_backend
@pytest.mark.parametrize(
    ("n", "k", "other"), [(0, 3, 2), (1, 1, 1), (63, 5, 4), (40_000, 24, 3), (20_001, 5, 64)]
)
def test_joint_counts_are_a_product_of_matrices(
    backend: ModuleType, n: int, k: int, other: int
) -> None:
    rng = np.random.default_rng(n)
    one, two = rng.random((k, n)) < 0.4, rng.random((other, n)) < 0.7
    lines, others = packed_lines(one), packed_lines(two)
    joint = backend.joint_counts(lines, others)
    assert joint.dtype == np.int64
    assert np.array_equal(joint, one.astype(np.int64) @ two.T)
    assert np.array_equal(backend.joint_counts(lines, lines), one.astype(np.int64) @ one.T)
    assert np.array_equal(backend.joint_counts(lines, lines.copy()), one.astype(np.int64) @ one.T)


@every_backend
def test_counts_can_reach_the_number_of_reports(backend: ModuleType) -> None:
    """All bits set: the greatest count that each adder can carry, at sizes around powers of two."""
    for n in (1, 255, 256, 1023, 1024, 4095, 4096, 65_535, 65_536):
        assert backend.oue_counts(np.full((n, 2), 0xFF, dtype=np.uint8), 13).tolist() == [n] * 13


@every_backend
@pytest.mark.parametrize(
    "oracle", [GRR(0.5, 30), OUE(0.5, 30), OLH(0.5, 30, 3)], ids=lambda o: o.protocol
)
@pytest.mark.parametrize("n", [0, 1, 50, 3000])
def test_layout_in_memory_does_not_matter(
    backend: ModuleType, oracle: FrequencyOracle, n: int
) -> None:
    """Every second report, reports in reverse, read-only and unaligned ones count as a plain copy
    does.
    """
    reports = random_reports(oracle, n, np.random.default_rng(5))
    packed = b"\0" + reports.tobytes()
    views = {
        "every second": reports[::2],
        "reversed": reports[::-1],
        "read-only": np.frombuffer(packed[1:], dtype=oracle.wire.dtype),
        "unaligned": np.frombuffer(packed, dtype=np.uint8)[1:]
        .view(oracle.wire.dtype.base)
        .reshape(reports.shape),
    }
    for name, view in views.items():
        assert np.array_equal(
            counts(backend, oracle, view.copy()), counts(backend, oracle, view)
        ), name


@every_backend
def test_item_outside_the_domain_is_rejected(backend: ModuleType) -> None:
    for items in ([3], [0, 1, 2, 4_294_967_295], [1] * 70_000 + [3]):
        with pytest.raises(IndexError):
            backend.grr_counts(np.array(items, dtype="<u4"), 3)


@every_backend
def test_padding_bits_are_not_counted(backend: ModuleType) -> None:
    """What a check would refuse cannot reach another item's count."""
    rows = np.full((2000, 1), 0b1111_1000, dtype=np.uint8)
    with pytest.raises(ReportError):
        OUE(0.5, 3).wire.check(rows)
    assert backend.oue_counts(rows, 3).tolist() == [0, 0, 0]


@every_backend
def test_threads_count_in_parallel(backend: ModuleType) -> None:
    cases = [(GRR(0.5, 60), 50_000), (OUE(0.5, 60), 50_000), (OLH(0.5, 60, 3), 20_000)] * 2
    reports = [
        random_reports(oracle, n, np.random.default_rng(i)) for i, (oracle, n) in enumerate(cases)
    ]
    expected = [definition(oracle, rows) for (oracle, _), rows in zip(cases, reports, strict=True)]
    actual: list[Any] = [None] * len(cases)
    together = threading.Barrier(len(cases))

    def run(i: int) -> None:
        together.wait()
        actual[i] = counts(backend, cases[i][0], reports[i])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(cases))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for wanted_items, got in zip(expected, actual, strict=True):
        assert np.array_equal(wanted_items, got)


@pytest.mark.parametrize(
    "kernel", ["_grr", "_oue", "_olh", "_olh_sized", "_olh_hits", "_ones", "_bits", "_joint"]
)
def test_compiled_kernels_release_the_gil(kernel: str) -> None:
    assert getattr(numba_kernels, kernel).targetoptions["nogil"]


@every_backend
@pytest.mark.parametrize(
    ("oracle", "n"),
    [(GRR(0.5, 100_000), 2_097_152), (OUE(0.5, 100_000), 671), (OLH(0.5, 100, 3), 1_398_101)],
    ids=["grr", "oue", "olh"],
)
def test_counting_eight_mebibytes_takes_little_memory(
    backend: ModuleType, oracle: FrequencyOracle, n: int
) -> None:
    """Temporaries stay below 16 MiB for a whole group of reports."""
    reports = random_reports(oracle, n, np.random.default_rng(1))
    assert reports.nbytes >= 8_387_500
    assert peak_memory(lambda: counts(backend, oracle, reports)) < 16 << 20


@every_backend
def test_counting_many_items_takes_little_memory(backend: ModuleType) -> None:
    """At d = 100,000 the (report, item) matrix of 500 reports has 50 million cells; none is
    kept.
    """
    oracle = OLH(0.5, 100_000, 3)
    reports = random_reports(oracle, 500, np.random.default_rng(1))
    assert peak_memory(lambda: counts(backend, oracle, reports)) < 16 << 20


def peak_memory(function: Callable[[], object]) -> int:
    """Return the greatest number of bytes that were allocated together during the call."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        function()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@given(seed=SEEDS, item=SEEDS)
def test_the_hash_is_xxhash32_of_four_little_endian_bytes(seed: int, item: int) -> None:
    expected = xxhash.xxh32_intdigest(item.to_bytes(4, "little"), seed=seed)
    assert int(hash_items(np.array([seed], np.uint32), np.array([item], np.uint32))[0]) == expected


@given(
    seeds=st.lists(SEEDS, min_size=1, max_size=30),
    d=st.integers(2, 40),
    g=hash_ranges,
    data=st.data(),
)
@settings(max_examples=50)
def test_olh_counts_equal_a_count_with_the_xxhash_package(
    seeds: list[int], d: int, g: int, data: Any
) -> None:
    """The definition in Python integers: item v is supported where (xxh32(v) g) >> 32 is the
    bucket.
    """
    buckets = data.draw(st.lists(st.integers(0, g - 1), min_size=len(seeds), max_size=len(seeds)))
    hashed = [
        [xxhash.xxh32_intdigest(v.to_bytes(4, "little"), seed=s) * g >> 32 for v in range(d)]
        for s in seeds
    ]
    # Some buckets are those of an item, for a random one among many is nearly always nobody's.
    buckets = [hashed[i][0] if i % 2 else b for i, b in enumerate(buckets)]
    expected = [sum(row[v] == b for row, b in zip(hashed, buckets, strict=True)) for v in range(d)]
    reports = OLH(0.5, d, g).reports(np.array(seeds, np.uint32), np.array(buckets))
    for backend in BACKENDS:
        assert counts(backend, OLH(0.5, d, g), reports).tolist() == expected


@given(
    g=st.one_of(st.integers(2, 65_536), st.sampled_from([2**k for k in range(1, 17)])),
    data=st.data(),
)
def test_a_range_of_hashes_is_exactly_a_bucket(g: int, data: Any) -> None:
    """(h - lo) mod 2^32 < width holds at both ends of a bucket's range and at neither neighbour."""
    b = data.draw(st.integers(0, g - 1))
    (lo,), (width,) = (column.tolist() for column in bucket_ranges(np.array([b], np.uint16), g))
    assert width >= 1
    ends = np.array([lo - 1, lo, lo + width - 1, lo + width], dtype=np.int64).astype(np.uint32)
    assert (bucket_of(ends, g) == b).tolist() == [False, True, True, False]
    assert (ends - np.uint32(lo) < np.uint32(width)).tolist() == [False, True, True, False]


def test_buckets_take_scalars_and_broadcast() -> None:
    table = olh_buckets(np.array([[1], [2**32 - 1]], np.uint32), np.arange(3, dtype=np.uint32), 7)
    assert table.shape == (2, 3)
    assert int(OLH(0.5, 3, 7).buckets(2**32 - 1, 2)) == int(table[1, 2])
