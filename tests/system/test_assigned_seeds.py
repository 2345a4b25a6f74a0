"""A poisoned round with assigned seeds over HTTP: what crafted reports gain."""

import numpy as np
import pytest
from tests.conftest import ServerProcess

from ldprecover import Estimates, Tally
from ldprecover.rounds.tickets import ticket_bits
from ldprecover_attacker import MGA, Campaign
from ldprecover_client import Client, Ledger, Population, RefusedError, Reporter
from ldprecover_client.seeds import with_tickets

pytestmark = pytest.mark.sqlite

TARGETS = [7, 8, 9, 10, 11]
GENUINE, MALICIOUS = 500, 100


def test_assigned_seeds_limit_the_gain_to_their_law(server: ServerProcess) -> None:
    with Client(server.url, key=server.admin_key) as admin:
        opened = admin.open_round(
            protocol="llh",
            epsilon=1.0,
            domain_size=12,
            hash_range=2,
            access="ticket",
            assigned_seeds=True,
            tickets=1600,
        )
        tickets = admin.mint_tickets(opened.id, GENUINE + MALICIOUS + 1)
        oracle = opened.parameters.oracle
        genuine_tickets, malicious_tickets, (one,) = np.split(
            np.array(tickets), [GENUINE, GENUINE + MALICIOUS]
        )
        users = Population(np.arange(12, 0, -1), GENUINE, 1)
        users.report_to(server.url, opened.id, tickets=genuine_tickets.tolist(), progress=None)
        clean = admin.frequencies(opened.id)
        honest = Tally.of(oracle, users.reports(with_tickets(oracle, genuine_tickets.tolist())))
        assert clean.counts.tolist() == honest.counts(oracle).tolist()
        assert clean.frequencies is not None
        assert clean.frequencies.tolist() == Estimates.of(oracle, honest).frequencies.tolist()

        attack = MGA(TARGETS)
        assert (
            Campaign(
                server.url, opened.id, attack, MALICIOUS, 2, tickets=malicious_tickets.tolist()
            )
            .run()
            .accepted
            == MALICIOUS
        )
        poisoned = admin.frequencies(opened.id).frequencies
        assert poisoned is not None
        gain = float((poisoned - clean.frequencies)[TARGETS].sum())
        law = attack.gain(oracle, users.frequencies, MALICIOUS / (GENUINE + MALICIOUS))
        # Of few reports: 7 standard deviations of the sum of five estimates, of the genuine and the
        # malicious ones.
        noise = (
            7
            * np.sqrt(
                5 * (float(oracle.variance(0.0, GENUINE)) + float(oracle.variance(0.0, MALICIOUS)))
            )
            / 6
        )
        assert abs(gain - law) <= noise

        reporter = Reporter(server.url, opened.id, ledger=Ledger.in_memory(), ticket=str(one))
        assert reporter.report("3").state == "accepted"
        assert reporter.ledger.seed(opened.id) == oracle.seed_of(ticket_bits(str(one)))
        with pytest.raises(RefusedError) as caught:
            admin.export(opened.id)
        assert caught.value.slug == "too-few-reports"
        admin.close_round(opened.id)
        recovered = admin.recover(
            opened.id, targets=["7", "8", "9", "10", "11"], malicious_model="solved", eta=0.2
        )
    assert abs(sum(recovered["recovered"]) - 1) < 1e-9
