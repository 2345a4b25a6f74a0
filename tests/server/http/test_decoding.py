"""Bodies are decoded by type and rejected at the first fault, with its reason."""

import pytest

from ldprecover import FrequencyOracle, ReportError, frequency_oracle
from ldprecover_server.http.decoding import ReportDecoder

GRR, OUE = frequency_oracle("grr", 1.0, 4), frequency_oracle("oue", 1.0, 4)
OLH = frequency_oracle("olh", 1.0, 4, 3)


@pytest.mark.parametrize(
    ("oracle", "body", "position", "words"),
    [
        (GRR, b'{"reports": [0, 4, "x"]}', 1, "integer from 0 to 3"),
        (OUE, b'{"reports": ["0101", "1", "01x1"]}', 1, "4 characters 0 or 1"),
        (OLH, b'{"seeds": [1, 2, "x"], "buckets": [0, 3, 0]}', 1, "bucket"),
        (OLH, b'{"buckets": [0, 1, 3], "seeds": [1, 4294967296, 0]}', 1, "seed"),
        (OLH, b'{"seeds": [1, 2], "buckets": [0]}', 1, "equal length"),
        (OLH, b'{"seeds": [], "buckets": [0]}', 0, "equal length"),
        (OLH, b'{"seeds": [-1, 2], "buckets": [0]}', 0, "seed"),
        (OLH, b'{"seeds": [1]}', None, "buckets must be an array"),
        (GRR, b'{"reports": [1], "Reports": [1]}', None, "unknown field 'Reports'"),
        (GRR, b'{"reports": {"0": 1}}', None, "reports must be an array"),
        (GRR, b'{"reports": []}', None, "at least one"),
        (GRR, b"{}", None, "reports must be an array"),
        (GRR, b'{"seeds": [1], "buckets": [0]}', None, "unknown field"),
        (GRR, b"[1]", None, "object"),
        (GRR, b'{"reports": [1, 2', None, "JSON"),
        (OUE, b'{"reports": ["\xff\xfe"]}', None, "UTF-8"),
        (GRR, b'{"reports": [' + 5000 * b"9" + b"]}", 0, "integer"),
        (GRR, b'{"reports": ' + 500_000 * b"[", 0, "integer"),
        (GRR, 100_000 * b'{"reports":', None, "array"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value,
)
def test_first_bad_report_is_named(
    oracle: FrequencyOracle, body: bytes, position: int | None, words: str
) -> None:
    with pytest.raises(ReportError, match=words) as rejected:
        ReportDecoder(oracle)(body)
    assert rejected.value.position == position


@pytest.mark.parametrize("bits", [4, 5000], ids=["narrow", "wide"])
def test_a_column_of_long_text_is_accepted_once(bits: int) -> None:
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
