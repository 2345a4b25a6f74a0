"""Plans over HTTP: anyone may ask, and what is answered is what the mathematics says."""

import json
from time import thread_time

import pytest
from tests.conftest import ServerProcess
from tests.server.conftest import problem_of

from ldprecover.planning import PlanRequest, plan
from ldprecover.protocols import MAX_DOMAIN_SIZE, PROTOCOLS
from ldprecover_client import Client

pytestmark = pytest.mark.sqlite


def test_a_plan_is_that_of_the_library(server: ServerProcess) -> None:
    expected = plan(PlanRequest(domain_size=102, epsilon=0.5, error=0.005, targets=4, gain=0.01))
    answer = server.get("/plan?domain_size=102&epsilon=0.5&error=0.005&targets=4&gain=0.01")
    assert answer.status_code == 200
    assert answer.json() == json.loads(json.dumps(expected.to_dict()))


def test_the_client_asks_for_one(server: ServerProcess) -> None:
    with Client(server.url) as client:
        answer = client.plan(domain_size=20, users=1_000, error=0.05, protocol="ss")
    expected = plan(PlanRequest(domain_size=20, users=1_000, error=0.05), ["ss"])
    assert answer == json.loads(json.dumps(expected.to_dict()))


def test_a_lead_replaces_the_error(server: ServerProcess) -> None:
    with Client(server.url) as client:
        answer = client.plan(domain_size=20, users=100_000, lead=0.05, beta=0.01)
    expected = plan(PlanRequest(domain_size=20, users=100_000, lead=0.05, beta=0.01))
    assert answer == json.loads(json.dumps(expected.to_dict()))
    assert answer["solved"] == "epsilon"
    assert answer["protocols"][0]["safe_lead"] == pytest.approx(0.05)


def test_what_no_protocol_can_have_is_an_answer_with_reasons(server: ServerProcess) -> None:
    with Client(server.url) as client:
        answer = client.plan(domain_size=20, users=1, error=1e-6)
    assert {each["reason"] for each in answer["protocols"]} == {"no epsilon up to 10 is enough"}
    assert len(answer["protocols"]) == len(PROTOCOLS)


@pytest.mark.parametrize(
    ("query", "slug"),
    [
        ("", "invalid-parameter"),
        ("domain_size=10&users=10", "invalid-parameter"),
        ("domain_size=10&users=10&epsilon=1&error=0.1", "invalid-parameter"),
        ("domain_size=10&users=10&epsilon=1&beta=0.1&gain=0.1", "invalid-parameter"),
        ("domain_size=10&users=10&epsilon=1&lead=0.1&gain=0.1", "invalid-parameter"),
        ("domain_size=10&lead=0.1", "invalid-parameter"),
        ("domain_size=10&users=10&epsilon=1&lead=0", "invalid-request"),
        ("domain_size=10&users=10&epsilon=1&targets=10", "invalid-parameter"),
        ("domain_size=10&users=10&epsilon=1&protocol=rap", "invalid-parameter"),
        ("domain_size=1&users=10&epsilon=1", "invalid-request"),
        ("domain_size=10&users=1e3&epsilon=1", "invalid-request"),
        ("domain_size=10&users=10&epsilon=nan", "invalid-request"),
        ("domain_size=10&users=10&epsilon=1&frequency=inf", "invalid-request"),
        (f"domain_size={MAX_DOMAIN_SIZE + 1}&users=10&epsilon=1", "invalid-request"),
        (f"domain_size=1000&users=10&epsilon=1&targets={MAX_DOMAIN_SIZE + 1}", "invalid-request"),
    ],
)
def test_what_makes_no_plan_is_refused(server: ServerProcess, query: str, slug: str) -> None:
    response = server.get(f"/plan?{query}")
    assert response.status_code == 422
    assert problem_of(response) == slug


def test_slowest_lead_takes_a_fraction_of_a_second() -> None:
    began = thread_time()
    plan(PlanRequest(domain_size=MAX_DOMAIN_SIZE, users=10**7, lead=1e-4, beta=1e-6))
    assert thread_time() - began < 2
