"""Measure what quarantine and canaries leave of every attack, and print the tables of
docs/measurements/attacks.md.

    python docs/scripts/quarantine_table.py

One round for each attack and protocol, in this process, over the data's items and ten canaries. A
round sets aside what a server would: reports of impossible sizes, and those under seeds that come
too often among all that are left. The shares that are set aside and the shift of the canaries stand
beside what the laws say of them.
"""

import sys
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from attack_table import ONLY_PADDED, attacks, targets_of
from round_setting import RoundSetting, asked_for, pads_one_item

from ldprecover import FrequencyOracle, ParameterError, Tally, frequency_oracle
from ldprecover.evidence.canaries import canary_shift
from ldprecover.evidence.quarantine import (
    SeedFilter,
    impossible_sizes,
    split_by_size,
    unfit,
    with_seeds,
)
from ldprecover.protocols import PROTOCOLS
from ldprecover_attacker import Attack
from ldprecover_client import Population
from ldprecover_experiments import PoisonedRound, dataset_of
from ldprecover_experiments.tables import Table

DEFAULT = RoundSetting()
CANARIES = 10
Draw = Callable[[], np.random.Generator]
"""Gives the attack's randomness anew, each time in the same state."""

RATE = 1e-6
"""False-alarm rate of the alarm."""

QUARANTINE = ("aside, law", "aside by size", "aside by seed", "G", "G left")
SHIFT = ("shift, law", "shift", "one sd", "alarm", "β told", "G left")


def gain_of(round_: PoisonedRound, tally: Tally, targets: list[int]) -> float:
    """Return how far a tally raises the targets above the genuine reports."""
    estimates = round_.oracle.estimate(tally.counts(round_.oracle), tally.n)
    return float((estimates - round_.f_genuine)[targets].sum())


def quarantined(
    clean: PoisonedRound, attack: Attack | None, m: int, draw: Draw, targets: list[int]
) -> list[str]:
    """Return a row of the table of the quarantine."""
    oracle = clean.oracle
    assert clean.reports is not None
    made = clean.reports[:0] if attack is None else attack.reports(oracle, m, draw())
    everything = np.concatenate([clean.reports, made])
    fake = np.arange(len(everything)) >= len(clean.reports)
    bad = split_by_size(oracle, everything)[0]
    by_seed = np.zeros_like(bad)
    if oracle.traits.seeded:
        left = np.ascontiguousarray(oracle.seeds(everything[~bad]))
        screen = SeedFilter(left.size)
        screen.count(left)
        screen.compare(left)
        by_seed[~bad] = with_seeds(oracle, everything[~bad], screen.found())
    assert not (bad | by_seed)[
        ~fake
    ].any()  # of honest ones none, but once in 2,000 rounds of this size
    kept = Tally.of(oracle, everything[~(bad | by_seed)])
    law = None if attack is None else attack.size_law(oracle, draw())
    share = "" if law is None else f"{law[impossible_sizes(oracle)].sum():.2%}"
    poisoned = Tally.of(oracle, everything)
    shares = [f"{found[fake].mean():.2%}" if fake.any() else "" for found in (bad, by_seed)]
    return [
        share,
        *shares,
        signed(gain_of(clean, poisoned, targets)),
        signed(gain_of(clean, kept, targets)),
    ]


def shifted(
    clean: PoisonedRound,
    attack: Attack | None,
    m: int,
    draw: Draw,
    targets: list[int],
    canaries: list[int],
) -> list[str]:
    """Return a row of the table of the canaries."""
    oracle = clean.oracle
    poisoned = clean.under(attack, m, draw()).together
    found = canary_shift(oracle, poisoned, canaries)
    share, law = m / (m + clean.genuine.n), 0.0
    if attack is not None:
        pi = attack.support(oracle, draw(), m=m)
        law = share * float((pi[canaries] - oracle.q).mean()) / (oracle.p - oracle.q)
    low, high = found.bounds(RATE)
    left = gain_of(clean, poisoned, targets) - len(targets) * found.mean
    raised = "" if low <= found.supported <= high else "raised"
    told = f"{max(0.0, -found.mean * (oracle.p - oracle.q) / oracle.q):.4f}"
    return [
        f"{law + 0.0:+.4f}",
        f"{found.mean:+.4f}",
        f"{found.standard_deviation:.4f}",
        raised,
        told,
        signed(left),
    ]


def signed(gain: float) -> str:
    """Return a gain as a table has it."""
    return f"{gain:+.2f}".replace("-0.00", "+0.00")


def has(oracle: FrequencyOracle, canaries: list[int]) -> bool:
    """Tell whether a round can set reports aside, or, with canaries, knows their law."""
    if not canaries:
        return unfit(oracle) is None
    hits = oracle.laws.hits
    return hits is not None and hits.of_others(np.array(canaries)) is not None


def tables(setting: RoundSetting) -> Iterator[str]:
    """Yield a table of the quarantine for each protocol that has one, and then of the canaries
    likewise.
    """
    data = dataset_of(setting.dataset)
    users = Population.of(data, setting.users, setting.seed, draw="apportioned")
    d = len(data.items)
    targets, canaries = targets_of(setting, d), list(range(d, d + CANARIES))
    draw = partial(np.random.default_rng, setting.seed)
    for columns, added in ((QUARANTINE, 0), (SHIFT, CANARIES)):
        for protocol in PROTOCOLS:
            oracle = frequency_oracle(protocol, setting.epsilon, d + added)
            if not has(oracle, canaries[:added]):
                continue
            clean = PoisonedRound.clean(oracle, users, tuple(canaries[:added]))
            rows = []
            for name, attack in attacks(targets).items():
                if not pads_one_item(oracle) and name in ONLY_PADDED:
                    continue
                try:
                    if added:
                        cells = shifted(clean, attack, setting.malicious, draw, targets, canaries)
                    else:
                        cells = quarantined(clean, attack, setting.malicious, draw, targets)
                except ParameterError:
                    cells = ["refused", *[""] * (len(columns) - 1)]
                rows.append([name, *cells])
            yield Table([protocol.upper(), *columns], rows).markdown()


def main() -> None:
    """Print the tables."""
    for table in tables(asked_for(__doc__, DEFAULT)):
        sys.stdout.write(f"{table}\n\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
