"""The same attacks on Postgres, where a waiting call may hold one of few connections."""

import pytest
from tests.system.anonymous import test_analyses, test_bodies, test_slow_readers
from tests.system.anonymous.conftest import NewTarget
from tests.system.anonymous.harness import ALL, besiege
from tests.system.anonymous.report import assert_alive

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not ALL, reason="STRANGERS=all runs them"),  # phrases: quoted
]


@pytest.mark.parametrize("workers", [1, 2])
def test_no_unread_answers_stop_the_server(new_target: NewTarget, workers: int) -> None:
    target = new_target(workers=workers)
    id = target.grr_round(100_000, 100_000)
    assert_alive(besiege(target, test_slow_readers.asking(300, test_slow_readers.FREQUENCIES)(id)))


@pytest.mark.parametrize("workers", [1, 2])
def test_no_slow_connections_stop_the_server(new_target: NewTarget, workers: int) -> None:
    assert_alive(besiege(new_target(workers=workers), test_slow_readers.mixed(2000)))


@pytest.mark.parametrize("leave", [False, True])
def test_no_long_analysis_stops_the_server(new_target: NewTarget, leave: bool) -> None:
    target = new_target()
    attack = test_analyses.asking(60, test_analyses.EM, "alarms", "methods", leave=leave)
    assert_alive(besiege(target, attack(target.olh_round(300_000, 300))))


def test_no_small_body_that_grows_stops_the_server(new_target: NewTarget) -> None:
    target = new_target()
    assert_alive(
        besiege(target, test_bodies.GZIPPED["many-empty-lists"](target.open_round("grr", 16)))
    )


def test_no_readers_of_the_database_stop_the_server(new_target: NewTarget) -> None:
    """Hundreds of callers that each need a connection to the database."""
    target = new_target()
    id = target.grr_round(1000, 16)
    attack = test_analyses.asking(300, "frequencies", "methods", "alarms", leave=True)
    assert_alive(besiege(target, attack(id)))
