"""Faults of packed reports: every error has its position and reason."""

import pytest

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ReportError

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
