"""Computes again what the vectors state, from the inputs of each case.

Those of hashes, thresholds, digests and reports have no function here: the packages for Python and
for JavaScript both agree with them. Nor have those of columns and linear hashes: the package agrees
with them, and with the definitions in `tests/core/protocols/test_any_array.py`. Nothing here
imports the package under test. Numbers come from rational arithmetic: e^epsilon is a Fraction
within 2^-256 of the true value, so that a vector is right to the last digit of a double.
"""

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

Case = dict[str, Any]


def exp(epsilon: float) -> Fraction:
    """Return e^epsilon of the double itself, within 2^-256 relatively (its Taylor series)."""
    x, term, total, k = Fraction(epsilon), Fraction(1), Fraction(1), 0
    while term > Fraction(1, 1 << 260):
        k += 1
        term = term * x / k
        total += term
    return Fraction(round(total * (1 << 320)), 1 << 320)


def p_q(case: Case) -> tuple[Fraction, Fraction]:
    """Return the exact p and q of a case's protocol."""
    e, d = exp(case["epsilon"]), len(case["counts"])
    match case["protocol"]:
        case "grr":
            return e / (d - 1 + e), 1 / (d - 1 + e)
        case "oue":
            return Fraction(1, 2), 1 / (e + 1)
        case "sue":
            root = exp(case["epsilon"] / 2)  # half a double is a double
            return root / (root + 1), 1 / (root + 1)
        case "hr":
            return e / (e + 1), Fraction(1, 2)
        case "ss":
            k = case["subset_size"]
            total = k * e + d - k
            return k * e / total, (k * (k - 1) * e + (d - k) * k) / ((d - 1) * total)
    g = case["hash_range"]
    return e / (e + g - 1), Fraction(1, g)


def wire(case: Case) -> Case:
    if "seeds" in case["json"]:
        pairs = zip(case["json"]["seeds"], case["json"]["buckets"], strict=True)
        return {"packed": b"".join(struct.pack("<IH", *pair) for pair in pairs).hex()}
    packed = b""
    for report in case["json"]["reports"]:
        size = 4 if isinstance(report, int) else -(-len(report) // 8)
        number = report if isinstance(report, int) else int(report[::-1], 2)
        packed += number.to_bytes(size, "little")
    return {"packed": packed.hex()}


def estimates(case: Case) -> Case:
    (p, q), n, d = p_q(case), case["n"], len(case["counts"])
    frequencies = [(Fraction(c, n) - q) / (p - q) for c in case["counts"]]
    clipped = [min(max(f, Fraction(0)), Fraction(1)) for f in frequencies]
    variances = [
        q * (1 - q) / (n * (p - q) ** 2) + f * (1 - p - q) / (n * (p - q)) for f in clipped
    ]
    return {
        "frequencies": [float(f) for f in frequencies],
        "standard_errors": [math.sqrt(v) for v in variances],
        "malicious_sum": float((1 - q * d) / (p - q)),
    }


def project(x: list[Fraction]) -> list[Fraction]:
    sums = [sum(sorted(x, reverse=True)[: k + 1], Fraction(0)) for k in range(len(x))]
    tau = max((total - 1) / k for k, total in enumerate(sums, start=1))
    return [max(value - tau, Fraction(0)) for value in x]


def recovery(case: Case) -> Case:
    (p, q), d, targets = p_q(case), len(case["counts"]), case["targets"]
    s, r, eta = (1 - q * d) / (p - q), len(targets), Fraction(case["eta"])
    poisoned = [(Fraction(c, case["n"]) - q) / (p - q) for c in case["counts"]]
    if case["method"] == "norm-sub":
        eta, malicious = Fraction(0), [Fraction(0)] * d
    elif not targets:
        positive = sum(f > 0 for f in poisoned)
        malicious = [s / positive if f > 0 else Fraction(0) for f in poisoned]
    elif case["malicious_model"] == "paper":
        other = -q * d / ((d - r) * (p - q))
        malicious = [(s - (d - r) * other) / r if v in targets else other for v in range(d)]
    else:
        malicious = [(Fraction(v in targets, r) - q) / (p - q) for v in range(d)]
    genuine = [(1 + eta) * z - eta * y for z, y in zip(poisoned, malicious, strict=True)]
    columns = {"malicious": malicious, "genuine": genuine, "recovered": project(genuine)}
    return {name: [float(f) for f in values] for name, values in columns.items()}


OUTPUTS: dict[tuple[str, str], Callable[[Case], Case]] = {
    ("wire.json", "cases"): wire,
    ("estimates.json", "cases"): estimates,
    ("recover.json", "cases"): recovery,
}
"""What a case of each file and key states of its inputs."""
