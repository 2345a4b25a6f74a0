"""Tallies drawn at once: the support counts of many simulated users, without making their reports.

Recovery from counts needs the tally alone, and a tally has a law of its own that takes O(d) draws where its
reports take O(n) or O(nd). The draws are exact for GRR and OUE. For OLH they are exact for an ideal hash: under
one, the buckets of different items are independent and uniform. A report of a user who holds x is a
(function H, bucket a) where a depends on H(x) and on coins alone, so for every v other than x the event
H(v) = a has probability 1/g whatever a is, and these events are independent of each other and of H(x) = a,
which has probability p. A report's support is therefore independent item by item, as an OUE report's is, with
q = 1/g. (xxHash32 with a random seed stands for that hash on the wire.)

The doubles p and q are used as they are; perturbing real reports rounds its thresholds to 2^-64.
"""

import numpy as np
from numpy.typing import ArrayLike

from ldprecover._checks import finite_vector
from ldprecover.errors import ParameterError
from ldprecover.protocols import GRR, OLH, OUE, FrequencyOracle
from ldprecover.tally import Tally
from ldprecover.types import FloatArray, Int64Array

__all__ = ["honest_tally", "input_poisoning_tally", "one_hot_tally", "sampled_tally"]


def honest_tally(oracle: FrequencyOracle, true_counts: ArrayLike, rng: np.random.Generator) -> Tally:
    """Return a tally of honest reports, drawn from its exact law, where true_counts[v] users hold item v.

    - GRR: a user reports its own item with probability p - q and a uniform one of all d items otherwise,
      which is p on its own and q = (1 - p + q)/d on each other. The count of the first kind is binomial for
      each item, the rest of the reports are multinomial over all of them.
    - OUE, and OLH under an ideal hash: C(v) = Bin(n_v, p) + Bin(n - n_v, q), independent over the items.

    Raises ParameterError unless there is a whole number of users, at least 0, for each of the d items, and
    for a protocol of another kind.
    """
    held = _counts(true_counts, oracle.domain_size)
    n = int(held.sum())
    if isinstance(oracle, GRR):
        own = rng.binomial(held, oracle.p - oracle.q)
        return Tally(own + _spread(n - int(own.sum()), oracle.domain_size, rng), n)
    if isinstance(oracle, OUE | OLH):
        return Tally(rng.binomial(held, oracle.p) + rng.binomial(n - held, oracle.q), n)
    raise ParameterError(f"the tally of {oracle.protocol} reports has no law here: draw the reports")


def one_hot_tally(weights: ArrayLike, m: int, rng: np.random.Generator) -> Tally:
    """Return a tally of m malicious reports that each support the one item drawn from the distribution `weights`.

    The paper's model of an attack (V-C): multinomial. For GRR and OUE it is the law of encoded, unperturbed
    items. For OLH no reports have it, since one that supports an item supports each other with probability
    1/g: it exists at the level of counts alone.

    Raises ParameterError unless the weights are not negative and sum to one.
    """
    return Tally(_draw(weights, m, rng), m)


def sampled_tally(oracle: FrequencyOracle, weights: ArrayLike, m: int, rng: np.random.Generator) -> Tally:
    """Return a tally of m malicious reports that encode, unperturbed, an item drawn from `weights`.

    The law of `FrequencyOracle.encode`: `one_hot_tally` for GRR and OUE; for OLH, where a user sends a random
    seed and its item's bucket, C(v) = M_v + Bin(m - M_v, 1/g) with multinomial M, under an ideal hash.

    Raises ParameterError as `one_hot_tally` does.
    """
    drawn = _draw(_of_domain(weights, oracle.domain_size), m, rng)
    return Tally(drawn + rng.binomial(m - drawn, oracle.q) if isinstance(oracle, OLH) else drawn, m)


def input_poisoning_tally(oracle: FrequencyOracle, weights: ArrayLike, m: int, rng: np.random.Generator) -> Tally:
    """Return a tally of m malicious users who draw an item from `weights` and report it honestly (paper, VII-B).

    Raises ParameterError as `one_hot_tally` and `honest_tally` do.
    """
    return honest_tally(oracle, _draw(_of_domain(weights, oracle.domain_size), m, rng), rng)


def _counts(true_counts: ArrayLike, d: int) -> Int64Array:
    counts = np.asarray(true_counts)
    if counts.shape != (d,) or not np.issubdtype(counts.dtype, np.integer) or (counts < 0).any():
        raise ParameterError(f"true_counts must be an integer of at least 0 for each of the {d} items")
    return counts.astype(np.int64, copy=False)


def _of_domain(weights: ArrayLike, d: int) -> FloatArray:
    vector = finite_vector(weights, "weights")
    if vector.size != d:
        raise ParameterError(f"weights must be of the {d} items, not {vector.size}")
    return vector


def _draw(weights: ArrayLike, m: int, rng: np.random.Generator) -> Int64Array:
    vector = finite_vector(weights, "weights")
    if (vector < 0).any() or abs(vector.sum() - 1) > 1e-9:
        raise ParameterError("weights must be at least 0 and sum to one")
    if isinstance(m, bool) or not isinstance(m, int) or m < 0:
        raise ParameterError(f"m, the number of malicious users, must be an integer of at least 0, not {m!r:.40}")
    return rng.multinomial(m, vector / vector.sum())


def _spread(n: int, d: int, rng: np.random.Generator) -> Int64Array:
    return rng.multinomial(n, np.full(d, 1 / d))
