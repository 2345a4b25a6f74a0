"""The settings of a demo. The module imports no library, because the help shows the defaults."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldprecover_client import Dataset


@dataclass(frozen=True, kw_only=True)
class DemoSettings:
    """The settings of a demo; the defaults are the paper's (VI-A) over the shipped cities.

    `users` is n, at least 1; `beta` the malicious share m/(n+m), 0 to 0.9; `targets` the number r
    of targets of a targeted attack; `eta` the m/n that recovery assumes. Demo checks the values.

        DemoSettings(protocol="oue", epsilon=1.0, users=5000).malicious_users  # 263
    """

    dataset: str = "cities"
    column: str | None = None
    protocol: str = "olh"
    epsilon: float = 0.5
    users: int = 389_894
    beta: float = 0.05
    attack: str = "mga"
    model: str = "crafted"
    targets: int = 10
    eta: float = 0.2
    seed: int = 0
    encoding: str = "utf-8"
    as_is: bool = False

    def load(self) -> Dataset:
        """Return the data set. Raises DatasetError."""
        from ldprecover_experiments.simulation.datasets import dataset_of

        return dataset_of(self.dataset, self.column, encoding=self.encoding, as_is=self.as_is)

    @property
    def malicious_users(self) -> int:
        """m = n beta/(1 - beta), rounded. Raises ParameterError."""
        from ldprecover_experiments.simulation.parameters import malicious_users

        return malicious_users(self.users, self.beta)

    @property
    def targeted(self) -> bool:
        """Whether the attack has targets."""
        return self._takes("targets")

    @property
    def modelled(self) -> bool:
        """Whether the attack has report models."""
        return self._takes("model")

    def _takes(self, option: str) -> bool:
        from ldprecover_attacker import ATTACKS, attack_options

        return self.attack in ATTACKS and option in attack_options(self.attack)

    def as_json(self) -> dict[str, Any]:
        """Return the settings; `targets` and `model` are None for an attack without them."""
        return asdict(self) | {
            "malicious_users": self.malicious_users,
            "targets": self.targets if self.targeted else None,
            "model": self.model if self.modelled else None,
        }
