"""Whole rounds over HTTP: genuine users, malicious users, and what the server makes of them."""

import numpy as np
import pytest
from tests.conftest import ServerProcess

from ldprecover import RoundParameters, Tally
from ldprecover_attacker import MGA
from ldprecover_client import Population, submit_reports

pytestmark = pytest.mark.sqlite

D = 102
TARGETS = [3, 40, 77]


@pytest.mark.parametrize("protocol", ["grr", "oue", "olh"])
def test_a_poisoned_round_is_estimated_as_theory_says(server: ServerProcess, protocol: str) -> None:
    """Genuine users from a seed, then 5 % crafted reports, all through the client library.

    With the genuine values and the malicious reports known, E f~_Z(v) = (n f_X(v) + m f~_Y(v))/(n +
    m), and only the perturbation of the genuine reports varies: its variance is (f p(1-p) + (1-f)
    q(1-q))/(n (p-q)^2) at the true f, times (n/(n + m))^2. Six standard deviations: beyond them by
    chance once in 10^6 over the 306 estimates, and never again for these seeds.
    """
    items = tuple(f"city {i}" for i in range(D))
    users = Population(1 / np.arange(1, D + 1), 20_000, seed=11, items=items)
    opened = server.open_round(protocol, 0.5, items=items)
    users.report_to(server.url, opened["id"], key=server.admin_key, progress=None)
    oracle = RoundParameters(protocol, 0.5, items, opened["hash_range"]).oracle
    clean = server.frequencies(opened["id"])
    assert clean["n"] == users.n

    m = 1_000
    malicious = MGA(TARGETS).reports(oracle, m, np.random.default_rng(12))
    submit_reports(server.url, opened["id"], malicious, key=server.admin_key, batch_size=300)
    poisoned = server.frequencies(opened["id"])
    n = users.n + m
    assert poisoned["n"] == n
    gained = np.array(poisoned["counts"]) - np.array(clean["counts"])
    assert np.array_equal(gained, Tally.of(oracle, malicious).summary)

    p, q, f = oracle.p, oracle.q, users.frequencies
    expected = (users.n * f + m * oracle.estimate(oracle.support_counts(malicious), m)) / n
    deviation = np.sqrt((f * p * (1 - p) + (1 - f) * q * (1 - q)) / users.n) / (p - q) * users.n / n
    estimates = np.array(poisoned["frequencies"])
    assert (np.abs(estimates - expected) < 6 * deviation).all()
    assert (estimates[TARGETS] - np.array(clean["frequencies"])[TARGETS] > 0).all()

    def error(targets: list[int]) -> float:
        answer = server.http.post(
            f"/rounds/{opened['id']}/recover", json={"targets": targets, "eta": 0.05}
        ).json()
        recovered = np.array(answer["recovered"])
        assert recovered.min() >= 0
        assert abs(recovered.sum() - 1) < 1e-12
        return float(np.mean((recovered - f) ** 2))

    raw = float(np.mean((estimates - f) ** 2))
    assert error([]) < raw
    assert error(TARGETS) < raw


def test_olh_reports_have_the_support_probabilities_p_and_q(
    server: ServerProcess,
) -> None:
    """Through the client's operating-system randomness, the real hash and the real server.

    All of 300,000 users hold one item, so its count is Binomial(n, p) and every other Binomial(n,
    1/g). At 6.5 standard deviations a correct system fails once in 10^8 runs over the 102 counts.
    """
    n, item = 300_000, 17
    opened = server.open_round("olh", 0.5, domain_size=D)
    oracle = RoundParameters("olh", 0.5, tuple(opened["items"]), opened["hash_range"]).oracle
    reports = oracle.perturb(np.full(n, item))
    submit_reports(server.url, opened["id"], reports, key=server.admin_key, batch_size=100_000)
    frequencies = server.frequencies(opened["id"])
    supported = np.array(frequencies["counts"]) / n
    expected = np.full(D, 1 / opened["hash_range"])
    expected[item] = opened["p"]
    assert (np.abs(supported - expected) < 6.5 * np.sqrt(expected * (1 - expected) / n)).all()
    # 32 random bits of seed: 300,000 seeds share one in n^2/2^33 = 10.5 pairs; 60 would be far from
    # random.
    assert n - len(np.unique(reports["seed"])) < 60
