"""What every attack gains, which alarm sees it, and what quarantine and canaries leave of it: the
tables of docs/measurements/attacks.md.

One round for each attack and protocol: the genuine users perturb, the malicious users make the
reports that would travel, both are counted. A gain is the rise of the targets' estimates by the
malicious reports. Beside a number stands the law of the attack's own formula.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from measured_rounds import CITIES, SEED, TABLES, Rounds, attack_of, cells_of, rows, signed

from ldprecover import FrequencyOracle, ParameterError, Tally, frequency_oracle
from ldprecover.evidence.alarms import ALARMS, raise_alarms
from ldprecover.evidence.canaries import canary_shift
from ldprecover.evidence.quarantine import (
    Repeats,
    SeedFilter,
    counts_repeats,
    impossible_sizes,
    split_by_size,
    unfit,
)
from ldprecover.recovery.reports import ReportSource
from ldprecover.types import Reports
from ldprecover_attacker import MGA, Attack
from ldprecover_experiments import PoisonedRound
from ldprecover_experiments.attacks import TARGETS
from ldprecover_experiments.parameters import EPSILON
from ldprecover_experiments.tables import Table

ITEMS = len(CITIES.items)
RAISED = list(range(5, ITEMS, ITEMS // TARGETS))[:TARGETS]
"""The targets, spread evenly over the items, which are in order of frequency."""
CANARIES = tuple(range(ITEMS, ITEMS + 10))
ASSIGNED = ((0.5, 2), (0.5, 3), (1.0, 2), (1.0, 3), (2.0, 2))
"""Epsilon and hash range of rounds with assigned seeds."""
TARGET_SETS = 300
RATE = 1e-6
"""False-alarm rate of each alarm."""

Row = Callable[[PoisonedRound, Attack | None, PoisonedRound, int], list[str]]
"""From the clean round, the attack, the poisoned round and m to the cells of a row."""


def rng() -> np.random.Generator:
    """Return the attack's randomness, each time in the same state."""
    return np.random.default_rng(SEED)


def gain_of(round_: PoisonedRound, tally: Tally) -> float:
    """Return the rise of the targets by a tally above the genuine reports."""
    estimates = round_.oracle.estimate(tally.counts(round_.oracle), tally.n)
    return float((estimates - round_.f_genuine)[RAISED].sum())


def gained(clean: PoisonedRound, attack: Attack | None, round_: PoisonedRound, m: int) -> list[str]:
    """Return S, the gain by the attack's formula, the measured gain, and the alarms."""
    total, expected, oracle = 1.0, 0.0, clean.oracle
    if attack is not None:
        share = m / (m + clean.genuine.n)
        expected = attack.gain(oracle, clean.truth, share, targets=RAISED, rng=rng(), m=m)
        total = attack.support_sum(oracle, rng(), m=m)
    assert round_.reports is not None
    source = ReportSource(oracle, round_.reports)
    alarms = raise_alarms(oracle, round_.together, source, rate=RATE)
    raised = ", ".join(alarm.name for alarm in alarms if alarm.raised) or "none"
    gain = gain_of(clean, round_.together)
    return [f"{total + 0.0:.2f}", signed(expected), signed(gain), raised]


def quarantined(
    clean: PoisonedRound, attack: Attack | None, round_: PoisonedRound, m: int
) -> list[str]:
    """Return the shares of malicious reports in quarantine and the gains before and after.

    As in a server these are reports of impossible sizes, and repeats among the others.
    """
    oracle, reports = round_.oracle, round_.reports
    assert reports is not None
    by_size = split_by_size(oracle, reports)[0]
    as_repeats = np.zeros_like(by_size)
    if counts_repeats(oracle):
        # Of equal reports the first are repeats: here the malicious ones, which are last.
        others = reports[~by_size][::-1]
        as_repeats[~by_size] = _repeats(oracle, others).split(oracle, others)[0][::-1]
    n = clean.genuine.n
    # No honest report, but for one in 2,000 rounds of this size.
    assert not (by_size | as_repeats)[:n].any()
    law = None if attack is None else attack.size_law(oracle, rng())
    return [
        "" if law is None else f"{law[impossible_sizes(oracle)].sum():.2%}",
        *(f"{each[n:].mean():.2%}" if attack else "" for each in (by_size, as_repeats)),
        signed(gain_of(clean, round_.together)),
        signed(gain_of(clean, Tally.of(oracle, reports[~(by_size | as_repeats)]))),
    ]


def _repeats(oracle: FrequencyOracle, reports: Reports) -> Repeats:
    if not oracle.traits.seeded:
        return Repeats.of_tally(oracle, Tally.of(oracle, reports))
    seeds = np.ascontiguousarray(oracle.seeds(reports))
    seed_filter = SeedFilter(seeds.size)
    seed_filter.count(seeds)
    seed_filter.compare(seeds)
    return seed_filter.repeats()


