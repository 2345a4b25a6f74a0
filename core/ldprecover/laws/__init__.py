"""Laws: the distributions that a protocol's honest reports follow, and numerical distributions."""

from ldprecover.laws.contract import HITS, SIZES, SUMS, AllSupporting, JointSupport, Laws, required
from ldprecover.laws.hits import HitLaw, IndependentHits, OneItemHits
from ldprecover.laws.sizes import FixedSize, IndependentSizes, SizeLaw

__all__ = [
    "HITS",
    "SIZES",
    "SUMS",
    "AllSupporting",
    "FixedSize",
    "HitLaw",
    "IndependentHits",
    "IndependentSizes",
    "JointSupport",
    "Laws",
    "OneItemHits",
    "SizeLaw",
    "required",
]
