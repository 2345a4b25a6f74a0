"""Crafting: the reports that malicious users can make, registered for each protocol."""

from __future__ import annotations

from functools import singledispatch

from ldprecover.crafting.bit_vectors import BitCrafter
from ldprecover.crafting.crafter import DEFAULT_SEARCH, Aim, Crafter, Search, Strategy
from ldprecover.crafting.encoding_search import EncodingCrafter
from ldprecover.crafting.hadamard import ColumnCrafter
from ldprecover.crafting.linear import LinearCrafter
from ldprecover.crafting.one_item import OneItemCrafter
from ldprecover.crafting.seed_crafter import SeedCrafter
from ldprecover.protocols import GRR, HR, LLH, OLH, FrequencyOracle, UnaryEncoding

__all__ = [
    "DEFAULT_SEARCH",
    "Aim",
    "Crafter",
    "EncodingCrafter",
    "Search",
    "Strategy",
    "crafter_of",
]


@singledispatch
def crafter_of(oracle: FrequencyOracle) -> Crafter:
    """Return the crafter that is registered for the oracle's class, or the nearest above it.

    A crafter of another protocol is registered with `crafter_of.register(MyOracle, MyCrafter)`;
    without one it is an EncodingCrafter, a search among encoded items.

        reports = crafter_of(oracle).craft(np.tile([3, 40], (1000, 1)), np.random.default_rng(1))
    """
    return EncodingCrafter(oracle)


crafter_of.register(GRR, OneItemCrafter)
crafter_of.register(HR, ColumnCrafter)
crafter_of.register(LLH, LinearCrafter)
crafter_of.register(OLH, SeedCrafter)
crafter_of.register(UnaryEncoding, BitCrafter)
