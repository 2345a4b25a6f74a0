"""The adaptive pattern attack."""

from dataclasses import dataclass

import numpy as np

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ParameterError
from ldprecover.alarms import support_size_law
from ldprecover.types import Int64Array, Reports
from ldprecover_attacker.base import Plan
from ldprecover_attacker.crafting import craft, expected_hits, expected_size, padded_rows, unknown_protocol
from ldprecover_attacker.honest_sizes import draw_sizes
from ldprecover_attacker.mga_a import MGAA, searched
from ldprecover_attacker.seed_law import sized_law

__all__ = ["APA"]

_NEGLIGIBLE = 1e-12  # sizes less likely than this are left out of an expectation for OLH


@dataclass(frozen=True)
class APA(MGAA):
    """MGA-A whose reports support as many items as honest ones do, one by one (MDPA, CCS 2025).

    Each user draws a size k from the law of an honest report, Bernoulli(p) + Binomial(d-1, q), and
    promotes a fresh random subset of `each` = r' targets:

    - GRR: every report supports one item, so this is MGA;
    - OUE: the r' targets and k - r' random others; k of the r' where k is smaller;
    - OLH: of `search` random seeds of the user's own, the seed and bucket of size nearest to k (as a
      rule there are many of size k), among these the one that holds most targets of the subset.

    S is that of honest reports, 1: exactly for GRR and OUE, and for OLH as far as the search finds
    every size. The gain is about MGA-A's.

    Raises ParameterError when r' is more than an honest report supports on average.
    """

    name = "apa"

    def plan(self, oracle: FrequencyOracle, rng: np.random.Generator) -> Plan:
        each, most = self.subset_size(oracle.domain_size), expected_size(oracle)
        if each > most and not isinstance(oracle, GRR):
            raise ParameterError(
                f"apa cannot hide {each} targets in a report that supports as many items as an honest one, which is"
                f" {oracle.honest_support_size:.3g} on average: each must be at most {most}"
            )
        return super().plan(oracle, rng)

    def _craft(self, oracle: FrequencyOracle, wanted: Int64Array, rng: np.random.Generator) -> Reports:
        if isinstance(oracle, GRR):
            return craft(oracle, wanted, rng)
        sizes = draw_sizes(oracle, len(wanted), rng)
        if isinstance(oracle, OUE):
            return padded_rows(oracle, wanted, sizes, rng)
        if isinstance(oracle, OLH):
            return searched(oracle, wanted, sizes, self.search, rng, exact=True)
        raise unknown_protocol(oracle)

    def _hits(self, oracle: FrequencyOracle, each: int) -> tuple[float, float]:
        if isinstance(oracle, GRR):
            return expected_hits(oracle, each)
        law = support_size_law(oracle)
        sizes = np.arange(law.size)
        if isinstance(oracle, OUE):
            return float(law @ np.minimum(sizes, each)), float(law @ np.maximum(sizes - each, 0))
        if isinstance(oracle, OLH):
            likely = np.flatnonzero(law > _NEGLIGIBLE)
            means = [
                sized_law(each, oracle.domain_size, oracle.hash_range, self.search, size, True)
                for size in likely.tolist()
            ]
            hits, others = np.array(means).T @ law[likely] / law[likely].sum()
            return float(hits), float(others)
        raise unknown_protocol(oracle)
