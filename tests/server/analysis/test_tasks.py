"""Results round-trip through their packed form."""

from dataclasses import asdict, replace

import numpy as np

from ldprecover import GRR
from ldprecover.evidence.unseen import UnseenGain
from ldprecover.recovery import Conclusions, Dropped, Recovery, recover
from ldprecover_server.analysis.tasks import pack, unpack


def test_packed_recovery_with_conclusions_round_trips() -> None:
    concluded = Conclusions(
        standard_deviations=np.array([0.1, 0.2]),
        attack="near_certain",
        attack_probability=0.9,
        unseen=(UnseenGain(10, 0.05, 0.3, 1.0),),
        suspects=((1, 0.75), (0, 0.5)),
        dropped=(Dropped("sizes", "reports of 7 items", 12),),
    )
    plain = recover(GRR(1, 2), [0.4, 0.6], "norm-sub")
    for recovery in (plain, replace(plain, conclusions=concluded)):
        np.testing.assert_equal(asdict(unpack(Recovery, pack(recovery))), asdict(recovery))
