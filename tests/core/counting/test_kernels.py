"""Support counting: numpy and numba against the definition, to the bit. Without numba these tests
fail.
"""

import tracemalloc
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ReportError
from ldprecover.counting import (
    numba_kernels,
    numpy_kernels,
    packed_lines,
)
from ldprecover.counting.xxhash32 import bucket_of, bucket_ranges, hash_items
from ldprecover.crafting import crafter_of

BACKENDS = [numpy_kernels, numba_kernels]
SEEDS = st.integers(0, 2**32 - 1)

every_backend = pytest.mark.parametrize("backend", BACKENDS, ids=["numpy", "numba"])
domain_sizes = st.one_of(st.integers(2, 40), st.sampled_from([63, 64, 65, 490, 1000, 8200]))
hash_ranges = st.one_of(
    st.integers(2, 20), st.sampled_from([255, 256, 257, 22_028, 65_535, 65_536])
)


def case_name(value: Any) -> str:
    is_oracle = isinstance(value, FrequencyOracle)
    return f"{value.protocol}-d{value.domain_size}" if is_oracle else str(value)


def counts(backend: ModuleType, oracle: FrequencyOracle, reports: Any) -> Any:
    """Count with this backend, whichever the package would choose."""
    if isinstance(oracle, OLH):
        return backend.olh_counts(
            reports["seed"], reports["bucket"], oracle.domain_size, oracle.hash_range
        )
    if isinstance(oracle, OUE):
        return backend.oue_counts(reports, oracle.domain_size)
    return backend.grr_counts(reports, oracle.domain_size)


def definition(oracle: FrequencyOracle, reports: Any) -> tuple[Any, Any]:
    """Sum the support matrix, 1[v in S(z)], along both axes, over a few reports at a time."""
    blocks = [oracle.supports(reports[i : i + 500]) for i in range(0, max(len(reports), 1), 500)]
    by_item = sum(block.sum(axis=0) for block in blocks)
    return by_item, np.concatenate([block.sum(axis=1) for block in blocks])


@pytest.mark.parametrize("bits", [0, 1, 2, 3, 4, 5, 7, 10])
def test_the_walsh_hadamard_transform_is_its_definition(bits: int) -> None:
    size = 1 << bits
    values = np.random.default_rng(bits).integers(0, 1000, size)
    numbers = np.arange(size)
    signs = 1 - 2 * (np.bitwise_count(numbers[:, None] & numbers).astype(np.int64) & 1)
    assert np.array_equal(numpy_kernels.walsh_hadamard(values), signs @ values)


@pytest.mark.parametrize("bits", [4, 17])
@pytest.mark.parametrize("total", [1 << 20, (1 << 53) + 1, (1 << 62) + 12_345])
def test_transform_is_its_own_inverse_beyond_float_precision(bits: int, total: int) -> None:
    size = 1 << bits
    values = np.random.default_rng(1).integers(0, total // size, size)
    values[3] += total - int(values.sum())
    transformed = numpy_kernels.walsh_hadamard(values)
    assert transformed[0] == total
    # Modulo 2^64, as sums of integers are: at most `total` each, so that the first is exact.
    with np.errstate(over="ignore"):
        again = numpy_kernels.walsh_hadamard(transformed)
    assert np.array_equal(again, values * size)


def assert_counted(backend: ModuleType, oracle: FrequencyOracle, reports: Any) -> None:
    by_item, by_report = definition(oracle, reports)
    actual = counts(backend, oracle, reports)
    assert actual.dtype == np.int64
    assert np.array_equal(by_item, actual)
    if isinstance(oracle, OLH):
        sized = backend.olh_counts_and_sizes(
            reports["seed"], reports["bucket"], oracle.domain_size, oracle.hash_range
        )
        assert np.array_equal(by_item, sized[0])
        assert np.array_equal(by_report, sized[1])
        assert sized[1].dtype == np.int64


oracles = st.one_of(
    st.builds(GRR, st.just(0.5), domain_sizes),
    st.builds(OUE, st.just(0.5), domain_sizes),
    st.builds(OLH, st.just(0.5), domain_sizes, hash_ranges),
)


@given(oracle=oracles, n=st.integers(0, 300), seed=SEEDS)
def test_both_backends_equal_the_definition(oracle: FrequencyOracle, n: int, seed: int) -> None:
    reports = crafter_of(oracle).uniform_reports(n, np.random.default_rng(seed))
    for backend in BACKENDS:
        assert_counted(backend, oracle, reports)


@every_backend
@pytest.mark.parametrize(
    ("oracle", "n"),
    [
        (GRR(0.5, 490), 2 * 65_536 + 3),
        (GRR(0.5, 100_000), 300),
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
        (OLH(0.5, 70_000, 3), 40),
        (OLH(0.5, 100_000, 7), 1),
    ],
    ids=case_name,
)
def test_counts_equal_the_definition_across_blocks(
    backend: ModuleType, oracle: FrequencyOracle, n: int
) -> None:
    """Sizes on both sides of every block, line and column that a kernel cuts the work into."""
    assert_counted(backend, oracle, crafter_of(oracle).uniform_reports(n, np.random.default_rng(n)))


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
    ids=case_name,
)
def test_supported_items_match_the_definition(
    backend: ModuleType, oracle: FrequencyOracle, n: int, k: int
) -> None:
    """On both sides of every block; items in any order, some of them twice."""
    rng = np.random.default_rng(n)
    reports = crafter_of(oracle).uniform_reports(n, rng)
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
    rows = crafter_of(OUE(0.5, d)).uniform_reports(n, np.random.default_rng(d))
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
    reports = crafter_of(oracle).uniform_reports(n, np.random.default_rng(5))
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


@pytest.mark.parametrize(
    "kernel", ["_grr", "_oue", "_olh", "_olh_hits", "_ones", "_bits", "_joint"]
)
def test_compiled_kernels_release_the_gil(kernel: str) -> None:
    assert getattr(numba_kernels, kernel).targetoptions["nogil"]


@every_backend
@pytest.mark.parametrize(
    ("oracle", "n"),
    [
        (GRR(0.5, 100_000), 2_097_152),
        (OUE(0.5, 100_000), 671),
        (OLH(0.5, 100, 3), 1_398_101),
        (OLH(0.5, 100_000, 3), 500),
    ],
    ids=case_name,
)
def test_counting_takes_little_memory(backend: ModuleType, oracle: FrequencyOracle, n: int) -> None:
    """Temporaries of 8 MiB of reports, or of 50 million (report, item) pairs, are below 16 MiB."""
    reports = crafter_of(oracle).uniform_reports(n, np.random.default_rng(1))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        counts(backend, oracle, reports)
        assert tracemalloc.get_traced_memory()[1] - before < 16 << 20
    finally:
        tracemalloc.stop()


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
