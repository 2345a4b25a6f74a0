"""Estimates against those of pure-LDP (Cormode, Maddock and Maple, PVLDB 2021) on the same reports.

It has no subset selection.
"""

import importlib
import warnings
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import xxhash

from ldprecover import GRR, OLH, OUE, Estimates, FrequencyOracle, Tally, frequency_oracle
from ldprecover.protocols import HR, SUE

D, EPSILON, N = 37, 0.8, 400


@pytest.fixture(scope="module")
def pure_ldp() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, and of what it imports
        return importlib.import_module("pure_ldp.frequency_oracles")


@pytest.fixture
def our_hash(monkeypatch: pytest.MonkeyPatch, pure_ldp: ModuleType) -> None:
    """Have pure-LDP hash as we do: the item as four bytes, and the bucket as the upper half of hash
    times g.

    It hashes decimal text and takes the remainder; the remainder of a bucket is the bucket.
    """

    def xxh32(text: str, seed: int) -> SimpleNamespace:
        hashed = xxhash.xxh32(int(text).to_bytes(4, "little"), seed=seed).intdigest()
        return SimpleNamespace(intdigest=lambda: (hashed * g) >> 32)

    oracle = frequency_oracle("olh", EPSILON, D)
    assert isinstance(oracle, OLH)
    g = oracle.hash_range
    server = importlib.import_module("pure_ldp.frequency_oracles.local_hashing.lh_server")
    monkeypatch.setattr(server, "xxhash", SimpleNamespace(xxh32=xxh32))


def theirs(pure_ldp: ModuleType, oracle: FrequencyOracle, reports: np.ndarray) -> np.ndarray:
    """Return what pure-LDP's server estimates from our packed reports; it counts them one by
    one.
    """
    if isinstance(oracle, GRR):
        server = pure_ldp.DEServer(EPSILON, D)
        values = reports.tolist()
    elif isinstance(oracle, OUE | SUE):
        server = pure_ldp.UEServer(EPSILON, D, use_oue=isinstance(oracle, OUE))
        values = list(np.unpackbits(reports, axis=1, bitorder="little")[:, :D].astype(float))
    elif isinstance(oracle, HR):
        server = pure_ldp.HadamardResponseServer(EPSILON, D)  # this form of it up to epsilon = 1
        values = reports.tolist()
    else:
        assert isinstance(oracle, OLH)
        server = pure_ldp.LHServer(EPSILON, D, g=oracle.hash_range)
        values = [
            (int(bucket), int(seed))
            for bucket, seed in zip(reports["bucket"], reports["seed"], strict=True)
        ]
    for report in values:
        server.aggregate(report)
    return np.array([server.estimate(item, suppress_warnings=True) for item in range(1, D + 1)]) / N


@pytest.mark.usefixtures("our_hash")
@pytest.mark.parametrize("protocol", ["grr", "oue", "sue", "olh", "hr"])
def test_estimates_are_pure_ldps_of_the_same_reports(protocol: str, pure_ldp: ModuleType) -> None:
    """To rounding: both are (C(v)/n - q)/(p - q). No chance in it."""
    oracle = frequency_oracle(protocol, EPSILON, D)
    rng = np.random.default_rng(5)
    reports = oracle.perturb(rng.integers(0, D, N), rng)
    ours = Estimates.of(oracle, Tally.of(oracle, reports)).frequencies
    assert np.allclose(ours, theirs(pure_ldp, oracle, reports), rtol=1e-9, atol=1e-12)
    assert ours.std() > 0.01
