"""The filters on honest reports: nothing is dropped, and no set of items has evidence.

The evidence of a set is a p-value with the price of all sets: at most one round in twenty is below
the level.
"""

import math

import numpy as np
import pytest
from tests.core.recovery.poisoned_round import play

from ldprecover import OLH, OUE, FrequencyOracle
from ldprecover.recovery.unmixing import filter_reports
from ldprecover.recovery.unmixing.evidence import LEVEL
from ldprecover.reports import ReportSource

pytestmark = pytest.mark.statistical

D, N = 102, 20_000
SHAPES = {
    "flat": np.ones(D),
    "zipf": 1 / np.arange(1, D + 1) ** 1.5,
    "geometric": 0.9 ** np.arange(D),
    "one item": np.append(0.9, np.full(D - 1, 0.1 / (D - 1))),
}


@pytest.mark.parametrize("oracle", [OUE(0.5, D), OLH(0.5, D, 3)], ids=lambda o: o.protocol)
@pytest.mark.parametrize("shape", SHAPES)
def test_filters_spare_honest_reports(oracle: FrequencyOracle, shape: str) -> None:
    """The seeds are fixed: what is seen is asserted. Of 32 rounds a filter that drops reports of a
    tenth would spare all with probability .03.
    """
    for seed in range(4):
        reports = play(oracle, SHAPES[shape], N, seed=[90, seed]).data
        result = filter_reports(ReportSource(oracle, reports))
        assert (result.n, result.suspects, result.dropped, result.notes) == (N, {}, (), ())
        assert result.log_p is not None
        assert result.log_p > math.log(LEVEL)
