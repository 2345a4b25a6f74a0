"""Division of a round into hours and parts."""

import math

import pytest

from ldprecover import RoundParameters, frequency_oracle
from ldprecover_cluster import partitioning
from ldprecover_cluster.columns import row_bytes


@pytest.mark.parametrize(
    ("numbers", "folders"),
    [
        ([], []),
        ([5], [0]),
        ([5, 5], [0, 0]),
        ([999, 1, 999, 1], [0, 0, 2, 2]),
        ([1_000, 1_000], [0, 1]),
        ([5, 5_000, 5_000], [0, 0, 2]),  # none are before it, so it joins the next
        ([5_000, 5, 5_000], [0, 0, 2]),  # joins the hour before it, so few are deleted early
        ([5_000, 400, 400, 400, 400, 5_000], [0, 1, 1, 1, 1, 5]),
        ([5_000, 400, 400, 400, 5], [0, 1, 1, 1, 1]),
        ([1, 1_000, 1, 1], [0, 0, 0, 0]),
    ],
)
def test_merges_hours_with_few_reports(numbers: list[int], folders: list[int]) -> None:
    assert list(partitioning.merge_small_hours(dict(enumerate(numbers))).values()) == folders


def test_parts_take_a_second_to_count_and_64_mib(parameters: RoundParameters) -> None:
    """A billion pairs take about a second. A part exceeds its mean by at most 8 deviations."""
    for d in (11, 1_024, 100_000):
        oracle = frequency_oracle(parameters.protocol, 1.0, d)
        size = row_bytes(oracle.wire.dtype)
        for n in (1, 10**6, 10**9):
            mean = n / partitioning.part_count(oracle, n, n)
            largest = mean + 7 * math.sqrt(mean)
            # More than 65,536 parts would be a list that readers reject.
            assert largest * d <= max(7.5 * d, 1 << 30, (n / (1 << 16) + 1) * d)
            assert largest * size <= 64 << 20
            if n == 10**9:
                assert 2 * largest * d >= 1 << 30 or 2 * largest * size >= 63 << 20
