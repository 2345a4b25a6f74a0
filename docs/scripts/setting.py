"""What the rounds of the measured tables have in common: the paper's setting (VI-A), but for the data."""

import argparse
from dataclasses import dataclass

from ldprecover_client import DATASETS

PROTOCOLS = ("grr", "oue", "olh")


@dataclass(frozen=True)
class Setting:
    """Rounds of one data set, protocol by protocol, and how often each is played."""

    dataset: str = "cities"
    users: int = 389_894
    epsilon: float = 0.5
    beta: float = 0.05
    targets: int = 10
    trials: int = 1
    seed: int = 1

    @property
    def malicious(self) -> int:
        """m, such that m/(n + m) is beta."""
        return round(self.users * self.beta / (1 - self.beta))

    @property
    def true_eta(self) -> float:
        """m/n."""
        return self.malicious / self.users


def asked_for(doc: str, default: Setting) -> Setting:
    """Return the setting that the command line asks for; `--trials` is an option where the default has several."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default=default.dataset, help=f"{', '.join(DATASETS)}, or a CSV file")
    for name in ("users", "targets", "seed", *(["trials"] if default.trials > 1 else [])):
        parser.add_argument(f"--{name}", type=int, default=getattr(default, name))
    for name in ("epsilon", "beta"):
        parser.add_argument(f"--{name}", type=float, default=getattr(default, name))
    return Setting(**vars(parser.parse_args()))
