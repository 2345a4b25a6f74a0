"""Tallies of malicious users, drawn without making their reports."""

from numpy.typing import ArrayLike

from ldprecover._checks import check_whole, finite_vector
from ldprecover.errors import ParameterError
from ldprecover.protocols import FrequencyOracle
from ldprecover.reports import Tally, tally_sampler
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
    return tally_sampler(oracle).encoded_tally(_draw(oracle, weights, m, rng), rng)


def input_poisoning_tally(oracle: FrequencyOracle, weights: ArrayLike, m: int, rng: Rng) -> Tally:
    """Return a tally of m users who report an item drawn from `weights` honestly (paper, VII-B).

    Raises ParameterError unless the weights are at least 0 and sum to one.
    """
    return tally_sampler(oracle).honest_tally(_draw(oracle, weights, m, rng), rng)


def _draw(oracle: FrequencyOracle, weights: ArrayLike, m: int, rng: Rng) -> Int64Array:
    vector = finite_vector(weights, "weights", oracle.domain_size)
    if (vector < 0).any() or abs(vector.sum() - 1) > 1e-9:
        raise ParameterError("weights must be at least 0 and sum to one")
    number = check_whole("m, the number of malicious users,", m, 0)
    return rng.multinomial(number, vector / vector.sum())
