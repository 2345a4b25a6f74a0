"""Detection by un-mixing near the honest law, against the divergence of the reports.

APA with r' of r targets in a report of OUE differs from honest reports in how many targets these
support, and in nothing else. N reports tell a law P from the nearest honest law H by N KL(P || H)
nats. A scan that does not know the r of d items must exceed about ln C(d, r).
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product

import numpy as np

from ldprecover import FrequencyOracle, RecoveryRequest, Tally, frequency_oracle
from ldprecover.distributions import binomial_law, hypergeometric_law, log_choose
from ldprecover.types import FloatArray
from ldprecover_attacker import make_attack
from ldprecover_experiments.certificate_rounds import Row
from ldprecover_experiments.parameters import load_genuine_users
from ldprecover_experiments.poisoned_round import PoisonedRound
from ldprecover_experiments.tables import Table

COLUMNS = (
    *("seed", "trial", "epsilon", "share", "reports", "targets", "each"),
    *("nats", "unknown", "attack probability"),
)
BINS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Ends of the groups of N KL / ln C(d, r)."""

_EPSILONS, _SHARES, _REPORTS = (0.5, 1.0, 2.0), (0.01, 0.02, 0.05, 0.1), (10_000, 50_000, 200_000)
_TARGETS, _EACH = (5, 10, 20), (1, 2, 3, 5)
_SETTINGS_OF_A_BIN = 4
_SEARCHED = (0.0, 1.0)


def tasks(seed: int, trials: int, share: float) -> list[tuple[str, ...]]:
    """Return the keys of the rounds: as many settings of each group of ratios, and clean ones."""
    settings = [(eps, 0.0, n, 10, 1) for eps, n in product(_EPSILONS, _REPORTS)]
    groups: list[list[tuple[float, float, int, int, int]]] = [[] for _ in BINS]
    for setting in product(_EPSILONS, _SHARES, _REPORTS, _TARGETS, _EACH):
        epsilon, beta, n, r, each = setting
        ratio = n * divergence(epsilon, beta, r, each) / log_choose(_d(), r)
        groups[int(np.searchsorted(BINS, ratio, side="right")) - 1].append(setting)
    rng = np.random.default_rng(0)  # of the settings; the seed is that of the rounds
    for group in groups:
        chosen = rng.permutation(len(group))[:_SETTINGS_OF_A_BIN]
        settings += [group[i] for i in sorted(chosen)]
    number = max(1, round(share * len(settings)))
    return [
        (str(seed), str(trial), f"{eps:g}", f"{beta:g}", str(n), str(r), str(each))
        for eps, beta, n, r, each in settings[:number]
        for trial in range(trials)
    ]


def play(key: tuple[str, ...]) -> dict[str, str]:
    """Return the divergence of a round, and the probability that un-mixing gives an attack."""
    epsilon, beta = float(key[2]), float(key[3])
    n, r, each = map(int, key[4:])
    rng = np.random.default_rng(list("/".join(key).encode()))
    d, m = _d(), round(beta * n)
    users = load_genuine_users("cities", users=n - m)
    oracle = frequency_oracle("oue", epsilon, d)
    targets = tuple(sorted(rng.choice(d, r, replace=False).tolist()))
    honest = oracle.perturb(np.repeat(np.arange(d), users.counts), rng)
    fakes = make_attack("apa", targets=targets, each=each).reports(oracle, m, rng)
    round_ = PoisonedRound(
        oracle,
        users.frequencies,
        Tally.of(oracle, honest),
        Tally.of(oracle, fakes),
        targets,
        np.concatenate([honest, fakes]),
    )
    conclusions = round_.recover(RecoveryRequest("unmix")).conclusions
    assert conclusions is not None
    nats = n * divergence(epsilon, beta, r, each)
    numbers = (nats, log_choose(d, r), conclusions.attack_probability)
    return dict(zip(COLUMNS[7:], (f"{x:.4g}" for x in numbers), strict=True))


@cache
def divergence(epsilon: float, beta: float, r: int, each: int) -> float:
    """Return KL(P || nearest honest law) of a report, in nats.

    Of how many targets and how many other items it supports; the targets are held by as many users
    as r of the cities on average.
    """
    d = _d()
    oracle = frequency_oracle("oue", epsilon, d)
    holders, others = honest_law(oracle, r, True), honest_law(oracle, r, False)
    share = r / d
    law = (1 - beta) * (share * holders + (1 - share) * others) + beta * _fake_law(oracle, r, each)
    sent = law > 0

    def kl(x: float) -> float:
        honest = (x * holders + (1 - x) * others)[sent]
        return float(law[sent] @ np.log(law[sent] / honest))

    low, high = _SEARCHED
    for _ in range(60):  # of a convex function
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if kl(a) < kl(b) else (a, high)
    return max(kl((low + high) / 2), 0.0)


def honest_law(oracle: FrequencyOracle, r: int, holds: bool) -> FloatArray:
    """Return the law of supported targets and others, of a user who holds a target or not."""
    d, p, q = oracle.domain_size, oracle.p, oracle.q
    with_own = np.convolve([1 - p, p], binomial_law((r if holds else d - r) - 1, q))
    rest = binomial_law(d - r if holds else r, q)
    return np.outer(with_own, rest) if holds else np.outer(rest, with_own)


def _fake_law(oracle: FrequencyOracle, r: int, each: int) -> FloatArray:
    d, law = oracle.domain_size, np.zeros((r + 1, oracle.domain_size - r + 1))
    for size, probability in enumerate(oracle.laws.size_law().probabilities()):
        own = min(each, size)
        for more, chance in enumerate(hypergeometric_law(d - own, r - own, size - own)):
            if chance > 0:
                law[own + more, size - own - more] += probability * chance
    return law


def _d() -> int:
    return len(load_genuine_users("cities").items)


def rates(rows: Sequence[Row]) -> dict[tuple[str, ...], tuple[float, float, int]]:
    """Return for each setting its ratio N KL / ln C(d, r), its rate of detection, its rounds."""
    settings: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        settings.setdefault(tuple(row[name] for name in COLUMNS[2:7]), []).append(row)
    return {
        setting: (
            float(own[0]["nats"]) / float(own[0]["unknown"]) if float(setting[1]) else 0.0,
            float(np.mean([float(row["attack probability"]) > 0.5 for row in own])),
            len(own),
        )
        for setting, own in settings.items()
    }


def tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield how many rounds un-mixing sees in each group of ratios."""
    measured = rates(rows)
    clean = {s: each for s, each in measured.items() if float(s[1]) == 0}
    groups = [("nobody attacks", clean)]
    for low, high in zip(BINS, (*BINS[1:], np.inf), strict=True):
        group = {
            s: each for s, each in measured.items() if s not in clean and low <= each[0] < high
        }
        name = f"{low:g} to {high:g}" if high < np.inf else f"{low:g} and more"
        groups.append((name, group))
    body = []
    for name, group in groups:
        if group:
            rounds = sum(n for _, _, n in group.values())
            detected = sum(rate * n for _, rate, n in group.values())
            span = sorted(rate for _, rate, _ in group.values())
            body.append(
                [
                    *(
                        name,
                        str(len(group)),
                        str(rounds),
                        f"{detected:.0f}",
                        f"{detected / rounds:.2f}",
                    ),
                    f"{span[0]:.2f} to {span[-1]:.2f}",
                ]
            )
    columns = ("N·KL / ln C(d, r)", "settings", "rounds", "seen", "rate", "rates of settings")
    yield Table(columns, body, "rounds in which un-mixing gives an attack more than 1/2", 5)
