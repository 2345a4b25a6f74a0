"""What a demo is played with."""

from dataclasses import asdict, dataclass
from typing import Any

from ldprecover_cli.attackers import malicious_users
from ldprecover_cli.failures import UsageError

__all__ = ["DemoSettings"]


@dataclass(frozen=True)
class DemoSettings:
    """The paper's setting by default (VI-A), with cities that may be shipped in place of its own.

    `users` is n, at least 1; `beta` the malicious share m/(n+m), 0 to 0.9; `targets` the number r of
    targets of a targeted attack; `eta` what recovery assumes of m/n. Raises UsageError; what the
    mathematics checks (protocol, epsilon, eta, the attack's own options) is checked there.
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

    def __post_init__(self) -> None:
        if self.users < 1:
            raise UsageError(f"the number of genuine users must be at least 1, not {self.users}")
        if self.seed < 0:
            raise UsageError(f"the seed must be at least 0, not {self.seed}")
        malicious_users(self.users, self.beta)

    @property
    def malicious_users(self) -> int:
        """m = n beta/(1 - beta), rounded."""
        return malicious_users(self.users, self.beta)

    @property
    def targeted(self) -> bool:
        """Whether the attack has targets."""
        return self._takes("targets")

    @property
    def modelled(self) -> bool:
        """Whether the attack makes its reports in the one or the other model."""
        return self._takes("model")

    def _takes(self, option: str) -> bool:
        from ldprecover_attacker import ATTACKS, attack_options  # not for every command's help: it loads numpy

        return self.attack in ATTACKS and option in attack_options(self.attack)

    def as_json(self) -> dict[str, Any]:
        """Return the settings; `targets`, the number of them, and `model` are None for an attack without any."""
        settings = asdict(self) | {"malicious_users": self.malicious_users}
        idle = {"targets": self.targeted, "model": self.modelled}
        return settings | {name: None for name, belongs in idle.items() if not belongs}
