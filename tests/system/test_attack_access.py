"""What access does to an attacker: without a key one report a request, with tickets as many as it
holds.
"""

import pytest
from tests.conftest import ServerProcess

from ldprecover import ParameterError
from ldprecover_attacker import MGA, Campaign
from ldprecover_client import Client, RefusedError

pytestmark = pytest.mark.sqlite

TARGETS = [3, 7]


def test_anonymous_attacker_sends_one_report_a_request(server: ServerProcess) -> None:
    id = server.open_round("olh", 0.5, domain_size=20)["id"]
    with pytest.raises(RefusedError) as caught:
        Campaign(server.url, id, MGA(TARGETS), 40, seed=1).run()
    assert (caught.value.status, caught.value.slug) == (403, "report-key-needed")
    assert server.frequencies(id)["n"] == 0
    sent = Campaign(server.url, id, MGA(TARGETS), 60, seed=1, batch_size=1).run()
    frequencies = server.frequencies(id)
    assert sent.accepted == frequencies["n"] == 60
    # Each crafted report supports both targets, as nearly as the seeds tried allow; by chance one
    # in g = 3 would.
    assert min(frequencies["counts"][t] for t in TARGETS) > 55


def test_attacker_sends_one_report_a_ticket(server: ServerProcess) -> None:
    id = server.open_round("olh", 0.5, domain_size=20, access="ticket")["id"]
    with Client(server.url, key=server.admin_key) as admin:
        tickets = admin.mint_tickets(id, 30)
    with pytest.raises(ParameterError, match="31 malicious users"):
        Campaign(server.url, id, MGA(TARGETS), 31, seed=1, tickets=tickets)
    assert Campaign(server.url, id, MGA(TARGETS), 30, seed=1, tickets=tickets).run().accepted == 30
    # Once more with other reports: each ticket is used up.
    with pytest.raises(RefusedError) as caught:
        Campaign(server.url, id, MGA(TARGETS), 30, seed=2, tickets=tickets).run()
    assert (caught.value.status, caught.value.slug) == (409, "idempotency-key-reused")
    with pytest.raises(RefusedError) as caught:
        Campaign(server.url, id, MGA(TARGETS), 30, seed=2, key=server.admin_key).run()
    assert (caught.value.status, caught.value.slug) == (401, "invalid-ticket")
    assert server.frequencies(id)["n"] == 30
