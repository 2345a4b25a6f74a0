"""Faults of packed reports: every error has its position and reason."""

from typing import Any

import numpy as np
import pytest

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ParameterError, ReportError
from ldprecover.protocols import wire

GRR5, OUE5, OLH5 = GRR(1, 5), OUE(1, 5), OLH(1, 5, 4)


@pytest.mark.parametrize(
    ("oracle", "sent", "position", "reason"),
    [
        (GRR5, b"", None, "at least one report"),
        *((OLH5, bytes(n), 2, "whole number of reports of 6 bytes") for n in range(13, 18)),
        (GRR5, bytes.fromhex("0400000005000000"), 1, "the item must be from 0 to 4"),
        (GRR5, bytes.fromhex("0000008005000000"), 0, "the item must be from 0 to 4"),
        (OUE5, bytes.fromhex("1f20"), 1, "padding bits"),
        (OUE5, bytes.fromhex("8020"), 0, "padding bits"),
        (OLH5, bytes.fromhex("ffffffff0300000000000400"), 1, "the bucket must be from 0 to 3"),
    ],
    ids=lambda value: getattr(value, "protocol", ascii(value)[:40]),
)
def test_first_fault_is_named(
    oracle: FrequencyOracle, sent: bytes, position: int | None, reason: str
) -> None:
    with pytest.raises(ReportError, match=reason) as rejected:
        oracle.wire.unpack(sent)
    assert rejected.value.position == position


def test_whole_bytes_have_no_padding_to_check() -> None:
    assert len(OUE(1, 16).wire.unpack(memoryview(b"\xff" * 6))) == 3


@pytest.mark.parametrize(
    "values", [np.arange(4), np.arange(4, dtype="u4"), memoryview(np.ones(4).data)]
)
def test_packed_reports_are_bytes(values: Any) -> None:
    """An array's elements are no reports: eight bytes of one would be two."""
    with pytest.raises(ReportError, match="packed reports must be bytes"):
        GRR5.wire.unpack(values)
    packed = bytes.fromhex("0400000003000000")
    assert GRR5.wire.unpack(memoryview(packed)).tolist() == [4, 3]


def test_rows_of_bytes_in_another_order_are_refused() -> None:
    reports = OLH5.perturb([1, 2], np.random.default_rng(1))
    assert wire.pack(reports) == reports.tobytes()
    with pytest.raises(ParameterError, match="rows of a protocol's type"):
        wire.pack(reports.astype(reports.dtype.newbyteorder()))
