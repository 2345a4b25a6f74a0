"""Packed and JSON forms: round trips, and every refusal with its position and reason."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ReportError
from ldprecover.protocols import wire

GRR5, OUE5, OLH5 = GRR(1, 5), OUE(1, 5), OLH(1, 5, 4)


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_both_forms_give_the_reports_back(
    oracle: FrequencyOracle, data: st.DataObject, seed: int
) -> None:
    items = data.draw(st.lists(st.integers(0, oracle.domain_size - 1), min_size=1, max_size=30))
    reports = oracle.perturb(np.array(items), np.random.default_rng(seed))
    packed = wire.pack(reports)
    assert len(packed) == len(items) * oracle.wire.size
    np.testing.assert_array_equal(oracle.wire.unpack(packed), reports)
    np.testing.assert_array_equal(oracle.wire.unpack(memoryview(packed)), reports)
    body = json.loads(json.dumps(oracle.wire.to_json(reports)))
    again = oracle.wire.from_json(body)
    assert again.dtype == reports.dtype
    np.testing.assert_array_equal(again, reports)
    assert wire.pack(again) == packed


@pytest.mark.parametrize(
    ("oracle", "body", "packed"),
    [
        (GRR(1, 300), {"reports": [0, 17, 299]}, "00000000110000002b010000"),
        (OUE(1, 11), {"reports": ["10000000000", "01000000101"]}, "01000205"),
        (OLH(1, 9, 4), {"seeds": [2882400001, 5], "buckets": [2, 0]}, "01efcdab0200050000000000"),
    ],
    ids=["grr", "oue", "olh"],
)
def test_forms_are_the_published_bytes(
    oracle: FrequencyOracle, body: dict[str, Any], packed: str
) -> None:
    reports = oracle.wire.from_json(body)
    assert wire.pack(reports).hex() == packed
    assert oracle.wire.to_json(oracle.wire.unpack(bytes.fromhex(packed))) == body


NOT_INTEGERS: list[Any] = [True, False, None, 1.0, "1", [], {}, -1, 2**64, 10**30, float("nan")]


@pytest.mark.parametrize("value", [*NOT_INTEGERS, 5])
def test_grr_report_must_be_an_integer(value: object) -> None:
    with pytest.raises(ReportError, match="the item must be an integer from 0 to 4") as refused:
        GRR5.wire.from_json({"reports": [4, 0, value, value]})
    assert refused.value.position == 2
    assert str(refused.value).startswith("report 2: ")


@pytest.mark.parametrize("value", [*NOT_INTEGERS, 2**32])
def test_an_olh_seed_is_32_bits(value: object) -> None:
    with pytest.raises(
        ReportError, match="the seed must be an integer from 0 to 4294967295"
    ) as refused:
        OLH5.wire.from_json({"seeds": [2**32 - 1, value], "buckets": [0, 0]})
    assert refused.value.position == 1


@pytest.mark.parametrize("value", [*NOT_INTEGERS, 4])
def test_an_olh_bucket_is_below_the_hash_range(value: object) -> None:
    with pytest.raises(ReportError, match="the bucket must be an integer from 0 to 3") as refused:
        OLH5.wire.from_json({"seeds": [1, 2], "buckets": [3, value]})
    assert refused.value.position == 1


@pytest.mark.parametrize(
    "value",
    [
        "",
        "0000",
        "000000",
        "0000 ",
        "00002",
        "0000/",
        "0000\u0660",
        "0000\ud800",
        "00001\n",
        1,
        11111,
        None,
        True,
        ["00000"],
    ],
)
@pytest.mark.parametrize("position", [0, 3])
def test_an_oue_report_is_a_string_of_d_zeros_and_ones(value: object, position: int) -> None:
    rows: list[object] = ["10101"] * 6
    rows[position] = rows[5] = value
    with pytest.raises(ReportError, match="a string of 5 characters 0 or 1") as refused:
        OUE5.wire.from_json({"reports": rows})
    assert refused.value.position == position


@pytest.mark.parametrize(
    "rows",
    [["0000x", "0"], ["0000x", "0000é"], ["0000é", 5], ["0", "0000x"], [7, "0"]],
    ids=["digit-length", "digit-letter", "letter-type", "length-digit", "type-length"],
)
def test_first_bad_report_is_named(rows: list[object]) -> None:
    with pytest.raises(ReportError) as refused:
        OUE5.wire.from_json({"reports": ["00000", *rows]})
    assert refused.value.position == 1


@pytest.mark.parametrize(
    ("seeds", "buckets", "position", "reason"),
    [
        ([1, "x", 3], [0, 0, 9], 1, "seed"),
        ([1, 2, "x"], [0, 9, 0], 1, "bucket"),
        ([1, "x"], [0, "x"], 1, "seed"),
        ([1, 2], [0], 1, "equal length, not 2 and 1"),
        ([1], [0, 1, 2], 1, "equal length, not 1 and 3"),
        ([], [0], 0, "equal length"),
        ([-1, 2], [0], 0, "seed"),
    ],
)
def test_olh_columns_name_their_first_bad_report(
    seeds: list[object], buckets: list[object], position: int, reason: str
) -> None:
    with pytest.raises(ReportError, match=reason) as refused:
        OLH5.wire.from_json({"seeds": seeds, "buckets": buckets})
    assert refused.value.position == position


@pytest.mark.parametrize("oracle", [GRR5, OUE5, OLH5], ids=lambda o: o.protocol)
def test_an_empty_submission_is_rejected(oracle: FrequencyOracle) -> None:
    empty: dict[str, list[Any]] = {name: [] for name in oracle.wire.to_json(oracle.encode([]))}
    for read in (lambda: oracle.wire.from_json(empty), lambda: oracle.wire.unpack(b"")):
        with pytest.raises(ReportError, match="at least one report") as refused:
            read()
        assert refused.value.position is None


@pytest.mark.parametrize("body", [None, 3, "x", [1, 2], True])
@pytest.mark.parametrize("oracle", [GRR5, OUE5, OLH5], ids=lambda o: o.protocol)
def test_non_object_body_is_rejected(oracle: FrequencyOracle, body: object) -> None:
    with pytest.raises(ReportError, match="must be a JSON object"):
        oracle.wire.from_json(body)


@pytest.mark.parametrize(
    ("oracle", "body", "reason"),
    [
        (GRR5, {}, "reports must be an array"),
        (GRR5, {"reports": 3}, "reports must be an array"),
        (GRR5, {"reports": {"0": 1}}, "reports must be an array"),
        (OUE5, {"reports": "00000"}, "reports must be an array"),
        (OLH5, {"seeds": [1]}, "buckets must be an array"),
        (OLH5, {"reports": [1]}, "unknown field 'reports'"),
        (GRR5, {"seeds": [1], "buckets": [1]}, "unknown field 'buckets'"),
        (GRR5, {"reports": [1], "Reports": [1]}, "unknown field 'Reports'"),
    ],
)
def test_fields_must_be_the_protocols_own(
    oracle: FrequencyOracle, body: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ReportError, match=reason) as refused:
        oracle.wire.from_json(body)
    assert refused.value.position is None


def test_error_messages_cut_long_values() -> None:
    with pytest.raises(ReportError) as refused:
        GRR5.wire.from_json({"x" * 1_000_000: 1, "reports": [1]})
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("oracle", "size"), [(GRR5, 4), (OUE(1, 11), 2), (OLH5, 6)], ids=["grr", "oue", "olh"]
)
def test_partial_reports_are_rejected(oracle: FrequencyOracle, size: int) -> None:
    for missing in range(1, size):
        with pytest.raises(
            ReportError, match=f"not a whole number of reports of {size} bytes"
        ) as refused:
            oracle.wire.unpack(bytes(3 * size - missing))
        assert refused.value.position == 2


@pytest.mark.parametrize(
    ("oracle", "packed", "position", "reason"),
    [
        (GRR5, "0400000005000000", 1, "from 0 to 4"),
        (GRR5, "0000008005000000", 0, "from 0 to 4"),
        (OUE5, "1f20", 1, "padding bits"),
        (OUE5, "8020", 0, "padding bits"),
        (OLH5, "ffffffff0300000000000400", 1, "from 0 to 3"),
        (OLH5, "00000000ffff", 0, "from 0 to 3"),
    ],
)
def test_packed_reports_are_checked_like_json(
    oracle: FrequencyOracle, packed: str, position: int, reason: str
) -> None:
    with pytest.raises(ReportError, match=reason) as refused:
        oracle.wire.unpack(bytes.fromhex(packed))
    assert refused.value.position == position


@given(data=st.binary(min_size=1, max_size=64))
def test_any_bytes_are_read_or_refused(oracle: FrequencyOracle, data: bytes) -> None:
    try:
        reports = oracle.wire.unpack(data)
    except ReportError:
        return
    assert wire.pack(reports) == data
    assert oracle.support_counts(reports).max() <= len(reports)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    body=JSON_VALUES
    | st.fixed_dictionaries({"reports": JSON_VALUES})
    | st.fixed_dictionaries({"seeds": JSON_VALUES, "buckets": JSON_VALUES})
)
def test_any_json_is_read_or_refused(oracle: FrequencyOracle, body: Any) -> None:
    try:
        reports = oracle.wire.from_json(body)
    except ReportError:
        return
    assert oracle.wire.to_json(reports) == body
