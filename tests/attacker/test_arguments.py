"""Checks of the attacks' arguments."""

import numpy as np
import pytest

from ldprecover import ParameterError
from ldprecover_attacker.arguments import check_search


@pytest.mark.parametrize("search", [0, -1, 1_000_001, 2.0, True, "all", None])
def test_rejects_search_out_of_range(search: object) -> None:
    with pytest.raises(ParameterError, match='from 1 to 1000000, or "exhaustive"'):
        check_search(search)


@pytest.mark.parametrize("search", [1, 1_000, 1_000_000, "exhaustive", np.int64(5)])
def test_accepts_search_in_range(search: object) -> None:
    check_search(search)
