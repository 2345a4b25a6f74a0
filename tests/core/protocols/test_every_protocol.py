"""Every protocol keeps the contract."""

import pytest

from ldprecover import frequency_oracle
from ldprecover.protocols import PROTOCOLS
from ldprecover.testing import check_protocol


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "d"), [(0.5, 6), (2.0, 17), (1.0, 2)])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_protocol_keeps_the_contract(protocol: str, epsilon: float, d: int) -> None:
    check_protocol(frequency_oracle(protocol, epsilon, d))
