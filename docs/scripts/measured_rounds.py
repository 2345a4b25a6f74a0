"""The rounds of the measured tables, in the paper's setting (VI-A), and how a table writes them.

`tables.toml` states the attacks, rows and methods of each table.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ldprecover import Estimates, FrequencyOracle, frequency_oracle
from ldprecover.protocols import PROTOCOLS
from ldprecover_attacker import Attack, attack_options, make_attack
from ldprecover_client import Population
from ldprecover_experiments import PoisonedRound, dataset_of
from ldprecover_experiments.attacks import TARGETS
from ldprecover_experiments.measures import Estimator, Outcome, measure
from ldprecover_experiments.parameters import BETA, EPSILON, PAPER_USERS, malicious_users
from ldprecover_experiments.poisoned_round import Targets
from ldprecover_experiments.tables import Table

TABLES: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("tables.toml").read_text(encoding="utf-8")
)
CITIES = dataset_of("cities")
SEED = 1
RISE = 4.0
"""Standard errors by which a suspected item has risen since an earlier round."""


@dataclass(frozen=True, eq=False)
class Trial(PoisonedRound):
    """A round, and as many `others` as there are targets."""

    others: Targets = ()

    @cached_property
    def suspected(self) -> Targets:
        """The items that have risen by RISE standard errors since the earlier round."""
        assert self.earlier is not None
        earlier = Estimates.of(self.oracle, self.earlier)
        error = np.hypot(self.poisoned.standard_errors, earlier.standard_errors)
        rise = self.poisoned.frequencies - earlier.frequencies
        return tuple(np.flatnonzero(rise > RISE * error).tolist())


@dataclass(frozen=True)
class Rounds:
    """The rounds of one table: users, the malicious share, and the trials of each attack."""

    users: int = PAPER_USERS["cities"]
    beta: float = BETA
    trials: int = 1

    @property
    def malicious(self) -> int:
        """m, such that m/(n + m) is beta."""
        return malicious_users(self.users, self.beta)

    def clean(self, oracle: FrequencyOracle, seed: int, canaries: Targets = ()) -> Trial:
        """Return the round of the genuine users alone. The seed decides their reports, not who
        holds which item.
        """
        users = Population.of(CITIES, self.users, seed, draw="apportioned")
        return Trial.clean(oracle, users, canaries)

    def play(
        self, protocol: str, attacks: Sequence[str], *, counts: bool = False
    ) -> dict[str, list[Trial]]:
        """Return the trials of each attack.

        A trial is the same whichever other attacks are played. With `counts` it has an earlier
        clean round of the same users, but no reports: those of many trials would take gigabytes.
        """
        oracle = frequency_oracle(protocol, EPSILON, len(CITIES.items))
        trials: dict[str, list[Trial]] = {name: [] for name in attacks}
        for trial in range(self.trials):
            *seeds, secret = np.random.SeedSequence([SEED, trial]).generate_state(2 + counts)
            *before, clean = (self.clean(oracle, int(seed)) for seed in seeds)
            items = np.random.default_rng(secret).permutation(oracle.domain_size).tolist()
            targets, others = tuple(items[:TARGETS]), tuple(items[TARGETS : 2 * TARGETS])
            targets = targets if counts else tuple(sorted(targets))
            for name in attacks:
                attacked = targets if is_targeted(name) else None
                rng = np.random.default_rng([SEED, trial, *name.encode()])
                round_ = clean.under(attack_of(name, targets), self.malicious, rng, attacked)
                if counts:
                    round_ = replace(round_, earlier=before[0].genuine, others=others, reports=None)
                trials[name].append(round_)
        return trials


def rows(table: str) -> dict[str, list[str]]:
    """Return the attacks of a table by protocol."""
    return by_protocol(TABLES["rows"][table])


def by_protocol(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by protocol, from values by several."""
    return {p: value for p in PROTOCOLS for key, value in values.items() if p in key.split()}


def is_targeted(attack: str) -> bool:
    """Return whether gains are measured: not for an attack without targets."""
    options = TABLES["attacks"].get(attack)
    return options is None or "targets" in attack_options(options["name"])


def attack_of(name: str, targets: Sequence[int]) -> Attack | None:
    """Return the attack of a row; None for a row without an attack."""
    options = TABLES["attacks"].get(name)
    if options is None:
        return None
    return make_attack(**options, targets=targets if is_targeted(name) else None)


Outcomes = Mapping[str, Sequence[Outcome]]
"""The outcomes of all trials by method."""


def measured(
    trials: Iterable[PoisonedRound], estimators: Sequence[Estimator], *eta: float
) -> Outcomes:
    """Return what every method makes of every trial, with this assumed eta or the paper's."""
    outcomes: dict[str, list[Outcome]] = {estimator.name: [] for estimator in estimators}
    for trial in trials:
        for outcome in measure(trial, estimators, *eta):
            outcomes[outcome.method].append(outcome)
    return outcomes


def mean_error(outcomes: Sequence[Outcome], digits: int) -> str:
    """Return the mean error, and with targets the mean gain in brackets."""
    error = np.mean([outcome.mse for outcome in outcomes])
    if np.isnan(error):
        return "refused"
    text = f"{error:.{digits}e}".replace("e-0", "e-")
    gains = [outcome.fg for outcome in outcomes if outcome.fg is not None]
    return f"{text} ({signed(float(np.mean(gains)))})" if gains else text


def by_method(head: str, columns: Mapping[str, Outcomes], digits: int) -> str:
    """Return a table with a row for each method, and the mean errors of each column."""
    methods = next(iter(columns.values()))
    lines = [[m, *(mean_error(each[m], digits) for each in columns.values())] for m in methods]
    return Table([head, *columns], lines).markdown()


def signed(gain: float) -> str:
    """Return a gain with its sign, never -0.00."""
    return f"{round(gain, 2) + 0.0:+.2f}"


def cells_of(table: str) -> Mapping[str, Mapping[str, str]]:
    """Return the cells of a Markdown table by the row's first cell and the column's name."""
    head, _, *lines = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table.strip().splitlines()
    )
    return {line[0]: dict(zip(head, line, strict=True)) for line in lines}
