"""Campaigns over HTTP, against a fake server that unpacks and stores what it is sent."""

import numpy as np
import pytest
from tests.client.conftest import Collector

from ldprecover import ParameterError, RoundParameters, Tally
from ldprecover.protocols import PROTOCOLS
from ldprecover_attacker import MGA, Attack, Campaign, Manip, Several

ITEMS = tuple(f"city {i}" for i in range(30))


def open_round(protocol: str, **options) -> Collector:
    collector = Collector()
    collector.add(protocol, items=ITEMS, **options)
    return collector


def attack_round(
    collector: Collector, attack: Attack, m: int, seed: int = 1, **options
) -> Campaign:
    return Campaign(collector.client(), "current", attack, m, seed, **options)


def calls(collector: Collector) -> list[str]:
    return [f"{request.method} {request.url.path}" for request in collector.requests]


def tally_of(collector: Collector) -> Tally:
    oracle = RoundParameters(collector.rounds["r1"]["protocol"], 0.5, ITEMS).oracle
    empty = Tally.empty(oracle.summary_size)
    bodies = collector.stored.values()
    return sum((Tally.of(oracle, oracle.wire.unpack(body)) for body in bodies), start=empty)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_round_counts_the_m_reports_of_the_seed(protocol: str):
    tallies = []
    for seed in (5, 5, 6):
        collector = open_round(protocol)
        result = attack_round(collector, Manip(), 700, seed, batch_size=300).run()
        assert (result.accepted, result.m, result.seed, result.round_id) == (700, 700, seed, "r1")
        assert len(collector.stored) == 3
        tallies.append(tally_of(collector))
    assert tallies[0] == tallies[1] != tallies[2]
    assert tallies[0].n == 700


def test_campaign_and_population_use_separate_streams():
    """Streams 0 and 1 of a seed are the population's; a caller may use the seed itself."""
    collector, oracle = open_round("oue"), RoundParameters("oue", 0.5, ITEMS).oracle
    attack_round(collector, Manip(), 500, 5).run()
    for stream in ((), (0,), (1,)):
        rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=stream))
        assert Tally.of(oracle, Manip().reports(oracle, 500, rng)) != tally_of(collector)


def test_reports_go_to_the_id_behind_a_name():
    collector = open_round("grr")
    attack_round(collector, MGA([0]), 5).run()
    assert calls(collector) == ["GET /rounds/current/parameters", "POST /rounds/r1/reports"]


def test_labels_and_defaults_of_the_round_are_recorded():
    attack = Several([Manip(), MGA(["city 7"])])
    result = attack_round(open_round("olh"), attack, 100).run()
    assert result.attack == Several([Manip(15), MGA([7])])


def test_attack_that_does_not_fit_sends_nothing():
    collector = open_round("oue")
    for attack in (MGA(["Atlantis"]), MGA([30]), Manip(31)):
        with pytest.raises(ParameterError):
            attack_round(collector, attack, 10).run()
    assert not collector.posts


def test_no_malicious_user_sends_nothing():
    collector = open_round("oue")
    assert attack_round(collector, MGA([1]), 0).run().accepted == 0
    assert calls(collector) == ["GET /rounds/current/parameters"]


@pytest.mark.parametrize(("m", "seed"), [(-1, 0), (1.5, 0), (True, 0), (5, -1), (5, None)])
def test_rejects_invalid_number_of_users_or_seed(m: int, seed: int):
    with pytest.raises(ParameterError, match="must be an integer from 0"):
        Campaign(Collector.URL, "cities", MGA([1]), m, seed)


def test_repr_hides_the_key():
    assert "secret" not in repr(
        Campaign(Collector.URL, "cities", MGA([1]), 1, 1, key="secret-admin-key")
    )
