"""Write the JSON vectors in this folder: python tests/vectors/generate.py

Nothing here imports the package under test. Hashes come from the `xxhash` package, bytes from
`struct`, and numbers from rational arithmetic: e^epsilon is a Fraction within 2^-256 of the true
value, so that what is printed is right to the last digit of a double.
"""

import hashlib
import json
import math
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import xxhash

HERE = Path(__file__).parent


def exp(epsilon: float) -> Fraction:
    """Return e^epsilon of the double itself, within 2^-256 relatively (its Taylor series)."""
    x, term, total, k = Fraction(epsilon), Fraction(1), Fraction(1), 0
    while term > Fraction(1, 1 << 260):
        k += 1
        term = term * x / k
        total += term
    return Fraction(round(total * (1 << 320)), 1 << 320)


OWN = {"olh": "hash_range", "llh": "hash_range", "ss": "subset_size"}
"""Names of the parameters of single protocols."""


def own(protocol: str, value: int | None) -> dict[str, int]:
    """Return the field of a case's own parameter, or an empty dict."""
    return {} if value is None else {OWN[protocol]: value}


def p_q(protocol: str, epsilon: float, d: int, parameter: int | None) -> tuple[Fraction, Fraction]:
    """Return the exact p and q of a protocol."""
    e = exp(epsilon)
    if protocol == "grr":
        return e / (d - 1 + e), 1 / (d - 1 + e)
    if protocol == "oue":
        return Fraction(1, 2), 1 / (e + 1)
    if protocol == "sue":
        root = exp(epsilon / 2)  # half a double is a double
        return root / (root + 1), 1 / (root + 1)
    if protocol == "hr":
        return e / (e + 1), Fraction(1, 2)
    assert parameter is not None
    if protocol in ("olh", "llh"):
        return e / (e + parameter - 1), Fraction(1, parameter)
    assert protocol == "ss"
    k = parameter
    total = k * e + d - k
    return k * e / total, (k * (k - 1) * e + (d - k) * k) / ((d - 1) * total)


def hash_of(item: int, seed: int) -> int:
    return int(xxhash.xxh32_intdigest(struct.pack("<I", item), seed=seed))


