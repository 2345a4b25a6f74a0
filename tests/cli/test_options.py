"""What a text on the command line means."""

import pytest

from ldprecover_cli.errors import UsageError
from ldprecover_cli.options import search_budget


def test_a_search_budget_is_a_number_or_exhaustive() -> None:
    assert [search_budget(text) for text in (None, "exhaustive", "50")] == [None, "exhaustive", 50]
    with pytest.raises(UsageError, match="exhaustive"):
        search_budget("all")
