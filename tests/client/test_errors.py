"""What an error says of itself."""

import pytest

from ldprecover_client import RefusedError


@pytest.mark.parametrize(
    ("title", "detail", "said"),
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
def test_a_title_and_a_detail_do_not_say_the_same_twice(
    title: str, detail: str | None, said: str
) -> None:
    assert str(RefusedError(409, title, detail)) == said


def test_a_bad_report_is_named_by_its_position() -> None:
    assert str(RefusedError(422, "A report is malformed", "too short", position=3)) == (
        "A report is malformed (report 3): too short"
    )
