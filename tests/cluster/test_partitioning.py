"""How a round is divided into hours and parts."""

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
        ([5, 5_000, 5_000], [0, 0, 2]),  # with those after it, for want of some before
        ([5_000, 5, 5_000], [0, 0, 2]),  # with those before it, so that few go early
        ([5_000, 400, 400, 400, 400, 5_000], [0, 1, 1, 1, 1, 5]),
        ([5_000, 400, 400, 400, 5], [0, 1, 1, 1, 1]),
        ([1, 1_000, 1, 1], [0, 0, 0, 0]),
    ],
)
def test_hours_of_few_reports_are_joined(numbers: list[int], folders: list[int]) -> None:
    assert list(partitioning.merge_small_hours(dict(enumerate(numbers))).values()) == folders


def test_parts_are_of_a_second_of_counting_and_no_larger_than_64_mib(
    parameters: RoundParameters,
) -> None:
    """A billion pairs are about a second; a part's size is that expected, and eight standard
    deviations.
    """
    for d in (11, 1_024, 100_000):
        oracle = frequency_oracle(parameters.protocol, 1.0, d)
        each = row_bytes(oracle.wire.dtype)
        for n in (1, 10**6, 10**9):
            mean = n / partitioning.part_count(oracle, n)
            most = mean + 7 * math.sqrt(mean)
            assert most * d <= max(7.5 * d, 1 << 30)
            assert most * each <= 64 << 20
            if n == 10**9:
                assert 2 * most * d >= 1 << 30 or 2 * most * each >= 63 << 20
