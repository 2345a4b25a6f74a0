"""Messages of errors."""

import pytest

from ldprecover_client import RefusedError


@pytest.mark.parametrize(
    ("title", "detail", "message"),
    [
        ("No such round", "no round has the name 'x'", "No such round: no round has the name 'x'"),
        ("The round is closed", None, "The round is closed"),
        ("The round is closed", "the round is closed", "The round is closed"),
        (
            "The round is closed",
            "the round is closed; nothing is stored",
            "The round is closed; nothing is stored",
        ),
        ("Not", "nothing", "Not: nothing"),
    ],
)
def test_detail_does_not_repeat_title(title: str, detail: str | None, message: str):
    assert str(RefusedError(409, title, detail)) == message
