"""How many hash seeds an attack may try."""

import numpy as np
import pytest

from ldprecover import ParameterError
from ldprecover_attacker.search import check_search


@pytest.mark.parametrize("search", [0, -1, 1_000_001, 2.0, True, "all", None])
def test_a_search_that_is_none_is_refused(search: object) -> None:
    with pytest.raises(ParameterError, match='from 1 to 1000000, or "exhaustive"'):
        check_search(search)


@pytest.mark.parametrize("search", [1, 1_000, 1_000_000, "exhaustive", np.int64(5)])
def test_a_search_within_its_range_is_taken(search: object) -> None:
    check_search(search)
