"""Protocols for tests only."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import OLH, OUE
from ldprecover.crafting import EncodingCrafter, crafter_of
from ldprecover.protocols.description import Traits
from ldprecover.protocols.unary import padded_rows
from ldprecover.types import Reports


@dataclass(frozen=True)
class Subsets(OUE):
    """Bit vectors of which malicious users may send only those with five ones."""

    protocol = "subsets"
    traits = Traits(extremal=True)
    fixed_size = 5

    def encode(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        values = self.item_indices(items)
        return padded_rows(
            values[:, None], np.full(values.size, 5), self.domain_size, np.random.default_rng(rng)
        )


@dataclass(frozen=True)
class Bare(OUE):
    """A protocol without laws of crafted reports."""

    protocol = "bare"


@dataclass(frozen=True)
class BareOLH(OLH):
    """The same, whose reports support several items."""

    protocol = "bareolh"


crafter_of.register(Bare, EncodingCrafter)
crafter_of.register(BareOLH, EncodingCrafter)
