"""Rounds of LLH through a real server, checked by arithmetic that shares no code with it.

The formulas are those of docs/explanation/protocols.md, in integers and fractions; only p needs
floats. Nothing here imports the library.
"""

import gzip
import json
import math
import random
import struct
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import pytest
from tests.conftest import PACKED, ServerProcess

CELLS = 1 << 20
ROUNDS = [  # epsilon, d, g; None is the default
    (1.0, 2, 2),
    (0.5, 2, None),
    (0.5, 9, 3),
    (1.0, 16, 2),
    (1.0, 243, 3),
    (2.0, 50, 7),
    (0.01, 10, 5),
    (10.0, 7, 53),
    (0.5, 102, None),
    (3.0, 1000, None),
]
IDS = [f"eps{epsilon:g}-d{d}-g{g or 'default'}" for epsilon, d, g in ROUNDS]


def digits_of(number: int, g: int, k: int) -> list[int]:
    digits = []
    for _ in range(k):
        number, digit = divmod(number, g)
        digits.append(digit)
    assert number == 0
    return digits


def least_digits(d: int, g: int) -> int:
    return next(k for k in range(1, 18) if g**k >= d)


def default_range(epsilon: float, d: int) -> int:
    """Return the prime of least variance q(1-q)/(p-q)^2 with at most 2^20 reports."""

    def variance(g: int) -> float:
        p, q = math.exp(epsilon) / (math.exp(epsilon) + g - 1), 1 / g
        return q * (1 - q) / (p - q) ** 2

    primes = [g for g in range(2, 1024) if all(g % i for i in range(2, g))]
    return min((g for g in primes if g ** (least_digits(d, g) + 1) <= CELLS), key=variance)


class Arithmetic:
    """The numbers of a round with d items and hash range g."""

    def __init__(self, epsilon: float, d: int, g: int) -> None:
        self.d, self.g, self.k = d, g, least_digits(d, g)
        self.cells = g ** (self.k + 1)
        self.p = math.exp(epsilon) / (math.exp(epsilon) + g - 1)
        self.codes = [digits_of(v, g, self.k) for v in range(d)]

    def counts(self, reports: Iterable[int]) -> list[int]:
        """Return the number of reports that support each item."""
        counts = [0] * self.d
        for x in reports:
            seed, bucket = divmod(x, self.g)
            r = digits_of(seed, self.g, self.k)
            for v, code in enumerate(self.codes):
                inner = sum(a * b for a, b in zip(r, code, strict=True))
                counts[v] += inner % self.g == bucket
        return counts

    def estimates(self, counts: list[int], n: int) -> tuple[list[float], list[float]]:
        """Return (C/n - q)/(p - q), and the root of Lemma 2's variance at it in [0, 1]."""
        p, q = Fraction(self.p), Fraction(1, self.g)
        frequencies = [(Fraction(c, n) - q) / (p - q) for c in counts]
        clipped = [min(max(f, Fraction(0)), Fraction(1)) for f in frequencies]
        variances = [
            q * (1 - q) / (n * (p - q) ** 2) + f * (1 - p - q) / (n * (p - q)) for f in clipped
        ]
        return [float(f) for f in frequencies], [math.sqrt(v) for v in variances]


def opened(server: ServerProcess, epsilon: float, d: int, g: int | None, **fields: Any) -> Any:
    return server.open_round("llh", epsilon, domain_size=d, hash_range=g, **fields)


def reports_of(arithmetic: Arithmetic, n: int) -> list[int]:
    """Return random reports, the first and the last; report 0, which is rare, once."""
    numbers = random.Random(1)
    return [0, arithmetic.cells - 1, *(numbers.randrange(1, arithmetic.cells) for _ in range(n))]


def packed(reports: list[int]) -> bytes:
    return struct.pack(f"<{len(reports)}I", *reports)