def shifted(
    clean: PoisonedRound, attack: Attack | None, round_: PoisonedRound, m: int
) -> list[str]:
    """Return the shift of the canaries, its alarm, the share it tells, and the gain without it."""
    oracle, law = clean.oracle, 0.0
    shift = canary_shift(oracle, round_.together, CANARIES)
    if attack is not None:
        pi = attack.support(oracle, rng(), m=m)[list(CANARIES)]
        law = m / (m + clean.genuine.n) * float((pi - oracle.q).mean()) / (oracle.p - oracle.q)
    low, high = shift.bounds(RATE)
    return [
        f"{law + 0.0:+.4f}",
        f"{shift.mean:+.4f}",
        f"{shift.standard_deviation:.4f}",
        "" if low <= shift.supported <= high else "raised",
        f"{max(0.0, -shift.mean * (oracle.p - oracle.q) / oracle.q):.4f}",
        signed(gain_of(clean, round_.together) - len(RAISED) * shift.mean),
    ]


GAINED = ("S", "G expected", "G measured", "seen by")
QUARANTINED = ("aside, law", "aside by size", "aside as repeats", "G", "G left")
SHIFTED = ("shift, law", "shift", "one sd", "alarm", "β told", "G left")


def tables(rounds: Rounds) -> Iterator[str]:
    """Yield the tables of every protocol, of assigned seeds, and of which attack to play."""
    gains = []
    for protocol, attacks in rows("attacks").items():
        gained_, *others = tables_of(rounds, protocol, attacks)
        gains.append(gained_)
        yield from (gained_, *others)
    assigned = frequency_oracle("llh", EPSILON, ITEMS, assigned_seeds=True)
    head = f"LLH, g = {assigned.own['hash_range']}, assigned seeds"
    yield _table(
        rounds, assigned, TABLES["rows"]["attacks"]["assigned seeds"], GAINED, gained, head
    )
    yield assigned_gains()
    yield choices(gains)


def assigned_gains() -> str:
    """Return the table of what MGA gains on random targets that nobody holds, with beta = 0.05.

    Each cell has the mean over the same sets, and the largest gain.
    """
    sizes = (1, 3, 10, 30)
    lines = []
    for epsilon, g in ASSIGNED:
        oracle = frequency_oracle("llh", epsilon, ITEMS, g, assigned_seeds=True)
        sets = rng()
        cells = []
        for r in sizes:
            gains = []
            for _ in range(TARGET_SETS):
                targets = sets.choice(ITEMS, r, replace=False)
                support = MGA(targets.tolist()).support(oracle)[targets]
                gains.append(0.05 * float(oracle.estimate(support, 1).sum()))
            cells.append(f"{np.mean(gains):.3f} ({max(gains):.3f})")
        lines.append([f"{epsilon:g}, {g}", *cells])
    return Table(["ε, g", *(f"r = {r}" for r in sizes)], lines).markdown()


def tables_of(rounds: Rounds, protocol: str, attacks: list[str]) -> Iterator[str]:
    """Yield a protocol's tables of gains, and of the quarantine and canaries if it has them."""
    oracle = frequency_oracle(protocol, EPSILON, ITEMS)
    yield _table(rounds, oracle, attacks, GAINED, gained)
    if unfit(oracle) is None:
        yield _table(rounds, oracle, attacks, QUARANTINED, quarantined)
    oracle = frequency_oracle(protocol, EPSILON, ITEMS + len(CANARIES))
    hits = oracle.laws.hits
    if hits is not None and hits.of_others(np.array(CANARIES)) is not None:
        yield _table(rounds, oracle, attacks, SHIFTED, shifted)


def _table(
    rounds: Rounds,
    oracle: FrequencyOracle,
    attacks: Iterable[str],
    columns: tuple[str, ...],
    row: Row,
    head: str = "",
) -> str:
    clean = rounds.clean(oracle, SEED, CANARIES[: oracle.domain_size - ITEMS])
    lines = []
    for name in attacks:
        attack = attack_of(name, RAISED)
        try:
            poisoned = clean.under(attack, rounds.malicious, rng())
            cells = row(clean, attack, poisoned, rounds.malicious)
        except ParameterError:
            cells = ["refused", *[""] * (len(columns) - 1)]
        lines.append([name, *cells])
    return Table([head or oracle.protocol.upper(), *columns], lines).markdown()


def choices(tables: Iterable[str]) -> str:
    """Return the table of which attack on targets to play for which aim, from the tables of gains
    of all protocols.
    """
    by_protocol = {
        table.split(" | ")[0].strip("| "): [
            (float(row["G measured"]), name, {*row["seen by"].split(", ")} - {"none"})
            for name, row in cells_of(table).items()
            if row["G measured"] and name.startswith(("RIA", "MGA", "APA"))
        ]
        for table in tables
    }
    lines = []
    for aim, allowed in TABLES["aims"].items():
        alarms = {*ALARMS} if allowed == ["any"] else {*allowed}
        best = (
            max(((gain, name) for gain, name, by in each if by <= alarms), key=lambda b: b[0])
            for each in by_protocol.values()
        )
        lines.append([aim, *(f"{name}: {gain:+.2f}" for gain, name in best)])
    return Table(["aim", *by_protocol], lines).markdown()
