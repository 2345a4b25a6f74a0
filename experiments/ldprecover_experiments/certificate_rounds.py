"""Certificates in simulated rounds of every kind: the truth must be inside, whatever was sent.

Each round draws its protocol, epsilon, items, reports, malicious share, world and attack. Honest
counts come from their exact law. Of many malicious reports some are different and the others repeat
them, which is an attack as well.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from math import nan
from typing import Any

import numpy as np

from ldprecover import FrequencyOracle, ParameterError, Tally, frequency_oracle
from ldprecover.certificate import Ahead, Certificate, certify
from ldprecover.distributions import binomial_threshold
from ldprecover.protocols import PROTOCOLS
from ldprecover.types import FloatArray, Int64Array, Reports, Rng
from ldprecover_attacker import ATTACKS, Attack, attack_options, make_attack
from ldprecover_experiments.datasets import dataset_of
from ldprecover_experiments.tables import Table

CONFIDENCE = 0.95
FALSE_ALARMS = 1e-6
"""The probability that certificates which are right beyond their confidence fail a limit."""

NOBODY = "none"
_EPSILON, _ITEMS, _REPORTS, _SHARE = (0.2, 4.0), (2, 1_000), (300, 1_000_000), 0.2
_REAL = ("cities", "fire", "emoji")
_DISTINCT = 4_000  # different malicious reports of a round, and
_CELLS = 4_000_000  # of (report, item) pairs
_READ = 8_000_000  # such pairs of a round that is certified from its reports
_FROM_REPORTS = 5  # one round of five is; no divisor of the number of attacks and none
_TARGETS, _SETS, _PAIRS = 10, 4, 8
_ROUNDING = 1e-9

COLUMNS = (
    *("seed", "round", "evidence", "protocol", "epsilon", "items", "reports", "share", "world"),
    *("attack", "inside", "least", "tolerance"),
    *("rival share", "rival leads", "rival inside", "rival least", "rival tolerance"),
)
"""Columns of the file of rounds. `seed` and `round` identify a row."""

Row = Mapping[str, str]


def _spikes(d: int, shares: Sequence[float]) -> FloatArray:
    """Return the frequencies of items of these shares; others share the rest."""
    spikes = np.array(shares[: d - 1])
    return np.append(spikes, np.full(d - spikes.size, (1 - spikes.sum()) / (d - spikes.size)))


@cache
def _shares(name: str) -> FloatArray:
    return np.asarray(dataset_of(name).frequencies[: _ITEMS[1]], np.float64)


WORLDS: Mapping[str, Callable[[int, Rng], FloatArray]] = {
    "uniform": lambda d, rng: np.full(d, 1 / d),
    "zipf": lambda d, rng: np.arange(1, d + 1) ** np.float64(-rng.uniform(0.7, 2)),
    "geometric": lambda d, rng: np.float64(rng.uniform(0.5, 0.99)) ** np.arange(d),
    "heavy hitter": lambda d, rng: _spikes(d, [rng.uniform(0.4, 0.99)]),
    "point mass": lambda d, rng: _spikes(d, [1.0]),
    "two spikes": lambda d, rng: _spikes(d, [0.45, 0.25]),
    "real": lambda d, rng: _shares(_REAL[rng.integers(len(_REAL))]),
}
"""Name -> frequencies of d items, up to a factor; real data has its own d."""


@dataclass(frozen=True, eq=False)
class Round:
    """A simulated round: how many honest users hold each item, and how many others attack."""

    number: int
    oracle: FrequencyOracle
    users: Int64Array
    malicious: int
    world: str
    attack: str
    targets: tuple[int, ...]
    reads: bool
    rng: Rng

    @classmethod
    def drawn(cls, seed: int, number: int) -> "Round":
        """Return a round: its protocol and attack by its number, the rest at random."""
        rng = np.random.default_rng([seed, number])
        world = list(WORLDS)[rng.integers(len(WORLDS))]
        weights = WORLDS[world](round(_log_uniform(_ITEMS, rng)), rng)
        d = weights.size
        protocol = list(PROTOCOLS)[number % len(PROTOCOLS)]
        oracle = frequency_oracle(protocol, _log_uniform(_EPSILON, rng), d)
        targets = rng.choice(d, int(rng.integers(1, 1 + min(_TARGETS, max(1, d // 2)))), False)
        attacks = [NOBODY, *sorted(ATTACKS)]
        order = np.roll(attacks, -(number // len(PROTOCOLS)) % len(attacks)).tolist()
        reads = number // len(PROTOCOLS) % _FROM_REPORTS == 0
        n = _log_uniform((_REPORTS[0], min(_REPORTS[1], _READ / d if reads else np.inf)), rng)
        share = float(rng.uniform(0, _SHARE))
        chosen = tuple(sorted(targets.tolist()))
        attack = next(a for a in order if _attack(a, oracle, chosen, share) or a == NOBODY)
        malicious = 0 if attack == NOBODY else max(1, round(share * n))
        users = rng.multinomial(round(n) - malicious, rng.permutation(weights / weights.sum()))
        return cls(number, oracle, users, malicious, world, attack, chosen, reads, rng)

    @cached_property
    def truth(self) -> FloatArray:
        """The frequencies of the honest users."""
        truth: FloatArray = self.users / self.users.sum()
        return truth

    @property
    def n(self) -> int:
        """The number of reports."""
        return int(self.users.sum()) + self.malicious

    @property
    def share(self) -> float:
        """The share of malicious reports."""
        return self.malicious / self.n

    def play(self) -> dict[str, str]:
        """Play the round and certify it, and return its row of the file without the key."""
        oracle, rng, items = self.oracle, self.rng, np.arange(self.users.size)
        attack = _attack(self.attack, oracle, self.targets, self.share)
        if self.reads:
            honest = oracle.perturb(np.repeat(items, self.users), rng)
            tally = Tally.of(oracle, honest)
            fakes = [] if attack is None else [_repeated(self._reports(attack), self.malicious)]
            reports = np.concatenate([honest, *fakes])
            certificate = certify(
                oracle, reports, self.share, CONFIDENCE, questions=[self.targets], seed=self.number
            )
        else:
            tally = oracle.simulation.honest_tally(self.users, rng)
            together = tally
            if attack is not None:
                together = tally + _tally(oracle, self._reports(attack), self.malicious)
            certificate = certify(oracle, together, self.share, CONFIDENCE)
        leader, rival = self._rivals()
        tolerance = certificate.tolerance(Ahead(rival, leader))
        return {
            "evidence": "reports" if self.reads else "counts",
            "protocol": oracle.protocol,
            "epsilon": f"{oracle.epsilon:.3f}",
            "items": str(items.size),
            "reports": str(self.n),
            "share": repr(self.share),
            "world": self.world,
            "attack": self.attack,
            "inside": str(int(is_inside(certificate, self.truth, self._sets(), self._pairs()))),
            "least": repr(certificate.least_malicious_share),
            "tolerance": _text(tolerance),
            **self._with_rival(tally, leader, rival),
        }

    def _with_rival(self, honest: Tally, leader: int, rival: int) -> dict[str, str]:
        """Play reports that support a rival and not the leader, beside the same honest ones."""
        oracle = self.oracle
        m = max(1, round(honest.n * self.rng.uniform(0, _SHARE)))
        together = honest + _tally(oracle, self._for_rival(leader, rival), m)
        share = m / together.n
        certificate = certify(oracle, together, share, CONFIDENCE)
        estimates = oracle.estimate(together.counts(oracle), together.n)
        return {
            "rival share": repr(share),
            "rival leads": str(int(estimates[rival] > estimates[leader])),
            "rival inside": str(int(is_inside(certificate, self.truth, [], self._pairs()))),
            "rival least": repr(certificate.least_malicious_share),
            "rival tolerance": _text(certificate.tolerance(Ahead(rival, leader))),
        }

    def _rivals(self) -> tuple[int, int]:
        """Return the item that leads, and a target or another that does not lead it."""
        leader = int(self.truth.argmax())
        others = [item for item in (*self.targets, 0, 1) if item != leader]
        return leader, others[0]

    def _for_rival(self, leader: int, rival: int) -> Reports:
        reports = self._reports(make_attack("mga", targets=[rival]))
        one_sided = self.oracle.supports(reports, np.array([rival, leader])) @ np.array([1, -1]) > 0
        return reports[one_sided] if one_sided.any() else reports

    def _reports(self, attack: Attack) -> Reports:
        number = min(_DISTINCT, max(1, _CELLS // self.users.size))
        return attack.reports(self.oracle, number, self.rng)

    def _sets(self) -> list[tuple[int, ...]]:
        d, rng = self.users.size, np.random.default_rng(self.number)
        sets = [rng.choice(d, int(rng.integers(1, d + 1)), False) for _ in range(_SETS)]
        return [self.targets, *(tuple(items.tolist()) for items in sets)]

    def _pairs(self) -> list[tuple[int, int]]:
        d, rng = self.users.size, np.random.default_rng(self.number)
        pairs = [rng.choice(d, 2, False).tolist() for _ in range(_PAIRS)]
        return [self._rivals(), *((a, b) for a, b in pairs)]


def is_inside(
    certificate: Certificate,
    truth: FloatArray,
    sets: Iterable[tuple[int, ...]],
    pairs: Iterable[tuple[int, int]],
) -> bool:
    """Return whether all intervals hold the truth: of all items, of sets, of pairs, of ranks."""
    if not certificate.is_possible:
        return False
    intervals: list[tuple[Any, Any, Any]] = [
        (certificate.lower, certificate.upper, truth),
        *((*certificate.total(items), truth[list(items)].sum()) for items in sets),
        *((*certificate.difference(a, b), truth[a] - truth[b]) for a, b in pairs),
    ]
    inside = all(
        bool(np.all(low <= x + _ROUNDING) and np.all(x <= high + _ROUNDING))
        for low, high, x in intervals
    )
    ordered = np.sort(truth)
    ahead = truth.size - np.searchsorted(ordered, truth, side="right")  # items of more users
    rivals = truth.size - 1 - np.searchsorted(ordered, truth, side="left")  # and of as many
    for k in {1, max(1, truth.size // 2)}:
        ranking = certificate.ranking(k)
        inside &= set(ranking.certain) <= set(np.flatnonzero(rivals < k).tolist())
        inside &= set(np.flatnonzero(ahead < k).tolist()) <= set(ranking.possible)
    return inside


def _attack(
    name: str, oracle: FrequencyOracle, targets: tuple[int, ...], share: float
) -> Attack | None:
    """Return an attack; None without attack, or if the protocol has no reports for it."""
    if name == NOBODY:
        return None
    values: dict[str, Any] = {"targets": targets, "share": share}
    options = {option: values[option] for option in values if option in attack_options(name)}
    with suppress(ParameterError):
        attack = make_attack(name, **options)
        attack.resolve([f"item {v}" for v in range(oracle.domain_size)])
        attack.reports(oracle, 1, np.random.default_rng(0))
        return attack
    return None


def _tally(oracle: FrequencyOracle, reports: Reports, m: int) -> Tally:
    """Return the tally of m reports, these again and again."""
    times, rest = divmod(m, len(reports))
    return Tally(oracle.summarise(reports) * times + oracle.summarise(reports[:rest]), m)


def _repeated(reports: Reports, m: int) -> Reports:
    return reports[np.arange(m) % len(reports)]


def _log_uniform(ends: tuple[float, float], rng: Rng) -> float:
    return float(np.exp(rng.uniform(*np.log(ends))))


def _text(tolerance: float | None) -> str:
    return "" if tolerance is None else repr(tolerance)


@dataclass(frozen=True)
class Verdict:
    """The certificate of one round, beside the truth."""

    inside: bool
    least: float
    tolerance: float
    share: float
    changed: bool

    @property
    def is_wrong(self) -> bool:
        """Whether an interval, the least share, or the tolerance of a false claim is wrong."""
        return not self.inside or self.least > self.share or self.tolerance > self.share

    @classmethod
    def of(cls, row: Row, prefix: str = "") -> "Verdict":
        """Return the verdict on a round, or with the prefix "rival " on the round with a rival."""
        return cls(
            row[f"{prefix}inside"] == "1",
            float(row[f"{prefix}least"]),
            float(row[f"{prefix}tolerance"] or 0),
            float(row[f"{prefix}share"]),
            row["rival leads"] == "1" if prefix else False,
        )


def limit(rounds: int) -> int:
    """Return the number of wrong rounds that right certificates reach with FALSE_ALARMS."""
    return binomial_threshold(rounds, 1 - CONFIDENCE, FALSE_ALARMS)


def tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the results of all rounds, and by evidence, protocol, world and attack."""
    clean = [verdict for row in rows if (verdict := Verdict.of(row)).share == 0]
    body = [
        [*map(str, (len(rows), limit(len(rows)), len(clean), sum(v.least == 0 for v in clean)))]
    ]
    yield Table(("rounds", "limit of wrong ones", "clean", "least share 0"), body, "", 4)
    columns = (
        *("rounds", "inside", "least ≤ β", "wrong", "wrong, rival"),
        *("rival leads", "tolerance > β", "tolerance / β"),
    )
    yield Table(("", *columns), [["all", *_results(rows)]], "certificates of all rounds", 8)
    for key in ("evidence", "protocol", "world", "attack"):
        groups = {name: [row for row in rows if row[key] == name] for name in _names(rows, key)}
        body = [[name, *_results(group)] for name, group in groups.items()]
        yield Table((key, *columns), body, f"certificates by {key}", len(columns))


def _names(rows: Sequence[Row], key: str) -> list[str]:
    return sorted({row[key] for row in rows})


def _results(rows: Sequence[Row]) -> list[str]:
    played = [Verdict.of(row) for row in rows]
    rivals = [Verdict.of(row, "rival ") for row in rows]
    changed = [verdict for verdict in rivals if verdict.changed]
    closest = max((verdict.tolerance / verdict.share for verdict in changed), default=nan)
    return [
        str(len(played)),
        str(sum(verdict.inside for verdict in played)),
        str(sum(verdict.least <= verdict.share for verdict in played)),
        str(sum(verdict.is_wrong for verdict in played)),
        str(sum(verdict.is_wrong for verdict in rivals)),
        str(len(changed)),
        str(sum(verdict.tolerance > verdict.share for verdict in changed)),
        f"{closest:.2f}",
    ]
