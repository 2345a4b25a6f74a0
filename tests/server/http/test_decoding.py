"""Bodies decoded: typed, and refused at the first fault, in words."""

import pytest

from ldprecover import FrequencyOracle, ReportError, frequency_oracle
from ldprecover_server.errors import InvalidRequestError
from ldprecover_server.http.decoding import ReportDecoder, decode
from ldprecover_server.http.messages import NewTickets, RecoverRequest

GRR, OUE = frequency_oracle("grr", 1.0, 4), frequency_oracle("oue", 1.0, 4)
OLH = frequency_oracle("olh", 1.0, 4, 3)


def test_a_request_is_what_its_body_says() -> None:
    assert decode(NewTickets, b'{"count": 3}').count == 3
    assert decode(RecoverRequest, bytearray(b"{}")) == RecoverRequest()


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        (b"{}", "count", "the field is missing"),
        (b'{"count": "3"}', "count", "must be an integer, not a string"),
        (b'{"count": true}', "count", "must be an integer, not true or false"),
        (b'{"count": 0}', "count", "must be an integer of at least 1"),
        (b'{"count": 1, "colour": 2}', "colour", "the field is not known"),
        (b"[]", "body", "must be an object, not an array"),
        (b'{"count": 1', None, "the body is not JSON: "),
        (b'{"\xff": 1}', None, "the body is not"),
        (b'{"count": 1, "count": 2}', "count", "the field is given twice"),
        (b'{"count": 1, "c\\u006funt": 1}', "count", "the field is given twice"),
        (b'{"\\ud800": 1}', None, "the body has half a surrogate pair"),
        (b'{"\\ud800 and much more of it": 1}', None, "the body has half a surrogate pair"),
        (b'{"\\udc00 and much more of it": 1}', None, "the body has half a surrogate pair"),
    ],
)
def test_the_first_fault_of_a_body_is_named(body: bytes, field: str | None, said: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        decode(NewTickets, body)
    assert [name for name, _ in refused.value.errors] == [field] * (field is not None)
    assert said in str(refused.value)


def test_of_values_by_name_the_one_that_does_not_fit_is_named() -> None:
    with pytest.raises(InvalidRequestError) as refused:
        decode(RecoverRequest, b'{"options": {"least": 3, "most": "x"}}')
    assert refused.value.errors[0][0] == "options.most"


@pytest.mark.parametrize(
    ("oracle", "body", "position"),
    [
        (GRR, b'{"reports": [0, 4, "x"]}', 1),
        (GRR, b'{"reports": [0, 3, -1]}', 2),
        (OUE, b'{"reports": ["0101", "01x1", "1"]}', 1),
        (OUE, b'{"reports": ["0101", "1", "01x1"]}', 1),
        (OUE, b'{"reports": ["0101", "01\\n1"]}', 1),
        (OLH, b'{"seeds": [1, 2, "x"], "buckets": [0, 3, 0]}', 1),
        (OLH, b'{"buckets": [0, 1, 3], "seeds": [1, 4294967296, 0]}', 1),
        (OLH, b'{"seeds": [1, 2], "buckets": [0]}', 1),
        (OLH, b'{"seeds": [1], "buckets": [0, 3]}', 1),
        (GRR, b'{"reports": 1}', None),
        (GRR, b'{"seeds": [1], "buckets": [0]}', None),
        (GRR, b'{"reports": [1], "more": 1}', None),
        (GRR, b"[1]", None),
        (GRR, b"", None),
    ],
)
def test_the_first_bad_report_is_named_whichever_fault_is_found_first(
    oracle: FrequencyOracle, body: bytes, position: int | None
) -> None:
    with pytest.raises(ReportError) as refused:
        ReportDecoder(oracle)(body)
    assert refused.value.position == position


def test_of_values_by_name_none_is_given_twice() -> None:
    with pytest.raises(InvalidRequestError, match="given twice") as refused:
        decode(RecoverRequest, b'{"options": {"least": 3, "least": 2}}')
    assert refused.value.errors[0][0] == "least"


@pytest.mark.parametrize(
    ("oracle", "body"),
    [
        (GRR, b'{"reports": [1], "reports": [2]}'),
        (GRR, b'{"reports": [1], "repor\\u0074s": [1]}'),
        (OUE, b'{"reports": [], "reports": ["0101"]}'),
        (OUE, b'{"reports": ["0101", "0101"], "reports": ["0101"]}'),
        (OLH, b'{"seeds": [1], "buckets": [2], "seeds": [5]}'),
    ],
)
def test_a_column_of_reports_is_given_once(oracle: FrequencyOracle, body: bytes) -> None:
    with pytest.raises(ReportError, match="is given twice"):
        ReportDecoder(oracle)(body)


@pytest.mark.parametrize("bits", [4, 5000], ids=["narrow", "wide"])
def test_a_column_of_text_is_given_once_however_long_its_values_are(bits: int) -> None:
    decoder = ReportDecoder(frequency_oracle("oue", 1.0, bits))
    value = b'"' + b"01" * (bits // 2) + b'"'
    once = b'"reports": [%s, %s]' % (value, value)
    assert len(decoder(b"{%s}" % once)) == 2 * -(-bits // 8)
    for twice in (
        b"{%s, %s}" % (once, once),
        b'{"reports": [], %s}' % once,
        b'{%s, "repor\\u0074s": [%s]}' % (once, value),
    ):
        with pytest.raises(ReportError, match="is given twice"):
            decoder(twice)


@pytest.mark.parametrize(
    ("oracle", "body", "packed"),
    [
        (GRR, b'{"reports": [1, 3]}', b"\1\0\0\0\3\0\0\0"),
        (OUE, b'{"reports": ["0100", "0011"]}', b"\2\x0c"),
        (OLH, b'{"buckets": [2], "seeds": [5]}', b"\5\0\0\0\2\0"),
    ],
    ids=["grr", "oue", "olh"],
)
def test_reports_are_packed_as_the_protocol_says(
    oracle: FrequencyOracle, body: bytes, packed: bytes
) -> None:
    assert bytes(ReportDecoder(oracle)(body)) == packed
