"""Rounds whose reports are written as datasets."""

from collections.abc import Callable

import numpy as np
import pytest

from ldprecover import RoundExport, RoundParameters, Tally
from ldprecover.protocols import PROTOCOLS
from ldprecover.types import Reports

D = 11


@pytest.fixture(scope="module", params=list(PROTOCOLS))
def parameters(request: pytest.FixtureRequest) -> RoundParameters:
    """A round of each protocol in turn, over a domain that leaves padding bits."""
    return RoundParameters(request.param, 1.0, tuple(map(str, range(D))))


MakeRound = Callable[..., tuple[RoundExport, Reports]]


def maker(parameters: RoundParameters) -> MakeRound:
    """Return what makes a round of n honest reports: its export, and they. Seeded."""

    def make(n: int, name: str = "letters") -> tuple[RoundExport, Reports]:
        rng = np.random.default_rng(n)
        reports = parameters.oracle.perturb(rng.integers(0, D, n), rng)
        return RoundExport(f"R{n}", name, parameters, Tally.of(parameters.oracle, reports)), reports

    return make


@pytest.fixture
def make_any(parameters: RoundParameters) -> MakeRound:
    """Make a round of each protocol in turn."""
    return maker(parameters)


@pytest.fixture
def make_round() -> MakeRound:
    """Make a round of one protocol, whose reports have two columns."""
    return maker(RoundParameters("olh", 1.0, tuple(map(str, range(D)))))
