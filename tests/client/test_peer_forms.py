"""Forms against the sampling (SMP) of multi-freq-ldpy (Arcolezi et al., CIKM 2022)."""

from importlib import import_module

import numpy as np
import pytest

from ldprecover_client import Client, submit_reports

SIZES = [2, 5, 20]


@pytest.mark.parametrize(("protocol", "name"), [("grr", "GRR"), ("oue", "UE")])
def test_estimates_are_theirs_of_the_same_reports(admin: Client, protocol: str, name: str):
    """To rounding; they clip and normalise. No chance in it."""
    smp = vars(import_module("multi_freq_ldpy.mdim_freq_est.SMP_solution"))
    reports = [smp[f"SMP_{name}_Client"]((1, 2, 3), SIZES, 3, 1.0) for _ in range(900)]
    sizes = [SIZES] if name == "GRR" else []
    theirs = smp[f"SMP_{name}_Aggregator_MI"](reports, *sizes, 3, 1.0)
    rounds = [
        {"question": str(d), "protocol": protocol, "epsilon": 1.0, "domain_size": d} for d in SIZES
    ]
    for i, round in enumerate(admin.open_form(assign="client", rounds=rounds).rounds):
        own = np.array([value for question, value in reports if question == i], np.uint32)
        packed = np.packbits(own > 0, axis=1, bitorder="little") if name == "UE" else own
        submit_reports(admin, round.id, packed)
        ours = np.clip(np.array(admin.frequencies(round.id).frequencies), 0, None)
        assert np.allclose(ours / ours.sum(), theirs[i], rtol=1e-9, atol=1e-12)
