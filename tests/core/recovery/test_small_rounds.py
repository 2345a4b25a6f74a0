"""Recoveries of few items: each is an error with a sentence, or numbers within their bounds."""

import contextlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from ldprecover import ParameterError, Recovery, RecoveryRequest, Tally, frequency_oracle, recover
from ldprecover.certificate import certify, undetectable
from ldprecover.protocols import LLH, OUE, SS, FrequencyOracle
from ldprecover.recovery import METHODS
from ldprecover_attacker import make_attack

_ATTACKS = ("mga", "apa", "ria", "aa", "manip", "mimicry")
_SIGNED = ("norm", "detection")  # need not project


def _reports(
    oracle: FrequencyOracle,
    rng: np.random.Generator,
    honest: int,
    attack: str = "mga",
    targets: Iterable[int] = (0,),
    malicious: int = 0,
) -> np.ndarray:
    """Return honest reports of items drawn evenly, and malicious ones if the protocol has them."""
    reports = oracle.perturb(rng.integers(oracle.domain_size, size=honest), rng)
    if malicious:
        with contextlib.suppress(ParameterError):
            named: dict[str, Any] = {} if attack in ("aa", "manip") else {"targets": targets}
            crafted = make_attack(attack, **named).reports(oracle, malicious, rng)
            reports = np.concatenate([reports, crafted])
    return reports


def _check(recovery: Recovery) -> None:
    f, conclusions = recovery.recovered, recovery.conclusions
    assert np.isfinite([f, recovery.genuine, recovery.malicious]).all()
    if recovery.method not in _SIGNED:
        assert (f >= 0).all()
        assert f.sum() == pytest.approx(1)
    if conclusions is None or conclusions.lower is None or conclusions.upper is None:
        return
    assert ((conclusions.lower >= 0) & (conclusions.upper <= 1)).all()
    assert ((conclusions.lower <= f + 1e-9) & (f <= conclusions.upper + 1e-9)).all()
    assert all(0 <= p <= 1 for _, p in conclusions.suspects)


@pytest.mark.parametrize(
    ("oracle", "targets", "beta"),
    [(LLH(1.0, 4, 3), [0], 0.0), (OUE(1.0, 2), [1], 0.2), (SS(1.0, 10, 3), [0, 1, 2, 3], 0.9)],
    ids=["no set of all items", "only sizes of none and all", "no set but one item"],
)
@pytest.mark.parametrize("seed", range(3))
def test_drops_no_reports_that_leave_nothing(
    oracle: FrequencyOracle, targets: list[int], beta: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    malicious = round(3000 * beta / (1 - beta))
    _check(recover(oracle, _reports(oracle, rng, 3000, "mga", targets, malicious)))


@pytest.mark.parametrize("protocol", ["grr", "oue", "sue", "olh", "ss", "hr", "llh"])
def test_every_method_on_random_rounds(protocol: str) -> None:
    rng = np.random.default_rng(39)
    for _ in range(12):
        d, n = int(rng.integers(2, 9)), int(10 ** rng.uniform(0, 3.7))
        with contextlib.suppress(ParameterError):
            oracle = frequency_oracle(protocol, 10 ** rng.uniform(-2, 0.5), d)
            targets = tuple(range(int(rng.integers(1, d))))
            reports = _reports(oracle, rng, n, str(rng.choice(_ATTACKS)), targets, n // 5)
            least = certify(oracle, Tally.of(oracle, reports), 0.9).least_malicious_share
            assert 0 <= least < 1
            for method in METHODS:
                for named in ((), targets):
                    with contextlib.suppress(ParameterError):
                        _check(recover(oracle, reports, RecoveryRequest(method, targets=named)))


@pytest.mark.parametrize("d", [4, 7])
def test_no_share_of_reports_gains_nothing_undetected(d: int) -> None:
    f = np.arange(1.0, d + 1)
    assert undetectable(LLH(0.6, d, 3), f / f.sum(), [1, 2], 0.0).gain == pytest.approx(0)
