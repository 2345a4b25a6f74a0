"""Calls that take the server long to answer, by callers that wait, and by callers that have
left.
"""

import json
from collections.abc import Callable, Mapping

import pytest
from tests.system.anonymous.attackers import Attackers, get, post
from tests.system.anonymous.conftest import NewTarget
from tests.system.anonymous.harness import ALL, Attack, besiege, variations
from tests.system.anonymous.report import assert_alive

pytestmark = pytest.mark.sqlite

EM = {"method": "em", "options": {"iterations": 1000, "tolerance": 0.0}}

MakeAttack = Callable[[str], Attack]


def asking(
    n: int, *bodies: Mapping[str, object] | str, leave: bool = False, read: bool = True
) -> MakeAttack:
    """Ask on n connections for each of these: recoveries, or paths below a round."""

    def make(round: str) -> Attack:
        calls = [
            get(f"/rounds/{round}/{body}") if isinstance(body, str) else _recover(round, body)
            for body in bodies
        ]

        async def attack(attackers: Attackers) -> None:
            talks = [
                attackers.leaves(call) if leave else attackers.sends(call, read=read)
                for call in calls
            ]
            pause = 2.0 if leave else 0.5
            await attackers.together(*(attackers.keep_busy(n, talk, pause=pause) for talk in talks))

        return attack

    return make


def _recover(round: str, body: Mapping[str, object]) -> bytes:
    return post(f"/rounds/{round}/recover", json.dumps(body).encode())


METHODS: tuple[dict[str, object], ...] = (
    {"method": "k-means", "options": {"subsets": 200, "rate": 1.0}},
    {"method": "ldprecover-km", "options": {"subsets": 200, "rate": 1.0}},
    {"method": "diffstats"},
    {"method": "fiad", "options": {"least": 12}},
    {
        "method": "detection",
        "targets": list(range(0, 300, 3)),
        "options": {"match": "all"},
    },
    {"method": "conditional-probability", "targets": list(range(0, 300, 3))},
    {"method": "mle"},
)


@variations(
    {"em-and-leave": asking(10, EM, leave=True)},
    {
        "many-em": asking(100, EM),
        "many-em-unread": asking(100, EM, read=False),
        "every-method-and-leave": asking(10, *METHODS, leave=True),
        "alarms": asking(20, "alarms"),
        "alarms-at-every-rate": asking(10, *(f"alarms?rate=0.{i:04d}" for i in range(1, 11))),
        "everything": asking(4, EM, *METHODS, "alarms", "methods", "frequencies", leave=True),
    },
)
def test_no_long_analysis_stops_the_server(new_target: NewTarget, attack: MakeAttack) -> None:
    """Of 300,000 OLH reports; the method em alone would take minutes."""
    target = new_target()
    assert_alive(besiege(target, attack(target.olh_round(300_000, 300))))


WIDE = 100_000


@variations(
    {"all": asking(60, "alarms", "methods", "frequencies", {}, leave=True)},
    {
        "alarms": asking(60, "alarms", leave=True),
        "alarms-unread": asking(500, "alarms", read=False),
        "frequencies": asking(500, "frequencies", leave=True),
        "recover": asking(500, {}, leave=True),
    },
)
@pytest.mark.parametrize("n", [0, 100_000] if ALL else [100_000])
def test_abandoned_reads_of_a_wide_round_do_not_stop_the_server(
    new_target: NewTarget, attack: MakeAttack, n: int
) -> None:
    target = new_target()
    assert_alive(besiege(target, attack(target.grr_round(n, WIDE))))


@variations(
    {"detection": asking(10, {"method": "detection", "targets": [0, 1, 2]})},
    {
        "em": asking(10, EM),
        "alarms": asking(60, "alarms", leave=True),
    },
)
def test_no_reading_of_large_segments_stops_the_server(
    new_target: NewTarget, attack: MakeAttack
) -> None:
    """Of OUE reports over 100,000 items, 16 MB a submission."""
    target = new_target()
    assert_alive(besiege(target, attack(target.oue_round(1300, WIDE, submissions=6 if ALL else 3))))


@variations(
    {"methods-and-alarms": asking(40, "methods", "alarms", leave=True)},
    {
        "alarms": asking(100, "alarms"),
        "unread": asking(200, "methods", "alarms", read=False),
        "recover": asking(40, {}, {"method": "diffstats"}, EM, leave=True),
    },
)
def test_no_round_of_very_many_segments_stops_the_server(
    new_target: NewTarget, attack: MakeAttack
) -> None:
    target = new_target()
    assert_alive(besiege(target, attack(target.round_of_segments(20_000))))
