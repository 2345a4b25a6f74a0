"""All reports of small protocols and their laws, from the definitions of the protocols."""

import math
from itertools import combinations, product

import numpy as np

from ldprecover import LLH, FrequencyOracle


def listed(oracle: FrequencyOracle) -> tuple[np.ndarray, np.ndarray]:
    """Return what all reports support, (M, d), and their laws for a user of each item, (d, M)."""
    d, e, own, items = (
        oracle.domain_size,
        math.exp(oracle.epsilon),
        oracle.own,
        range(oracle.domain_size),
    )
    match oracle.protocol:
        case "grr":
            supports = np.eye(d, dtype=bool)
        case "oue" | "sue":
            root = math.sqrt(e)
            q = 1 / (e + 1) if oracle.protocol == "oue" else 1 / (root + 1)
            p = 0.5 if oracle.protocol == "oue" else 1 - q
            bits = np.array(list(product((False, True), repeat=d)))
            ones = np.where(np.eye(d, dtype=bool), p, q)[:, None]
            return bits, np.where(bits, ones, 1 - ones).prod(axis=2)
        case "ss":
            sets = combinations(items, own["subset_size"])
            supports = np.array([np.isin(items, each) for each in sets])
        case "olh":  # every function from items to buckets is equally likely
            buckets = np.array(list(product(range(own["hash_range"]), repeat=d)))
            supports = np.concatenate([buckets == y for y in range(own["hash_range"])])
        case "hr":
            columns = range(1 << d.bit_length())
            supports = np.array(
                [[((v + 1) & y).bit_count() % 2 == 0 for v in items] for y in columns]
            )
        case "llh":
            assert isinstance(oracle, LLH)
            g, k = oracle.hash_range, oracle.digits
            digits = np.array([[v // g**i % g for i in range(k)] for v in items])
            sums = np.array(list(product(range(g), repeat=k))) @ digits.T % g
            supports = np.concatenate([sums == y for y in range(g)])
    # A report is e^epsilon times as likely under the items that it supports.
    weights = np.where(supports.T, e, 1.0)
    return supports, weights / weights.sum(axis=1, keepdims=True)
