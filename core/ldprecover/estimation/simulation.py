"""Simulated tallies: support counts of malicious users, drawn without making their reports.

Recovery from counts needs the tally alone. A tally follows a known law, which takes O(d) draws
where reports take O(n) or O(nd): see `FrequencyOracle.simulation`. A protocol without such a law
draws the reports.

The draws are exact; for OLH under an ideal hash, for which the buckets of different items are
independent and uniform. A report of a user who holds x is a (function H, bucket a) where a depends
on H(x) and on coins alone. So for every v other than x the event H(v) = a has probability 1/g for
every a. These events are independent of each other and of H(x) = a, which has probability p. A
report's support is therefore independent item by item, as an OUE report's is, with q = 1/g. On the
wire xxHash32 with a random seed stands for that hash.

Simulation uses the doubles p and q as they are; perturbing real reports rounds thresholds to 2^-64.
"""

from numpy.typing import ArrayLike

from ldprecover._checks import check_whole, finite_vector
from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.protocols import FrequencyOracle
from ldprecover.types import Int64Array, Rng


def one_hot_tally(oracle: FrequencyOracle, weights: ArrayLike, m: int, rng: Rng) -> Tally:
    """Return a tally of m malicious reports that each support one item drawn from `weights`.

    This is the paper's model of an attack (V-C), a multinomial. For GRR and OUE it is the law of
    encoded, unperturbed items. No OLH reports have this law, since a report that supports an item
    supports each other item with probability 1/g: it exists for counts alone.

    Raises ParameterError unless the weights are at least 0 and sum to one, and for a protocol whose
    tallies are not counts.
    """
    counts = _draw(oracle, weights, m, rng)
    if type(oracle).counts_from is not FrequencyOracle.counts_from:
        raise ParameterError(f"{oracle.protocol} lacks tallies that are support counts")
    return Tally(counts, m)


def sampled_tally(oracle: FrequencyOracle, weights: ArrayLike, m: int, rng: Rng) -> Tally:
    """Return a tally of m malicious reports that encode, unperturbed, an item drawn from `weights`.

    It follows the law of `FrequencyOracle.encode`. Raises ParameterError as `one_hot_tally` does.
    """
    return oracle.simulation.encoded_tally(_draw(oracle, weights, m, rng), rng)


def input_poisoning_tally(oracle: FrequencyOracle, weights: ArrayLike, m: int, rng: Rng) -> Tally:
    """Return a tally of m users who report an item drawn from `weights` honestly (paper, VII-B).

    Raises ParameterError unless the weights are at least 0 and sum to one.
    """
    return oracle.simulation.honest_tally(_draw(oracle, weights, m, rng), rng)


def _draw(oracle: FrequencyOracle, weights: ArrayLike, m: int, rng: Rng) -> Int64Array:
    vector = finite_vector(weights, "weights", oracle.domain_size)
    if (vector < 0).any() or abs(vector.sum() - 1) > 1e-9:
        raise ParameterError("weights must be at least 0 and sum to one")
    number = check_whole("m, the number of malicious users,", m, 0)
    return rng.multinomial(number, vector / vector.sum())
