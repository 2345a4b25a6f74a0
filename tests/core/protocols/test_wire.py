"""Faults of both forms: every error has its position and reason."""

from typing import Any

import pytest

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ReportError

GRR5, OUE5, OLH5 = GRR(1, 5), OUE(1, 5), OLH(1, 5, 4)
ITEM = "the item must be an integer from 0 to 4"
BITS = "a string of 5 characters 0 or 1"
ARRAY = "reports must be an array"


def refused(oracle: FrequencyOracle, sent: Any) -> ReportError:
    read: Any = oracle.wire.unpack if isinstance(sent, bytes) else oracle.wire.from_json
    with pytest.raises(ReportError) as raised:
        read(sent)
    return raised.value


@pytest.mark.parametrize(
    "value", [False, None, "1", {}, -1, 5, 2**64, 10**30, 1.0, float("nan")], ids=repr
)
def test_integer_columns_take_integers_in_range(value: object) -> None:
    error = refused(GRR5, {"reports": [4, 0, value, value]})
    assert (error.position, error.reason) == (2, ITEM)
    assert str(error).startswith("report 2: ")
    seeds = 2**32 if value == 5 else value
    error = refused(OLH5, {"seeds": [2**32 - 1, seeds], "buckets": [0, 0]})
    assert (error.position, error.reason) == (1, "the seed must be an integer from 0 to 4294967295")


@pytest.mark.parametrize(
    "value",
    ["", "0000", "0000 ", "00002", "0000/", "0000\u0660", "0000\ud800", "00001\n", 11111, None],
    ids=ascii,
)
def test_string_columns_take_d_zeros_and_ones(value: object) -> None:
    rows: list[object] = ["10101"] * 6
    rows[3] = rows[5] = value
    error = refused(OUE5, {"reports": rows})
    assert error.position == 3
    assert BITS in error.reason


@pytest.mark.parametrize(
    ("oracle", "sent", "position", "reason"),
    [
        *(
            (OUE5, {"reports": ["00000", *rows]}, 1, BITS)
            for rows in (["0000x", "0"], ["0000x", "0000é"], ["0000é", 5], ["0", "0000x"], [7, "0"])
        ),
        (
            OLH5,
            {"seeds": [1, 2], "buckets": [3, 4]},
            1,
            "the bucket must be an integer from 0 to 3",
        ),
        (OLH5, {"seeds": [1, "x", 3], "buckets": [0, 0, 9]}, 1, "seed"),
        (OLH5, {"seeds": [1, 2, "x"], "buckets": [0, 9, 0]}, 1, "bucket"),
        (OLH5, {"seeds": [1, "x"], "buckets": [0, "x"]}, 1, "seed"),
        (OLH5, {"seeds": [1, 2], "buckets": [0]}, 1, "equal length, not 2 and 1"),
        (OLH5, {"seeds": [1], "buckets": [0, 1, 2]}, 1, "equal length, not 1 and 3"),
        (OLH5, {"seeds": [], "buckets": [0]}, 0, "equal length"),
        (OLH5, {"seeds": [-1, 2], "buckets": [0]}, 0, "seed"),
        (OLH5, {"seeds": [], "buckets": []}, None, "at least one report"),
        (OLH5, {"seeds": [1]}, None, "buckets must be an array"),
        (OLH5, {"reports": [1]}, None, "unknown field 'reports'"),
        (GRR5, {"seeds": [1], "buckets": [1]}, None, "unknown field 'buckets'"),
        (GRR5, {"reports": [1], "Reports": [1]}, None, "unknown field 'Reports'"),
        (GRR5, {"x" * 1_000_000: 1, "reports": [1]}, None, "unknown field"),
        *((GRR5, body, None, ARRAY) for body in ({}, {"reports": 3}, {"reports": {"0": 1}})),
        (OUE5, {"reports": "00000"}, None, ARRAY),
        *((GRR5, body, None, "must be a JSON object") for body in (None, 3, "x", [1, 2], True)),
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
    oracle: FrequencyOracle, sent: Any, position: int | None, reason: str
) -> None:
    error = refused(oracle, sent)
    assert error.position == position
    assert reason in error.reason
    assert len(str(error)) < 200


def test_whole_bytes_have_no_padding_to_check() -> None:
    assert len(OUE(1, 16).wire.unpack(memoryview(b"\xff" * 6))) == 3
