"""Campaigns over HTTP, against a round that unpacks and counts what it is sent."""

import json
import sys
import threading
from collections.abc import Callable

import httpx
import numpy as np
import pytest
from tests.client.messages import round_message

from ldprecover import FrequencyOracle, ParameterError, RoundParameters, Tally
from ldprecover.protocols import PROTOCOLS
from ldprecover_attacker import AA, MGA, Campaign, Manip, Several
from ldprecover_client import RefusedError

URL = "http://round.test"
ITEMS = tuple(f"city {i}" for i in range(30))


class Round(httpx.BaseTransport):
    """One round behind the interface's two calls that a campaign makes."""

    def __init__(self, protocol: str, *, is_open: bool = True) -> None:
        self.parameters = RoundParameters(protocol, 0.5, ITEMS)
        self.oracle: FrequencyOracle = self.parameters.oracle
        self.is_open = is_open
        self.tally = Tally.empty(self.oracle.summary_size)
        self.batches: list[int] = []
        self.keys: set[str] = set()
        self.asked: list[str] = []
        self._lock = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with self._lock:
            self.asked.append(f"{request.method} {request.url.path}")
            if request.method == "GET":
                return self._answer_parameters()
            return self._take(request)

    def _answer_parameters(self) -> httpx.Response:
        return httpx.Response(200, json=round_message(self.parameters, name="cities"))

    def _take(self, request: httpx.Request) -> httpx.Response:
        if not self.is_open:
            problem = {"type": "about:blank", "title": "The round is closed", "status": 409}
            headers = {"Content-Type": "application/problem+json"}
            return httpx.Response(409, content=json.dumps(problem), headers=headers)
        reports = self.oracle.wire.unpack(request.read())
        self.tally += Tally.of(self.oracle, reports)
        self.batches.append(len(reports))
        self.keys.add(request.headers["Idempotency-Key"])
        return httpx.Response(
            202, json={"round": "r1", "accepted": len(reports), "duplicate": False}
        )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_round_counts_the_m_reports_of_the_seed(protocol: str) -> None:
    first, second, other = Round(protocol), Round(protocol), Round(protocol)
    for transport, seed in ((first, 5), (second, 5), (other, 6)):
        result = Campaign(
            URL, "cities", Manip(), 700, seed, batch_size=300, transport=transport
        ).run()
        assert (result.accepted, result.m, result.seed, result.round_id) == (700, 700, seed, "r1")
        assert sorted(transport.batches) == [100, 300, 300]
        assert len(transport.keys) == 3
    assert first.tally == second.tally
    assert first.tally != other.tally
    assert first.tally.n == 700


def test_campaign_and_population_use_separate_streams() -> None:
    """A seed's streams 0 and 1 are the population's, and nobody is surprised who draws targets from
    the seed itself.
    """
    transport = Round("oue")
    Campaign(URL, "cities", Manip(), 500, 5, transport=transport).run()
    for stream in ((), (0,), (1,)):
        rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=stream))
        assert (
            Tally.of(transport.oracle, Manip().reports(transport.oracle, 500, rng))
            != transport.tally
        )


def test_reports_go_to_the_id_behind_a_name() -> None:
    transport = Round("grr")
    Campaign(URL, "current", MGA([0]), 5, 1, transport=transport).run()
    assert transport.asked == ["GET /rounds/current/parameters", "POST /rounds/r1/reports"]


def test_campaign_resolves_labels_of_targets() -> None:
    transport = Round("grr")
    attack = Several([MGA(["city 7"], model="sampled"), MGA([9])])
    result = Campaign(URL, "cities", attack, 100, 1, transport=transport).run()
    assert result.attack == Several([MGA([7], model="sampled"), MGA([9])])
    assert np.flatnonzero(transport.tally.summary).tolist() == [7, 9]


def test_defaults_that_depend_on_the_round_are_recorded() -> None:
    result = Campaign(URL, "cities", Manip(), 100, 1, transport=Round("olh")).run()
    assert result.attack == Manip(15)


def test_an_attack_that_does_not_fit_sends_nothing() -> None:
    transport = Round("oue")
    for attack in (MGA(["Atlantis"]), MGA([30]), Manip(31)):
        with pytest.raises(ParameterError):
            Campaign(URL, "cities", attack, 10, 1, transport=transport).run()
    assert transport.tally.n == 0
    assert not any(call.startswith("POST") for call in transport.asked)


def test_progress_counts_up_to_m() -> None:
    updates: list[tuple[int, int]] = []
    progress: Callable[[int, int], None] = lambda done, total: updates.append((done, total))  # noqa: E731
    Campaign(URL, "cities", AA(), 250, 1, batch_size=100, transport=Round("grr")).run(progress)
    assert [total for _, total in updates] == [250] * 4
    assert [done for done, _ in updates] == sorted(done for done, _ in updates)
    assert (updates[0], updates[-1]) == ((0, 250), (250, 250))


def test_a_bar_may_show_the_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert Campaign(URL, "cities", AA(), 250, 1, transport=Round("grr")).run("bar").accepted == 250
    assert "malicious users report" in capsys.readouterr().err


def test_no_malicious_user_sends_nothing() -> None:
    transport = Round("oue")
    assert Campaign(URL, "cities", MGA([1]), 0, 1, transport=transport).run().accepted == 0
    assert transport.asked == ["GET /rounds/cities/parameters"]


def test_a_closed_round_refuses_the_campaign() -> None:
    with pytest.raises(RefusedError, match="The round is closed"):
        Campaign(URL, "cities", MGA([1]), 10, 1, transport=Round("grr", is_open=False)).run()


@pytest.mark.parametrize(("m", "seed"), [(-1, 0), (1.5, 0), (True, 0), (5, -1), (5, None)])
def test_rejects_invalid_number_of_users_or_seed(m: int, seed: int) -> None:
    with pytest.raises(ParameterError, match="must be an integer from 0"):
        Campaign(URL, "cities", MGA([1]), m, seed)


def test_a_server_key_is_not_shown() -> None:
    assert "secret" not in repr(Campaign(URL, "cities", MGA([1]), 1, 1, key="secret-admin-key"))
