"""Results round-trip through their packed form."""

from dataclasses import fields

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
    sent = Recovery(
        **{f.name: getattr(plain, f.name) for f in fields(plain)} | {"conclusions": concluded}
    )
    got = unpack(Recovery, pack(sent))
    assert got.recovered.tolist() == plain.recovered.tolist()
    assert got.conclusions is not None
    assert got.conclusions.standard_deviations is not None
    assert got.conclusions.standard_deviations.tolist() == [0.1, 0.2]
    rest = [f.name for f in fields(Conclusions) if f.name != "standard_deviations"]
    assert [getattr(got.conclusions, name) for name in rest] == [
        getattr(concluded, name) for name in rest
    ]
    assert unpack(Recovery, pack(plain)).conclusions is None
