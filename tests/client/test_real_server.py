"""The client against a real server process."""

import pytest
from tests.conftest import ServerProcess

from ldprecover import Tally
from ldprecover.rounds.tickets import assigned_round
from ldprecover_client import Client, Population, RefusedError, load_dataset

QUESTIONS = [
    {"question": f"Which {noun}?", "protocol": "grr", "epsilon": 1.0, "items": ("a", "b")}
    for noun in ("system", "editor", "shell")
]


def test_population_is_counted_exactly(admin: Client, server: ServerProcess):
    cities = load_dataset("cities")
    round_ = admin.open_round(protocol="olh", epsilon=0.5, items=cities.items)
    users = Population.of(cities, 25_000, seed=1)
    users.report_to(server.url, round_.id, key=server.admin_key, batch_size=3000, progress=None)
    tally = Tally.of(round_.parameters.oracle, users.reports(round_.parameters.oracle))
    answer = admin.frequencies(round_.id)
    assert answer.n == admin.round(round_.id).n == 25_000
    assert answer.counts.tolist() == tally.summary.tolist()
    assert admin.recover(round_.id, targets=["Boston, MA"]).recovered.sum() == pytest.approx(1)


def test_rounds_are_opened_listed_deleted(admin: Client):
    round_ = admin.open_round(protocol="grr", epsilon=1, domain_size=3)
    assert (round_.parameters.items, round_.state, round_.n) == (("0", "1", "2"), "open", 0)
    assert admin.rounds()[0].id == round_.id
    assert round_.id not in {listed.id for listed in admin.rounds(before=round_.id)}
    assert admin.frequencies(round_.id).sum is None
    admin.delete_round(round_.id)
    with pytest.raises(RefusedError, match="Round not found"):
        admin.parameters(round_.id)


def test_forms_are_opened_listed_closed_deleted(admin: Client):
    form = admin.open_form(assign="ticket", rounds=QUESTIONS[:2])
    assert admin.forms()[0] == admin.form(form.name) == form
    assert form not in admin.forms(before=form.id)
    for ticket in admin.mint_form_tickets(form.id, 3):
        admin.submit(form.rounds[assigned_round(ticket, 2)].id, bytes(4), "k", ticket=ticket)
    closed = admin.close_form(form.id).rounds
    assert (closed[1].state, closed[0].n + closed[1].n) == ("closed", 3)
    admin.delete_form(form.id)
    with pytest.raises(RefusedError, match="Form not found"):
        admin.form(form.id)
