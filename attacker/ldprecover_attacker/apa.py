"""The adaptive pattern attack."""

from dataclasses import dataclass

from ldprecover import FrequencyOracle, ParameterError
from ldprecover.protocols import crafter_of
from ldprecover.types import FloatArray, Rng
from ldprecover_attacker.base import Plan
from ldprecover_attacker.mga_a import MGAA


@dataclass(frozen=True)
class APA(MGAA):
    """MGA-A whose reports support as many items as honest ones do, one by one (MDPA, CCS 2025).

    Each user draws a size k from the law of an honest report, Bernoulli(p) + Binomial(d-1, q), and
    promotes a fresh random subset of `each` = r' targets:

    - GRR: every report supports one item, so this is MGA;
    - OUE: the r' targets and k - r' random others; k of the r' where k is smaller;
    - OLH: of `search` random seeds of the user's own, the seed and bucket of size nearest to k (as
      a rule there are many of size k), among these the one that holds most targets of the subset.

    S is that of honest reports, 1: exactly for GRR and OUE, and for OLH as far as the search finds
    every size. The gain is about MGA-A's.

    Raises ParameterError when r' is more than an honest report supports on average.
    """

    name = "apa"
    _aim = "honest"

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> Plan:
        each, maximum = self.subset_size(oracle.domain_size), crafter_of(oracle).expected_size
        if each > maximum and oracle.fixed_size != 1:
            raise ParameterError(
                f"apa cannot hide {each} targets in a report that supports as many items as an "
                "honest one, which is"
                f" {oracle.laws.mean_size:.3g} on average: each must be at most {maximum}"
            )
        return super().plan(oracle, rng)

    def _sizes(self, oracle: FrequencyOracle, each: int) -> FloatArray | None:
        return None if oracle.traits.seeded else oracle.laws.size_law().probabilities()
