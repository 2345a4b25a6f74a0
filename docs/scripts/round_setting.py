"""What the rounds of the measured tables have in common: the paper's setting (VI-A), but for the
data.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ldprecover import FrequencyOracle, frequency_oracle
from ldprecover.protocols import crafter_of
from ldprecover_attacker import plugins
from ldprecover_client import DATASETS, Population
from ldprecover_experiments import PoisonedRound, dataset_of
from ldprecover_experiments.attacks import TARGETS
from ldprecover_experiments.parameters import BETA, EPSILON, PAPER_USERS, malicious_users


@dataclass(frozen=True)
class RoundSetting:
    """Rounds of one data set, protocol by protocol, and how often each is played."""

    dataset: str = "cities"
    users: int = PAPER_USERS["cities"]
    epsilon: float = EPSILON
    beta: float = BETA
    targets: int = TARGETS
    trials: int = 1
    seed: int = 1

    @property
    def malicious(self) -> int:
        """m, such that m/(n + m) is beta."""
        return malicious_users(self.users, self.beta)

    @property
    def true_eta(self) -> float:
        """m/n."""
        return self.malicious / self.users

    def oracle(self, protocol: str) -> FrequencyOracle:
        """Return the oracle over the data's items."""
        return frequency_oracle(protocol, self.epsilon, len(dataset_of(self.dataset).items))

    def clean(self, oracle: FrequencyOracle, seed: int) -> PoisonedRound:
        """Return the round of the genuine users alone; a seed decides about their reports, not
        about who holds what.
        """
        users = Population.of(dataset_of(self.dataset), self.users, seed, draw="apportioned")
        return PoisonedRound.clean(oracle, users)

    def attacker(self, trial: int, attack: str) -> np.random.Generator:
        """Return the randomness of an attack in a trial, the same whatever else is played."""
        return np.random.default_rng([self.seed, trial, *attack.encode()])


def pads_one_item(oracle: FrequencyOracle) -> bool:
    """Tell whether a report crafted for one item is another than that item sent as it is: padded to
    an honest size.
    """
    return crafter_of(oracle).model == "padded" and oracle.fixed_size is None


def asked_for(doc: str, default: RoundSetting) -> RoundSetting:
    """Return the setting that the command line asks for; `--trials` is an option where the default
    has several.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--dataset", default=default.dataset, help=f"{', '.join(DATASETS)}, or a CSV file"
    )
    for name in ("users", "targets", "seed", *(["trials"] if default.trials > 1 else [])):
        parser.add_argument(f"--{name}", type=int, default=getattr(default, name))
    for name in ("epsilon", "beta"):
        parser.add_argument(f"--{name}", type=float, default=getattr(default, name))
    given = parser.parse_args()
    plugins.load()  # whoever runs a script has their own methods in its tables
    return RoundSetting(**vars(given))


def rows_of(table: str) -> Mapping[str, Mapping[str, str]]:
    """Return the cells of a Markdown table by the row's first cell and the column's name."""
    head, _, *lines = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table.strip().splitlines()
    )
    return {line[0]: dict(zip(head, line, strict=True)) for line in lines}
