"""The decoder of JSON reports against a slow, obviously correct one.

That of packed ones is checked by `ldprecover.testing`, on random bytes of each protocol.
"""

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fuzzing import SECONDS, property_settings, repeat, tried

from ldprecover import FrequencyOracle, ReportError, frequency_oracle
from ldprecover.protocols import wire
from ldprecover_server.http.routes.submissions import decode_reports

ORACLES = {
    "grr": frequency_oracle("grr", 1.0, 11),
    "oue": frequency_oracle("oue", 1.0, 11),
    "olh": frequency_oracle("olh", 1.0, 11, 4),
}

pytestmark = [pytest.mark.timeout(300 + 2 * SECONDS), pytest.mark.parametrize("protocol", ORACLES)]


@st.composite
def mutated(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Return bytes with some changed, removed, doubled or inserted."""
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        how = draw(st.integers(0, 3))
        if how == 0 and at < len(data):
            data[at] = draw(st.integers(0, 255))
        elif how == 1:
            del data[at : at + draw(st.integers(1, 8))]
        elif how == 2:
            data[at:at] = draw(st.binary(min_size=1, max_size=8))
        else:
            data[at:at] = data[max(0, at - draw(st.integers(1, 8))) : at]
    return bytes(data)


def packed(oracle: FrequencyOracle) -> st.SearchStrategy[bytes]:
    """Return packed reports of these items, as a client would perturb them."""
    items = st.lists(st.integers(0, 10), min_size=1, max_size=40)
    seeds = st.integers(0, 1 << 32)
    return st.builds(
        lambda v, s: wire.pack(oracle.perturb(np.array(v), np.random.default_rng(s))), items, seeds
    )


numbers = st.sampled_from(
    [
        "0",
        "10",
        "11",
        "-0",
        "-1",
        "3.0",
        "3e0",
        "1e400",
        "0x3",
        "03",
        "4294967295",
        "4294967296",
        "9" * 40,
        "NaN",
        "true",
    ]
)
texts = st.sampled_from(
    [
        '"3"',
        '"00000000000"',
        '"10101010101"',
        '"1010101010²"',
        '"\\u0030"',
        '"\\ud800"',
        '""',
        '"',
        "'3'",
    ]
)
pieces = st.recursive(
    numbers | texts | st.sampled_from(["null", "[", "]", "{}", ""]) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=6).map(lambda parts: f"[{','.join(parts)}]")
        | st.lists(
            st.tuples(st.sampled_from(["reports", "seeds", "buckets", "x", "\\u0073eeds"]), inner),
            max_size=3,
        ).map(lambda fields: "{" + ",".join(f'"{name}":{value}' for name, value in fields) + "}")
    ),
    max_leaves=20,
)


def json_bodies(oracle: FrequencyOracle) -> st.SearchStrategy[bytes]:
    """Return valid bodies, bodies with changed bytes, and almost valid JSON."""
    whole = packed(oracle).map(
        lambda data: json.dumps(
            oracle.wire.to_json(np.frombuffer(data, dtype=oracle.wire.dtype))
        ).encode()
    )
    if oracle.protocol == "olh":
        fields = st.tuples(st.lists(numbers, max_size=4), st.lists(numbers, max_size=4)).map(
            lambda columns: '{{"seeds":[{}],"buckets":[{}]}}'.format(*map(",".join, columns))
        )
    else:
        fields = st.lists(numbers | texts, max_size=5).map(
            lambda values: f'{{"reports":[{",".join(values)}]}}'
        )
    almost = (fields | pieces).map(lambda text: text.encode("utf-8", "surrogatepass"))
    return mutated(whole) | almost | mutated(almost)


def named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a field is given twice")
    return dict(pairs)


def reports_of(oracle: FrequencyOracle, body: bytes) -> bytes | None:
    """Return the packed reports of a JSON body, decoded one by one, or None for any other body."""
    try:
        decoded = json.loads(
            body.decode("utf-8"), parse_constant=refuse, object_pairs_hook=named_once
        )
    except (ValueError, RecursionError):
        return None
    names = {"seeds", "buckets"} if oracle.protocol == "olh" else {"reports"}
    if (
        not isinstance(decoded, dict)
        or set(decoded) != names
        or not all(isinstance(decoded[n], list) for n in names)
    ):
        return None
    rows: list[Any] = list(decoded.get("reports", []))
    if oracle.protocol == "olh":
        if len(decoded["seeds"]) != len(decoded["buckets"]):
            return None
        rows = list(zip(decoded["seeds"], decoded["buckets"], strict=True))
    packed = b""
    for row in rows:
        if oracle.protocol == "grr" and type(row) is int and 0 <= row < 11:
            packed += row.to_bytes(4, "little")
        elif (
            oracle.protocol == "oue"
            and type(row) is str
            and re.fullmatch("[01]{11}", row, re.ASCII)
        ):
            packed += int(row[::-1], 2).to_bytes(2, "little")
        elif (
            oracle.protocol == "olh"
            and list(map(type, row)) == [int, int]
            and 0 <= row[0] < 1 << 32
            and 0 <= row[1] < 4
        ):
            packed += row[0].to_bytes(4, "little") + row[1].to_bytes(2, "little")
        else:
            return None
    return packed or None


def refuse(constant: str) -> None:
    raise ValueError(constant)


def test_any_json_body_is_decoded_or_rejected(protocol: str) -> None:
    oracle = ORACLES[protocol]

    @property_settings(300)
    @given(json_bodies(oracle))
    @example(b"[" * 100_000)
    @example(b'{"reports":' * 10_000)
    @example(b'{"reports":[3],"reports":[4]}')
    @example(b'\xef\xbb\xbf{"reports":[3]}')
    def check(body: bytes) -> None:
        expected = reports_of(oracle, body)
        try:
            assert decode_reports(oracle, body, False) == expected
        except ReportError:
            assert expected is None
        tried[f"json {protocol}"]["refused" if expected is None else "taken"] += 1

    repeat(check)
