"""Cells of the evaluation through a real server agree with those drawn in this process."""

import numpy as np
import pytest
from tests.conftest import ServerProcess

from ldprecover import RecoveryRequest
from ldprecover_client import Client, RefusedError
from ldprecover_experiments.attacks import AttackSpec, parse
from ldprecover_experiments.over_http import round_over_http, run_over_http
from ldprecover_experiments.parameters import Cell, load_genuine_users
from ldprecover_experiments.poisoned_round import PoisonedRound, RoundSimulation, simulate_round
from ldprecover_experiments.runs import Work

pytestmark = pytest.mark.sqlite

Z = 7.0


@pytest.mark.parametrize(
    ("protocol", "attack", "model"),
    [
        ("grr", "mga", "one-hot"),
        ("oue", "aa-diffuse", "one-hot"),
        ("olh", "mga", "sampled"),
        ("olh", "mga", "input"),
    ],
)
def test_run_over_http_agrees_with_its_law(
    server: ServerProcess, protocol: str, attack: str, model: str
) -> None:
    """Both tallies of 20,000 genuine and 1,053 malicious users: reports through the server, and
    counts from the law.

    Their secrets are the same, their other draws independent. The difference of two genuine counts
    has variance v = 2(n_v p(1-p) + (n - n_v) q(1-q)); of two malicious ones v = 2 m pi (1 - pi),
    with the attack's own pi. Being a sum of terms of size 1 at most it exceeds Z sqrt(v) + Z^2/6
    with probability below 2 exp(-Z^2/2) (Bernstein): at Z = 7 and 204 differences in each of four
    rounds 4e-8, and never again for these seeds. What the server recovers is what the library does
    from the same counts.
    """
    genuine_users = load_genuine_users("cities", users=20_000)
    cell = Cell("cities", protocol, parse(attack), model)
    local, simulation = (
        simulate_round(cell, genuine_users, 3),
        RoundSimulation(cell, genuine_users, 3),
    )
    p, q, n, m = simulation.oracle.p, simulation.oracle.q, genuine_users.n, simulation.m
    with (
        Client(server.url, key=server.admin_key) as connection,
        round_over_http(simulation, connection, server.admin_key) as round_,
    ):
        assert (round_.genuine.n, round_.malicious.n, round_.targets) == (n, m, local.targets)
        deviation = np.sqrt(
            2 * (genuine_users.counts * p * (1 - p) + (n - genuine_users.counts) * q * (1 - q))
        )
        assert (
            np.abs(round_.genuine.summary - local.genuine.summary) <= Z * deviation + Z**2 / 6
        ).all()
        pi = simulation.weights
        if model == "input":
            pi = q + pi * (p - q)
        elif protocol == "olh":
            pi = pi + (1 - pi) * q
        deviation = np.sqrt(2 * m * pi * (1 - pi))
        assert (
            np.abs(round_.malicious.summary - local.malicious.summary) <= Z * deviation + Z**2 / 6
        ).all()

        for request in (
            RecoveryRequest("norm-sub"),
            RecoveryRequest("ldprecover"),
            RecoveryRequest("ldprecover", eta=0.1, targets=(1, 2, 3), malicious_model="exact"),
        ):
            theirs, ours = round_.recover(request), PoisonedRound.recover(round_, request)
            assert np.abs(theirs.recovered - ours.recovered).max() < 1e-12
            assert np.allclose(theirs.malicious, ours.malicious, rtol=1e-12, atol=0)
        opened = connection.rounds()[0].id
    with (
        Client(server.url, key=server.admin_key) as connection,
        pytest.raises(RefusedError, match="Round not found"),
    ):
        connection.round(opened)  # the cell's own round is gone


def test_cells_run_on_a_server_of_their_own() -> None:
    """Every method of the in-process run, in the same order."""
    genuine_users = load_genuine_users("cities", users=2_000)
    cells = [
        Cell("cities", "grr", AttackSpec("mga"), "one-hot"),
        Cell("cities", "olh", None, "none", 0.0),
    ]
    work = Work({"cities": genuine_users}, 0)
    done = [result for results in run_over_http(cells, work) for result in results]
    assert [cell for cell, _ in done] == cells
    methods = [[outcome.method for outcome in outcomes] for _, outcomes in done]
    assert {"poisoned", "ldprecover-star", "detection", "oracle"} <= set(methods[0])
    assert "uniform" in methods[1]
