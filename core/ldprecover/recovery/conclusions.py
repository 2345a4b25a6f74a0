"""What a recovery method concludes beside the frequencies: how sure it is, and what it says of the
attack.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ldprecover.types import FloatArray


@dataclass(frozen=True)
class Dropped:
    """Reports that a screen left out: the screen's name, what they are in words, and their
    number.
    """

    screen: str
    what: str
    reports: int


@dataclass(frozen=True, eq=False)
class Conclusions:
    """What a method says of its result and of the attack; what it cannot say is None, or empty.

    Vectors are of the d items: `standard_deviations` of the recovered frequencies, and `lower` and
    `upper`, the ends of intervals that hold the frequency of 95 % of the items.
    `attack_probability` is the probability that there was an attack, `beta` the share of malicious
    reports among all, as far as it shows, and `beta_low` and `beta_high` the ends of its 95 %
    interval. `suspects` are items that reports were made to raise, each with the probability of
    that, the most probable first. `dropped` are the reports that were left out. `history_weight` is
    the probability that the earlier rounds are a guide to this one, None where there were none.
    """

    standard_deviations: FloatArray | None = None
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    attack_probability: float | None = None
    beta: float | None = None
    beta_low: float | None = None
    beta_high: float | None = None
    suspects: tuple[tuple[int, float], ...] = ()
    dropped: tuple[Dropped, ...] = ()
    history_weight: float | None = None

    def to_dict(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return it as JSON has it: vectors as lists, each suspect an object with its item, label
        and probability.
        """

        def listed(vector: FloatArray | None) -> list[float] | None:
            return None if vector is None else vector.tolist()

        return {
            "standard_deviations": listed(self.standard_deviations),
            "lower": listed(self.lower),
            "upper": listed(self.upper),
            "attack_probability": self.attack_probability,
            "beta": self.beta,
            "beta_low": self.beta_low,
            "beta_high": self.beta_high,
            "suspects": [
                {"item": item, "label": labels[item], "probability": probability}
                for item, probability in self.suspects
            ],
            "dropped": [asdict(each) for each in self.dropped],
            "history_weight": self.history_weight,
        }
