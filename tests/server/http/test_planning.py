"""Plans over HTTP: anyone may ask, and what is answered is what the mathematics says."""

import json
from time import thread_time

import pytest
from tests.conftest import ServerProcess

from ldprecover.planning import PlanRequest, plan
from ldprecover.protocols import MAX_DOMAIN_SIZE

pytestmark = pytest.mark.sqlite


def test_a_plan_is_that_of_the_library(server: ServerProcess) -> None:
    expected = plan(PlanRequest(domain_size=102, epsilon=0.5, error=0.005, targets=4, gain=0.01))
    answer = server.get("/plan?domain_size=102&epsilon=0.5&error=0.005&targets=4&gain=0.01")
    assert answer.status_code == 200
    assert answer.json() == json.loads(json.dumps(expected.to_dict()))


def test_slowest_lead_takes_a_fraction_of_a_second() -> None:
    began = thread_time()
    plan(PlanRequest(domain_size=MAX_DOMAIN_SIZE, users=10**7, lead=1e-4, beta=1e-6))
    assert thread_time() - began < 2
