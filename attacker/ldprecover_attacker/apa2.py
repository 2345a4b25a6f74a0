"""The coin-tossing pattern attack."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from ldprecover import FrequencyOracle, ParameterError
from ldprecover.protocols import DEFAULT_SEARCH, coins_of
from ldprecover_attacker.arguments import check_search
from ldprecover_attacker.base import Plan
from ldprecover_attacker.targets import TargetedAttack


@dataclass(frozen=True)
class APA2(TargetedAttack):
    """Supports each target by the toss of a separate coin, in otherwise honest reports.

    No two targets are then supported together more often than two independent items of that rate,
    and no report stands out by its size. `rate` is the probability of a coin, above 0 and below 1;
    the fair coin of the default pays because honest reports support an item they do not hold with
    q < 1/2.

    - OUE: k ones, drawn as an honest report's number of them; h of the r targets, drawn from
      Binomial(r, rate) (as near to it as k ones and d - r others allow); k - h random others.
    - OLH: of `search` random seeds of the user's own, and a random bucket, the seed that hashes the
      number of targets nearest to such an h to the bucket, the smaller of two as near.
    - GRR: ParameterError, since a report supports one item and tosses no coins.

    S is 1 for OUE, whose reports have honest sizes, and r(rate - q)/(p-q) for OLH, whose other
    items are honest. The gain is beta (r(rate - q)/(p-q) - f_T), or what the search finds of it.
    """

    name = "apa2"

    _: KW_ONLY
    rate: float = 0.5
    search: int = DEFAULT_SEARCH

    def __post_init__(self) -> None:
        super().__post_init__()
        if (
            isinstance(self.rate, bool)
            or not isinstance(self.rate, int | float)
            or not 0 < self.rate < 1
        ):
            raise ParameterError(
                "rate, the probability to support a target, must be between 0 and 1, not "
                f"{self.rate!r}"
            )
        check_search(self.search, exhaustive=False)

    def plan(self, oracle: FrequencyOracle, rng: np.random.Generator) -> Plan:
        if oracle.fixed_size == 1:
            raise ParameterError(
                f"apa2 tosses a coin for each target, and a {oracle.protocol} report supports one "
                "item: use mga"
            )
        targets = self.target_indices(oracle.domain_size)
        if targets.size * self.rate > coins_of(oracle).room:
            raise ParameterError(
                f"apa2 cannot hide {targets.size * self.rate:g} targets in a report that supports "
                "as many items as an"
                f" honest one, which is {oracle.laws.mean_size:.3g} on average"
            )
        return Plan(
            send=lambda m, rng: coins_of(oracle).craft(
                targets, self.rate, m, rng, search=self.search
            ),
            support=lambda m: coins_of(oracle).support(targets, self.rate, search=self.search),
            sizes=lambda: None if oracle.traits.seeded else oracle.laws.size_law().probabilities(),
        )