def digits(number: int, g: int, k: int) -> list[int]:
    """Return the k digits in base g, the least significant first."""
    return [number // g**j % g for j in range(k)]


def seeds_of(d: int, g: int) -> tuple[int, int]:
    """Return k, the digits that tell d items apart, and the number of seeds g^k."""
    k = next(k for k in range(1, 20) if g**k >= d)
    return k, g**k


def linear_bucket(seed: int, item: int, d: int, g: int) -> int:
    k, _ = seeds_of(d, g)
    return sum(r * c for r, c in zip(digits(seed, g, k), digits(item, g, k), strict=True)) % g


def linear_hashes() -> dict[str, Any]:
    cases = []
    settings: list[tuple[int, int, Sequence[int]]] = [
        (2, 2, range(4)),
        (5, 2, range(16)),
        (9, 3, range(27)),
        (10, 3, (0, 1, 2, 3, 26, 27, 28, 79, 80)),
        (30, 5, (0, 4, 7, 126, 311, 624)),
        (23, 23, (0, 24, 100, 528)),
    ]
    for d, g, reports in settings:
        supported = [
            [v for v in range(d) if linear_bucket(x // g, v, d, g) == x % g] for x in reports
        ]
        cases += [
            {"domain_size": d, "hash_range": g, "report": x, "supported": items}
            for x, items in zip(reports, supported, strict=True)
        ]
    counts = []
    for d, g, n in ((5, 2, 40), (10, 3, 60), (30, 5, 80)):
        words = Words(f"linear {d}", [])
        sample = [words.below(seeds_of(d, g)[1] * g) for _ in range(n)]
        support = [sum(linear_bucket(x // g, v, d, g) == x % g for x in sample) for v in range(d)]
        counts.append({"domain_size": d, "hash_range": g, "reports": sample, "counts": support})
    return {
        "about": "LLH: report x is the seed x // g and the bucket x % g. It supports the items v "
        "whose k base-g digits have, with those of the seed, the inner product x % g modulo g; k "
        "is the least number with g^k >= d, and x is below g^(k+1). counts: how many of the "
        "reports support each item.",
        "cases": cases,
        "counts": counts,
    }


def columns() -> dict[str, Any]:
    cases = []
    for d, reports in (
        (2, range(4)),
        (3, range(4)),
        (4, range(8)),
        (9, (0, 1, 7, 8, 15)),
        (40, (0, 1, 21, 63)),
    ):
        for y in reports:
            supported = [v for v in range(d) if bin(v + 1 & y).count("1") % 2 == 0]
            cases.append({"domain_size": d, "column": y, "supported": supported})
    return {
        "about": "HR: column y supports item v where popcount((v + 1) & y) is even; y is below "
        "2^ceil(log2(d + 1)).",
        "cases": cases,
    }


def hashes() -> dict[str, Any]:
    cases = []
    for seed in (0, 1, 5, 0x7FFFFFFF, 0x80000000, 2882400001, 0xFFFFFFFF):
        for item in (0, 1, 2, 101, 489, 65_536, 99_999):
            value = hash_of(item, seed)
            cases += [
                {
                    "seed": seed,
                    "item": item,
                    "hash": value,
                    "hash_range": g,
                    "bucket": value * g >> 32,
                }
                for g in (2, 3, 4, 7, 256, 65_536)
            ]
    return {
        "about": "hash = xxHash32(item as 4 bytes little-endian, seed); bucket = hash * "
        "hash_range >> 32",
        "cases": cases,
    }


_REFUSED: list[tuple[str, int, int | None, str | dict[str, Any], int | None]] = [
    ("grr", 102, None, {"reports": [0, 102]}, 1),
    ("grr", 102, None, {"reports": [-1]}, 0),
    ("grr", 102, None, {"reports": [1, 2, "3"]}, 2),
    ("grr", 102, None, {"reports": [True]}, 0),
    ("grr", 102, None, {"reports": [1.0]}, 0),
    ("grr", 102, None, {"reports": []}, None),
    ("grr", 102, None, "0000000066000000", 1),
    ("grr", 102, None, "000000000000", 1),
    ("oue", 9, None, {"reports": ["000000000", "00000000"]}, 1),
    ("oue", 9, None, {"reports": ["000000002"]}, 0),
    ("oue", 9, None, "ff010002", 1),
    ("sue", 9, None, {"reports": ["0000000000"]}, 0),
    ("sue", 9, None, "ff010002", 1),
    ("ss", 5, 2, {"reports": ["11000", "11100"]}, 1),
    ("ss", 5, 2, {"reports": ["10000", "11000"]}, 0),
    ("ss", 5, 2, "0307", 1),
    ("ss", 5, 2, "60", 0),
    ("hr", 4, None, {"reports": [7, 8]}, 1),
    ("hr", 3, None, {"reports": [4]}, 0),
    ("hr", 4, None, "0700000008000000", 1),
    ("llh", 10, 3, {"reports": [0, 80, 81]}, 2),
    ("llh", 9, 3, {"reports": [27]}, 0),
    ("llh", 9, 3, "1a0000001b000000", 1),
    ("olh", 9, 3, {"seeds": [1, 2], "buckets": [2, 3]}, 1),
    ("olh", 9, 3, {"seeds": [1 << 32], "buckets": [0]}, 0),
    ("olh", 9, 3, {"seeds": [1, 2], "buckets": [0]}, 1),
    ("olh", 9, 3, "ffffffff0300", 0),
]
"""Protocol, number of items, own parameter, reports in one of the forms, position of the fault."""


def wire_forms() -> dict[str, Any]:
    def bits(row: str) -> bytes:
        packed = bytearray(-(-len(row) // 8))
        for i, bit in enumerate(row):
            packed[i // 8] |= int(bit) << i % 8
        return bytes(packed)

    cases: list[dict[str, Any]] = []

    def add(protocol: str, d: int, parameter: int | None, form: Any, packed: bytes) -> None:
        json_form = form if isinstance(form, dict) else {"reports": form}
        case = {"protocol": protocol, "domain_size": d, **own(protocol, parameter)}
        cases.append({**case, "json": json_form, "packed": packed.hex()})

    for d, reports in ((2, [0, 1]), (102, [0, 17, 101, 17]), (100_000, [99_999, 256, 65_536])):
        add("grr", d, None, reports, struct.pack(f"<{len(reports)}I", *reports))
    for rows in (
        ["10", "01", "00", "11"],
        ["10000000", "00000001", "11111111"],
        ["100000000", "000000001", "010101010"],
        ["1" + "0" * 100 + "1", "01" * 51, "0" * 102, "1" * 102],
    ):
        for protocol in ("oue", "sue"):
            add(protocol, len(rows[0]), None, rows, b"".join(map(bits, rows)))
    for rows in (
        ["10", "01"],
        ["11000", "01010", "00011"],
        ["1" + "0" * 99 + "1" * 38, "1" * 39 + "0" * 99],
    ):
        add("ss", len(rows[0]), rows[0].count("1"), rows, b"".join(map(bits, rows)))
    for d, reports in (
        (2, [3, 0]),
        (3, [0, 3]),
        (4, [7, 1, 0, 4]),
        (100_000, [131_071, 65_536, 1]),
    ):
        add("hr", d, None, reports, struct.pack(f"<{len(reports)}I", *reports))
    for d, g, reports in ((2, 2, [3, 0]), (10, 3, [80, 27, 2]), (100_000, 3, [531_440, 65_536])):
        add("llh", d, g, reports, struct.pack(f"<{len(reports)}I", *reports))
    for g, seeds, buckets in (
        (3, [2882400001, 5], [2, 0]),
        (65_536, [0, 0xFFFFFFFF, 1], [65_535, 256, 0]),
    ):
        packed = b"".join(struct.pack("<IH", s, b) for s, b in zip(seeds, buckets, strict=True))
        add("olh", 102, g, {"seeds": seeds, "buckets": buckets}, packed)
    refused = [
        {
            "protocol": protocol,
            "domain_size": d,
            **own(protocol, parameter),
            **({"packed": sent} if isinstance(sent, str) else {"json": sent}),
            "position": position,
        }
        for protocol, d, parameter, sent, position in _REFUSED
    ]
    return {
        "about": "Reports in both forms; packed in hexadecimal. refused: position of the first "
        "bad report, if any.",
        "cases": cases,
        "refused": refused,
    }


def thresholds() -> dict[str, Any]:
    cases: list[dict[str, Any]] = []
    for epsilon in (0.01, 0.1, 0.5, 1.0, math.log(3), 4.0, 10.0):
        e = exp(epsilon)
        for k in (2, 3, 102, 100_000):
            keep = math.floor((1 << 64) * e / (e + k - 1))
            # The exact ratio P(keep)/P(one other value) is at most e^epsilon, and one step more
            # would be over it.
            assert (
                Fraction(keep * (k - 1), (1 << 64) - keep)
                <= e
                < Fraction((keep + 1) * (k - 1), (1 << 64) - keep - 1)
            )
            cases.append({"epsilon": epsilon, "values": k, "keep_below": str(keep)})
        for d, k in ((2, 1), (5, 2), (102, 39), (102, 101)):
            hold = math.floor((1 << 64) * k * e / (k * e + d - k))
            assert Fraction(hold * (d - k), ((1 << 64) - hold) * k) <= e
            assert e < Fraction((hold + 1) * (d - k), ((1 << 64) - hold - 1) * k)
            cases.append(
                {"epsilon": epsilon, "domain_size": d, "subset_size": k, "hold_below": str(hold)}
            )
        root = exp(epsilon / 2)
        turn = math.ceil((1 << 64) / (root + 1))
        assert (
            Fraction((1 << 64) - turn, turn) ** 2
            <= e
            < Fraction((1 << 64) - turn + 1, turn - 1) ** 2
        )
        cases.append({"epsilon": epsilon, "turn_below": str(turn)})
        flip = math.ceil((1 << 64) / (e + 1))
        assert Fraction((1 << 64) - flip, flip) <= e < Fraction((1 << 64) - flip + 1, flip - 1)
        cases.append({"epsilon": epsilon, "flip_below": str(flip)})
    return {
        "about": (
            "A uniform 64-bit word below the threshold keeps the value (values = d items for GRR, "
            "g buckets for OLH and LLH, "
            "the 2 signs for HR), sends a zero bit as one (OUE), turns a bit over (SUE), or has "
            "the user's item in its "
            "subset (SS). Rounded to the private side. Decimal strings: they exceed 2^53."
        ),
        "cases": cases,
    }


class Words:
    """Fixed words, then SHA-256 of the name and a counter. Records them."""

    def __init__(self, name: str, first: list[int]) -> None:
        self._name, self._first = name, first
        self.taken: list[int] = []

    def __call__(self) -> int:
        i = len(self.taken)
        block = hashlib.sha256(f"{self._name} {i}".encode()).digest()[:8]
        word = self._first[i] if i < len(self._first) else int.from_bytes(block, "little")
        self.taken.append(word)
        return word

    def below(self, k: int) -> int:
        """Return a uniform integer from 0 to k - 1; words in the biased tail are skipped."""
        while (word := self()) >= (1 << 64) // k * k:
            pass
        return word % k


def threshold(protocol: str, epsilon: float, d: int, parameter: int | None) -> int:
    """Return the threshold of a protocol: p or q times 2^64, rounded to the private side."""
    e = exp(epsilon)
    if protocol in ("oue", "sue"):
        return math.ceil((1 << 64) * p_q(protocol, epsilon, d, parameter)[1])
    values = {"grr": d, "olh": parameter, "llh": parameter, "hr": 2}.get(protocol)
    share = p_q(protocol, epsilon, d, parameter)[0] if values is None else e / (e + values - 1)
    return math.floor((1 << 64) * share)


def flipped(d: int, below: int, word: Words) -> list[int]:
    """Return d bits, each 1 if its 64-bit number is below the threshold, in blocks of 64."""
    blocks = -(-d // 64)
    numbers = [[0] * 64 for _ in range(blocks)]
    for _ in range(8):  # their leading bits, from the highest; a one in the word stands for a zero
        for block in numbers:
            bits = word()
            for i in range(64):
                block[i] = block[i] << 1 | (~bits >> i & 1)
    remaining = [
        [i for i in range(64) if block[i] == below >> 56] for block in numbers
    ]  # neither below nor above as yet
    result = [[int(number < below >> 56) for number in block] for block in numbers]
    while any(remaining):
        for bits_of_block, waiting in zip(result, remaining, strict=True):
            if waiting:  # one of each block in turn; 56 bits more, at the top of a word
                bits_of_block[waiting.pop(0)] = int(word() >> 8 < below & (1 << 56) - 1)
    return [bit for bits_of_block in result for bit in bits_of_block][:d]


def subset(d: int, item: int, count: int, word: Words) -> list[int]:
    """Return bits of the `count` other items with the lowest 32-bit keys, two a word."""
    while True:
        keys = [half for _ in range(-(-d // 2)) for half in divmod(word(), 1 << 32)[::-1]][:d]
        others = sorted((key, i) for i, key in enumerate(keys) if i != item)
        # The item's own key counts as the greatest there is, also where the next one is looked for.
        following = [key for key, _ in others[count:]] + [0xFFFFFFFF]
        if count in (0, d - 1) or others[count - 1][0] < following[0]:
            chosen = {i for _, i in others[:count]}
            return [int(i in chosen) for i in range(d)]


def drawn(
    protocol: str,
    epsilon: float,
    d: int,
    parameter: int | None,
    item: int,
    word: Words,
) -> bytes:
    """Return the packed report of these words."""
    t = threshold(protocol, epsilon, d, parameter)
    if protocol == "grr":
        keeps, other = word() < t, (item + 1 + word.below(d - 1)) % d
        return struct.pack("<I", item if keeps else other)
    if protocol == "olh":
        assert parameter is not None
        seed = word() >> 32
        bucket = hash_of(item, seed) * parameter >> 32
        keeps, other = word() < t, (bucket + 1 + word.below(parameter - 1)) % parameter
        return struct.pack("<IH", seed, bucket if keeps else other)
    if protocol == "llh":
        assert parameter is not None
        seed = word.below(seeds_of(d, parameter)[1])
        bucket = linear_bucket(seed, item, d, parameter)
        keeps, other = word() < t, (bucket + 1 + word.below(parameter - 1)) % parameter
        return struct.pack("<I", seed * parameter + (bucket if keeps else other))
    if protocol == "hr":
        odd, column = word() >= t, word() % (1 << d.bit_length())
        if bin(item + 1 & column).count("1") % 2 != odd:
            column ^= item + 1 & -(item + 1)
        return struct.pack("<I", column)
    if protocol == "ss":
        assert parameter is not None
        holds = int(word() < t)
        row = subset(d, item, parameter - holds, word)
        row[item] = holds
    else:
        row = flipped(d, t, word)
        row[item] = word() & 1 if protocol == "oue" else int(word() >= t)
    return sum(bit << i for i, bit in enumerate(row)).to_bytes(-(-d // 8), "little")


def reports() -> dict[str, Any]:
    top = (1 << 64) - 1
    cases = []
    settings: list[tuple[str, float, int, int | None, int, Sequence[int | str]]] = [
        *(("grr", 1.0, 5, None, item, []) for item in (0, 2, 4)),
        ("grr", 0.5, 2, None, 1, []),
        ("grr", 0.5, 100_000, None, 99_999, ["t"]),
        ("grr", 1.0, 5, None, 2, ["t-1"]),
        ("grr", 1.0, 5, None, 2, ["t"]),
        ("grr", 1.0, 4, None, 3, [top, top, 4]),  # 2^64 - 1 is the biased tail of thirds
        *(("oue", 1.0, d, None, d - 1, []) for d in (2, 8, 9, 64, 65, 200)),
        ("oue", 0.5, 20, None, 0, ["open"] * 8),
        *(("oue", 0.5, 20, None, 5, [*["open"] * 8, name]) for name in ("rest", "rest-1")),
        ("oue", 10.0, 70, None, 3, []),
        *(("sue", 1.0, d, None, 1, []) for d in (2, 9, 130)),
        ("sue", 2.0, 70, None, 69, ["open"] * 16),
        *(("sue", 1.0, 9, None, 8, [*[0] * 8, name]) for name in ("t", "t-1")),
        *(("olh", 1.0, 6, 4, item, []) for item in (0, 3, 5)),
        ("olh", 0.5, 100_000, 65_536, 77_777, []),
        ("olh", 0.5, 9, 2, 8, [top, "t-1"]),
        ("olh", 0.5, 9, 2, 8, [top, "t"]),
        ("olh", 0.5, 9, 4, 1, [0, top, top, 5]),
        *(("ss", 1.0, 9, k, 4, []) for k in (1, 3, 8)),
        *(("ss", 1.0, 9, k, 8, [edge]) for k in (1, 3, 8) for edge in (0, top)),
        ("ss", 0.5, 4, 2, 0, [0, 7 << 32, 7 << 32 | 7]),  # three equal keys: drawn again
        ("ss", 0.5, 2, 1, 1, []),
        *(("hr", 1.0, d, None, d - 1, []) for d in (2, 3, 4, 40, 100_000)),
        ("hr", 1.0, 4, None, 1, ["t-1", 5]),
        ("hr", 1.0, 4, None, 1, ["t", 5]),
        *(("llh", 1.0, 10, 3, item, []) for item in (0, 1, 5, 9)),
        ("llh", 0.5, 2, 2, 1, []),
        ("llh", 0.2, 100_000, 2, 99_999, []),
        ("llh", 1.0, 100_000, 3, 77_777, []),
        ("llh", 0.5, 10, 3, 8, [top, 25, "t-1"]),  # 2^64 - 1 is the biased tail of 27
        ("llh", 0.5, 10, 3, 8, [25, "t", 0]),
        ("llh", 3.0, 102, 23, 101, [528, top, top, 21]),
    ]
    for i, (protocol, epsilon, d, parameter, item, first) in enumerate(settings):
        t = threshold(protocol, epsilon, d, parameter)
        blocks = -(-d // 64)
        # Words after which all numbers of a block equal the threshold so far.
        still_open = [0 if t >> 63 - i // blocks & 1 else top for i in range(8 * blocks)]
        rest = t << 8 & top
        named = {"t": t, "t-1": t - 1, "rest": rest, "rest-1": rest - 1}
        prefix = [
            still_open[j] if w == "open" else named[w] if isinstance(w, str) else w
            for j, w in enumerate(first)
        ]
        words = Words(f"report {i}", prefix)
        packed = drawn(protocol, epsilon, d, parameter, item, words)
        assert words.taken[: len(prefix)] == prefix
        cases.append(
            {
                "protocol": protocol,
                "epsilon": epsilon,
                "domain_size": d,
                **own(protocol, parameter),
                "item": item,
                "words": [str(word) for word in words.taken],
                "packed": packed.hex(),
            }
        )
    numbers = []
    for i, x in enumerate((-1.0, -0.5, 0.0, 0.3, 1.0, 0.0, 0.0)):
        word = {5: (1 << 63) - 1, 6: 1 << 63}.get(i, Words(f"number {i}", [])())
        numbers.append(
            {
                "number": x,
                "words": [str(word)],
                "item": int(Fraction(word >> 11, 1 << 53) < (1 + Fraction(x)) / 2),
            }
        )
    return {
        "about": (
            "The packed report, in hexadecimal, that these uniform 64-bit words make of an item, "
            "all of them and no "
            "more; words are decimal strings. numbers: what a number becomes in a round for "
            "numbers, before it is "
            "perturbed. In which order words are taken, README.md says."
        ),
        "cases": cases,
        "numbers": numbers,
    }


def digests() -> dict[str, Any]:
    cases = []
    for protocol, epsilon, items, parameter in (
        ("grr", 0.5, ["0", "1"], None),
        ("oue", 1.0, ["Zürich", "東京", "😀", "São Paulo"], None),
        ("oue", 0.1, ["e\u0301", "é"], None),
        ("olh", 0.5, ["New York, NY", "Los Angeles, CA", "Chicago, IL"], 3),
        ("olh", 10.0, [str(i) for i in range(300)], 65_536),
        ("sue", 0.5, ["a", "b", "c"], None),
        ("ss", 0.5, [str(i) for i in range(102)], 39),
        ("ss", 3.0, ["a", "b"], 1),
        ("hr", 0.5, ["a", "b", "c", "d"], None),
        ("llh", 0.5, ["a", "b", "c", "d"], 3),
    ):
        data = protocol.encode() + b"\0" + struct.pack("<dII", epsilon, parameter or 0, len(items))
        for label in items:
            data += struct.pack("<I", len(label.encode())) + label.encode()
        p, q = p_q(protocol, epsilon, len(items), parameter)
        cases.append(
            {
                "protocol": protocol,
                "epsilon": epsilon,
                "items": items,
                **own(protocol, parameter),
                "p": float(p),
                "q": float(q),
                "digest": hashlib.sha256(data).hexdigest(),
            }
        )
    return {
        "about": (
            "SHA-256 of: protocol in ASCII, a zero byte, epsilon as a double, hash_range or "
            "subset_size (0 for none) and number of items as u4, then each label as u4 length and "
            "UTF-8 bytes; little-endian."
        ),
        "cases": cases,
    }


ROUNDS: list[tuple[str, float, int | None, int, list[int]]] = [
    ("grr", 0.5, None, 1000, [400, 300, 150, 100, 50]),
    ("grr", 1.0, None, 10, [10, 0]),
    ("oue", 0.5, None, 1000, [600, 380, 370, 350, 377, 0]),
    ("oue", 2.0, None, 50, [25, 6, 50, 3]),
    ("olh", 0.5, 3, 1000, [500, 333, 300, 320, 340]),
    ("olh", 1.0, 4, 410_415, [120_000, 103_000, 102_000, 101_000, 110_000, 90_000]),
    ("sue", 0.5, None, 1000, [600, 430, 440, 450, 445, 400]),
    ("ss", 1.0, 2, 1000, [500, 400, 350, 350, 400]),
    ("hr", 0.5, None, 1000, [560, 500, 510, 490, 515]),
    ("llh", 0.5, 3, 1000, [430, 333, 300, 320, 340]),
]


def estimates() -> dict[str, Any]:
    cases = []
    for protocol, epsilon, parameter, n, counts in ROUNDS:
        p, q = p_q(protocol, epsilon, len(counts), parameter)
        frequencies = [(Fraction(c, n) - q) / (p - q) for c in counts]
        errors = []
        for frequency in frequencies:
            f = min(max(frequency, Fraction(0)), Fraction(1))
            variance = q * (1 - q) / (n * (p - q) ** 2) + f * (1 - p - q) / (n * (p - q))
            errors.append(math.sqrt(variance))
        cases.append(
            {
                "protocol": protocol,
                "epsilon": epsilon,
                **own(protocol, parameter),
                "n": n,
                "counts": counts,
                "frequencies": [float(f) for f in frequencies],
                "standard_errors": errors,
                "malicious_sum": float((1 - q * len(counts)) / (p - q)),
            }
        )
    return {
        "about": (
            "f = (C/n - q)/(p - q); standard error = sqrt(q(1-q)/(n(p-q)^2) + f(1-p-q)/(n(p-q))), "
            "f clipped into 0..1. "
            "Agree to a relative 1e-9."
        ),
        "cases": cases,
    }


def project(x: list[Fraction]) -> list[Fraction]:
    total, tau = Fraction(0), None
    for k, value in enumerate(sorted(x, reverse=True), start=1):
        total += value
        candidate = (total - 1) / k
        tau = candidate if tau is None else max(tau, candidate)
    assert tau is not None
    return [max(value - tau, Fraction(0)) for value in x]


def recoveries() -> dict[str, Any]:
    cases = []
    for protocol, epsilon, parameter, n, counts in ROUNDS:
        d = len(counts)
        p, q = p_q(protocol, epsilon, d, parameter)
        s = (1 - q * d) / (p - q)
        poisoned = [(Fraction(c, n) - q) / (p - q) for c in counts]
        for method, eta, targets, model in (
            ("norm-sub", 0.2, [], "paper"),
            ("ldprecover", 0.2, [], "paper"),
            ("ldprecover", 1.5, [], "paper"),
            ("ldprecover", 0.2, [0], "paper"),
            ("ldprecover", 0.2, [0], "exact"),
            ("ldprecover", 0.05, list(range(1, d)), "paper"),
            ("ldprecover", 0.05, list(range(1, d)), "exact"),
        ):
            share, r = Fraction(eta), len(targets)
            if method == "norm-sub":
                share, malicious = Fraction(0), [Fraction(0)] * d
            elif not targets:
                positive = sum(f > 0 for f in poisoned)
                malicious = [s / positive if f > 0 else Fraction(0) for f in poisoned]
            elif model == "paper":
                other = -q * d / ((d - r) * (p - q))
                malicious = [(s - (d - r) * other) / r if v in targets else other for v in range(d)]
            else:
                malicious = [
                    ((Fraction(1, r) if v in targets else 0) - q) / (p - q) for v in range(d)
                ]
            genuine = [
                (1 + share) * z - share * y for z, y in zip(poisoned, malicious, strict=True)
            ]
            cases.append(
                {
                    "protocol": protocol,
                    "epsilon": epsilon,
                    **own(protocol, parameter),
                    "n": n,
                    "counts": counts,
                    "method": method,
                    "eta": eta,
                    "targets": targets,
                    "malicious_model": model,
                    "malicious": [float(f) for f in malicious],
                    "genuine": [float(f) for f in genuine],
                    "recovered": [float(f) for f in project(genuine)],
                }
            )
    return {
        "about": (
            "The frequencies estimated from counts and n, recovered: genuine = (1 + eta) poisoned "
            "- eta malicious, "
            "recovered = its projection on the probability simplex. norm-sub uses eta = 0 and no "
            "targets. "
            "Agree to an absolute 1e-9."
        ),
        "cases": cases,
    }


FILES: dict[str, Callable[[], dict[str, Any]]] = {
    "columns.json": columns,
    "linear_hashes.json": linear_hashes,
    "hash.json": hashes,
    "wire.json": wire_forms,
    "thresholds.json": thresholds,
    "parameters.json": digests,
    "estimates.json": estimates,
    "recover.json": recoveries,
    "reports.json": reports,
}


def text(name: str) -> str:
    """Return the text of a vector file, one case a line."""
    content = FILES[name]()
    fields = [f'  "about": {json.dumps(content.pop("about"))}']
    for key, rows in content.items():
        lines = ",\n".join("    " + json.dumps(row) for row in rows)
        fields.append(f'  "{key}": [\n{lines}\n  ]')
    return "{\n" + ",\n".join(fields) + "\n}\n"


if __name__ == "__main__":
    for file in FILES:
        (HERE / file).write_text(text(file), encoding="utf-8")