@pytest.mark.parametrize(("epsilon", "d", "g"), ROUNDS, ids=IDS)
def test_counts_estimates_and_errors(
    server: ServerProcess, epsilon: float, d: int, g: int | None
) -> None:
    """JSON and packed reports, plain and gzipped, have the counts of the definition."""
    round_ = opened(server, epsilon, d, g)
    expected = Arithmetic(epsilon, d, g or default_range(epsilon, d))
    assert (round_["hash_range"], round_["digits"]) == (expected.g, expected.k)
    assert math.isclose(round_["p"], expected.p, rel_tol=1e-14)
    assert math.isclose(round_["q"], 1 / expected.g, rel_tol=1e-14)
    stated = server.get(f"/rounds/{round_['id']}/parameters").json()
    assert (stated["hash_range"], stated["digits"]) == (expected.g, expected.k)

    reports = reports_of(expected, 78)
    forms = [reports[i::4] for i in range(4)]
    body = json.dumps({"reports": forms[0]}).encode()
    zipped = json.dumps({"reports": forms[1]}).encode()
    text, gz = {"Content-Type": "application/json"}, {"Content-Encoding": "gzip"}
    for content, headers in (
        (body, text),
        (gzip.compress(zipped), text | gz),
        (packed(forms[2]), PACKED),
        (gzip.compress(packed(forms[3])), PACKED | gz),
    ):
        answer = server.post(
            f"/rounds/{round_['id']}/reports", content=content, headers=headers | server.admin
        )
        assert answer.status_code == 202, answer.text
        assert answer.json()["accepted"] == 20

    shown = server.frequencies(round_["id"])
    counts = expected.counts(reports)
    frequencies, errors = expected.estimates(counts, len(reports))
    assert (shown["n"], shown["counts"]) == (len(reports), counts)
    assert shown["frequencies"] == pytest.approx(frequencies, rel=1e-9, abs=1e-9)
    assert shown["standard_errors"] == pytest.approx(errors, rel=1e-9)
    assert shown["sum"] == pytest.approx(math.fsum(frequencies), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("epsilon", "d", "g"), [(1.0, 9, 3), (1.0, 10, 3), (0.5, 2, 2)])
def test_bad_report_rejects_its_submission(
    server: ServerProcess, epsilon: float, d: int, g: int
) -> None:
    """The position of the first bad report is stated, and nothing is stored."""
    id = opened(server, epsilon, d, g)["id"]
    cells = g ** (least_digits(d, g) + 1)
    path = f"/rounds/{id}/reports"
    bad: list[Any] = [cells, -1, True, False, 1.0, 0.5, "1", None, [1], 1 << 32, 1 << 64, {}]
    for value in bad:
        body = {"reports": [1, cells - 1, value, cells]}
        answer = server.post(path, json=body, headers=server.admin)
        assert answer.status_code == 422, (value, answer.text)
        assert answer.json()["position"] == 2, value
    for text in ("NaN", "1e0", "01", "-0.0"):
        content = f'{{"reports": [{text}]}}'.encode()
        headers = {"Content-Type": "application/json"} | server.admin
        assert server.post(path, content=content, headers=headers).status_code == 422, text
    for content, position in (
        (packed([1, cells]), 1),
        (packed([1, 2, 0xFFFFFFFF, cells]), 2),
    ):
        answer = server.submit(id, content)
        assert (answer.status_code, answer.json()["position"]) == (422, position)
    for content in (b"", b"\0", b"\0\0\0", packed([1]) + b"\0"):
        assert server.submit(id, content).status_code == 422, content
    others: list[Any] = [{"reports": []}, {"seeds": [0], "buckets": [0]}, {"reports": 1}]
    for wrong in others:
        assert server.post(path, json=wrong, headers=server.admin).status_code == 422, wrong
    assert server.frequencies(id)["n"] == 0
    assert server.post(path, json={"reports": [cells - 1]}, headers=server.admin).json() == {
        "round": id,
        "accepted": 1,
        "duplicate": False,
    }


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"hash_range": 4}, "hash_range must be a prime for llh, not 4"),
        ({"hash_range": 1}, "hash_range must be an integer from 2"),
        ({"hash_range": 1031}, "hash_range must be from 2 to 1021"),
        ({"hash_range": 103, "domain_size": 104}, "choose a smaller hash_range, or oue"),
        ({"hash_range": 2.0}, "hash_range must be an integer"),
        ({"hash_range": True}, "hash_range must be an integer"),
    ],
)
def test_rejects_other_hash_ranges(
    server: ServerProcess, fields: dict[str, Any], reason: str
) -> None:
    answer = server.try_open("llh", **fields)
    assert answer.status_code == 422
    assert reason in answer.text


def test_largest_hash_range_has_at_most_2_20_reports(server: ServerProcess) -> None:
    assert 101**3 <= CELLS < 103**3
    id = opened(server, 1.0, 102, 101)["id"]
    expected = Arithmetic(1.0, 102, 101)
    reports = [101**3 - 1, 101**3 // 2, 7]
    assert server.submit(id, packed(reports)).status_code == 202
    assert server.frequencies(id)["counts"] == expected.counts(reports)


def test_two_items_share_their_bucket_under_s_over_g_seeds() -> None:
    """The family is exactly pairwise uniform, and so is the arithmetic above."""
    for g, k in ((2, 3), (3, 2), (5, 2)):
        codes = [digits_of(v, g, k) for v in range(g**k)]
        for v, one in enumerate(codes):
            for other in codes[:v]:
                shared = sum(
                    sum(r * (a - b) for r, a, b in zip(seed, one, other, strict=True)) % g == 0
                    for seed in codes
                )
                assert shared == g**k // g
