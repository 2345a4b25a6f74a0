"""Years of a series: people who answer in rotation, a step, and malicious users in some rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from ldprecover import Estimates, RecoveryRequest, Tally, frequency_oracle
from ldprecover.changes import Changes
from ldprecover.estimation.metrics import mse
from ldprecover.recovery.conclusions import NEAR_CERTAIN
from ldprecover.reports import tally_sampler
from ldprecover_attacker import MGA
from ldprecover_client import Panel
from ldprecover_client.panel import PanelRound
from ldprecover_experiments.simulation.parameters import BETA, malicious_users
from ldprecover_experiments.simulation.poisoned_round import PoisonedRound

PEOPLE, ROUNDS, WINDOW, EPSILON, LIMIT = 10_000, 52, 26, 2.0, 4.0
BEFORE = np.array([0.10, 0.30, 0.25, 0.15, 0.12, 0.08])
AFTER = np.array([0.15, 0.29, 0.24, 0.14, 0.11, 0.07])
TARGETS = (0, 3, 5)
ATTACKED = range(20, 31)
"""The rounds with malicious users, from 1 on. The window that is recovered ends with the last."""

_ORACLE = frequency_oracle("oue", EPSILON, BEFORE.size)
_WEEKLY = frequency_oracle("oue", LIMIT / ROUNDS, BEFORE.size)


def play(seed: int, i: int) -> tuple[str, dict[str, float]]:
    """Return the title of year i of a seed, and its measures."""
    rng = np.random.default_rng([seed, i])
    own_seed, limit = int(rng.integers(1 << 62)), int(LIMIT / EPSILON)
    people = Panel(BEFORE, PEOPLE, period=WINDOW, limit=limit, seed=own_seed)
    year = [*people.rounds(ROUNDS)]
    stepped = [*replace(people, step=WINDOW + 1, after=AFTER).rounds(ROUNDS)]
    tallies = [_tally(each, rng) for each in year]
    covered, biases, errors = [], [], []
    for end in range(WINDOW, ROUNDS + 1):
        window = slice(end - WINDOW, end)
        estimates = Estimates.of(_ORACLE, reduce(add, tallies[window]))
        answers = _shares(np.concatenate([each.values for each in year[window]]))
        in_use = sum(each.counts[0] for each in year[window]) / (PEOPLE * WINDOW)
        low, high = estimates.interval(0.95)
        covered.append((low <= answers) & (answers <= high))
        biases.append(estimates.frequencies[0] - in_use)
        errors.append(mse(estimates.frequencies, answers))
    shares = year[-1].counts / PEOPLE
    weekly = tally_sampler(_WEEKLY).honest_tally(year[-1].counts, rng).frequencies(_WEEKLY)
    measures = {
        "most epsilon of a person": EPSILON * max(each.answers.max() for each in year),
        "coverage of a window": np.mean(covered),
        "bias of the first item of a window": np.mean(biases),
        "error of a window": np.sqrt(np.mean(errors)),
        "error of a week at epsilon 4/52": np.sqrt(mse(weekly, shares)),
        "some change called, of none": _calls(tallies).any(),
        "step of 5 points called": _calls([_tally(each, rng) for each in stepped])[0],
    }
    attacked = year[ATTACKED.stop - 1 - WINDOW : ATTACKED.stop - 1]
    m = sum(malicious_users(year[number - 1].values.size, BETA) for number in ATTACKED)
    of_window = np.concatenate([each.values for each in attacked])
    alike = rng.choice(BEFORE.size, size=of_window.size, p=BEFORE)
    measures |= _recovered("the attacked window", of_window, m, rng)
    measures |= _recovered("a round like it", alike, m, rng)
    return f"year {i}", {name: float(value) for name, value in measures.items()}


def _shares(values: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.bincount(values, minlength=BEFORE.size) / values.size


def _tally(week: PanelRound, rng: np.random.Generator) -> Tally:
    counts = np.bincount(week.values, minlength=BEFORE.size)
    return tally_sampler(_ORACLE).honest_tally(counts, rng)


def _calls(tallies: Sequence[Tally]) -> NDArray[np.bool_]:
    """Return whether each item's change from the first half of a year to the second is called."""
    halves = (reduce(add, half) for half in (tallies[:WINDOW], tallies[WINDOW:]))
    words = Changes(_ORACLE, *halves).words(is_attacked=False)
    return np.array([word != "not_proven" for word in words])


def _recovered(
    name: str, values: NDArray[np.int64], m: int, rng: np.random.Generator
) -> dict[str, float]:
    """Return the errors of honest users' values and m malicious reports, and if they are seen."""
    genuine, malicious = _ORACLE.perturb(values, rng), MGA(TARGETS).reports(_ORACLE, m, rng)
    tallies = (Tally.of(_ORACLE, each) for each in (genuine, malicious))
    reports, truth = np.concatenate([genuine, malicious]), _shares(values)
    poisoned = PoisonedRound(_ORACLE, truth, *tallies, reports=reports)
    recovery = poisoned.recover(RecoveryRequest("unmix"))
    assert recovery.conclusions is not None
    probability = recovery.conclusions.attack_probability or 0.0
    return {
        f"error of {name} as collected": np.sqrt(mse(recovery.poisoned, truth)),
        f"error of {name}, un-mixed": np.sqrt(mse(recovery.recovered, truth)),
        f"attack on {name} near certain": probability >= NEAR_CERTAIN,
    }
