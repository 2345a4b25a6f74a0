"""A simulated poisoned round: the tallies of genuine and malicious users, and the truth."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ldprecover import (
    Estimates,
    FrequencyOracle,
    ParameterError,
    Recovery,
    RecoveryRequest,
    Tally,
)
from ldprecover.estimation.metrics import frequency_gain, mse
from ldprecover.recovery import RecoveryInputs, run_method
from ldprecover.reports import ReportSource
from ldprecover_attacker import Attack
from ldprecover_client import Population

Vector = NDArray[np.float64]
Targets = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PoisonedRound:
    """A round of n genuine and m malicious users.

    `truth` holds the frequencies f_X of the genuine users. `targets` are the items that the attack
    raises, None for an attack without targets; without an attack, items that methods are told are
    attacked. `reports` holds all packed reports, the genuine ones first; None if only counts were
    drawn. `earlier` is the tally of an earlier clean round, if any, and `attack` the attack.

        clean = PoisonedRound.clean(oracle, Population.of(load_dataset("cities"), 5000, seed=1))
        poisoned = clean.under(MGA([3, 40]), m=250, rng=np.random.default_rng(0), targets=(3, 40))
        poisoned.recover(RecoveryRequest("norm-sub")).recovered
    """

    oracle: FrequencyOracle
    truth: Vector
    genuine: Tally
    malicious: Tally
    _: KW_ONLY
    targets: Targets | None = None
    reports: NDArray[Any] | None = None
    earlier: Tally | None = None
    attack: Attack | None = None

    def __repr__(self) -> str:
        return (
            f"PoisonedRound({self.oracle.protocol}, epsilon {self.oracle.epsilon:g}, "
            f"{self.genuine.n:,} users, {self.malicious.n:,} malicious, "
            f"{self.oracle.domain_size:,} items)"
        )

    @classmethod
    def clean(cls, oracle: FrequencyOracle, users: Population) -> Self:
        """Return the round of these users alone."""
        reports = users.reports(oracle)
        nobody = Tally.empty(oracle.summary_size)
        return cls(oracle, users.frequencies, Tally.of(oracle, reports), nobody, reports=reports)

    def under(
        self,
        attack: Attack,
        m: int,
        rng: np.random.Generator,
        targets: Targets | None = None,
    ) -> Self:
        """Return this clean round with m reports of an attack.

        Raises ParameterError for an attack that the protocol has no reports for.
        """
        assert self.reports is not None
        assert self.malicious.n == 0
        malicious = attack.reports(self.oracle, m, rng)
        everything = np.concatenate([self.reports, malicious])
        return replace(
            self,
            malicious=Tally.of(self.oracle, malicious),
            targets=targets,
            reports=everything,
            attack=attack,
        )

    def recover(self, request: RecoveryRequest, *, with_reports: bool = True) -> Recovery:
        """Return the recovery of this round. Raises ParameterError for a request that does not fit.

        `with_reports` False withholds the reports from the method.
        """
        reports = self.reports if with_reports else None
        source = None if reports is None else ReportSource(self.oracle, reports)
        return run_method(
            RecoveryInputs(
                self.oracle,
                self.poisoned.frequencies,
                request,
                n=self.tally.n,
                reports=source,
            )
        )

    @cached_property
    def tally(self) -> Tally:
        """The tally of all reports, which the server has."""
        return self.genuine + self.malicious

    @cached_property
    def poisoned(self) -> Estimates:
        """The estimates f~_Z from all reports."""
        return Estimates.of(self.oracle, self.tally)

    @cached_property
    def f_genuine(self) -> Vector:
        """The estimate f~_X~ from the genuine reports alone."""
        return self.genuine.frequencies(self.oracle)

    @cached_property
    def f_malicious(self) -> Vector | None:
        """The estimate f~_Y from the malicious reports alone; None without malicious users."""
        return self.malicious.frequencies(self.oracle) if self.malicious.n else None

    @property
    def eta(self) -> float:
        """m/n."""
        return self.malicious.n / self.genuine.n

    @property
    def support(self) -> Vector:
        """pi, the share of the malicious reports that support each item.

        Without malicious users it is uniform, with the fixed report size or else one item a report.
        """
        if self.malicious.n:
            return self.malicious.counts(self.oracle) / self.malicious.n
        return np.full(
            self.oracle.domain_size, (self.oracle.fixed_size or 1) / self.oracle.domain_size
        )


def own_targets(attack: Attack, d: int) -> Targets | None:
    """Return the indices of the items that an attack raises; None for one without targets."""
    try:
        return tuple(sorted(set(attack.target_indices(d).tolist())))
    except ParameterError:
        return None


def errors(
    estimate: Vector, truth: Vector, genuine: Vector, targets: Targets | None
) -> tuple[float, float | None]:
    """Return the mean squared error of an estimate, and with targets its frequency gain."""
    gain = None if targets is None else frequency_gain(estimate, genuine, targets)
    return mse(estimate, truth), gain
