"""How wide certificates are on the cities: beside normal limits, and beside what stays open."""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from statistics import NormalDist

import numpy as np

from ldprecover import FrequencyOracle, Tally, frequency_oracle
from ldprecover.certificate import certify, undetectable
from ldprecover.certificate.region import Region
from ldprecover.protocols import PROTOCOLS
from ldprecover.types import FloatArray, Reports, Rng
from ldprecover_attacker import make_attack
from ldprecover_experiments.certificate_rounds import CONFIDENCE, NOBODY, Row
from ldprecover_experiments.detection import honest_law
from ldprecover_experiments.parameters import GenuineUsers, load_genuine_users, malicious_users
from ldprecover_experiments.tables import Table

TARGETS = tuple(range(5, 102, 10))[:10]
NARROW = 1.6
"""Widths up to this multiple of the floor count as narrow."""

_LEADER, _LEADER_SHARE, _SHARE = 0, 0.01, 0.05
_COUNT_EPSILONS, _EPSILONS = (0.5, 1.0, 2.0, 4.0), (1.0, 2.0)
_COUNT_ATTACKS = (NOBODY, "ria", "mga")
_ATTACKS = (NOBODY, "ria", "mga", "mga-a", "apa", "apa2")
_REPORT_PROTOCOLS = ("oue", "olh")
_HALVINGS = 40

COUNT_COLUMNS = (
    *("seed", "protocol", "epsilon", "attack"),
    *("truth", "low", "high", "normal low", "normal high", "inside"),
)
COLUMNS = (
    *("seed", "trial", "protocol", "epsilon", "attack"),
    *("truth", "counts low", "counts high", "low", "high", "least", "floor"),
)


def count_tasks(seed: int, trials: int, share: float) -> list[tuple[str, ...]]:
    """Return the keys of the rounds that are certified from their counts."""
    every = product(PROTOCOLS, _COUNT_EPSILONS, _COUNT_ATTACKS)
    return [(str(seed), protocol, f"{epsilon:g}", attack) for protocol, epsilon, attack in every]


def play_counts(key: tuple[str, ...]) -> dict[str, str]:
    """Return the interval of the leader by Chernoff's and by normal limits."""
    _, protocol, epsilon, attack = key
    users, rng = _users(), _rng(key)
    oracle = frequency_oracle(protocol, float(epsilon), len(users.items))
    tally = oracle.simulation.honest_tally(users.counts, rng)
    if attack != NOBODY:
        tally += Tally.of(oracle, _fakes(oracle, attack, _LEADER_SHARE, rng))
    certificate = certify(oracle, tally, _LEADER_SHARE, CONFIDENCE)
    normal = _normal_box(oracle, tally)
    truth = users.frequencies
    inside = (certificate.lower <= truth).all() and (truth <= certificate.upper).all()
    ends = (certificate.lower, certificate.upper, normal.lower, normal.upper)
    numbers = [f"{float(each[_LEADER]):.4f}" for each in (truth, *ends)]
    return dict(zip(COUNT_COLUMNS[4:], (*numbers, str(int(inside))), strict=True))


def count_tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the intervals of the leader where nobody attacks, and how often the truth is inside."""
    clean = [row for row in rows if row["attack"] == NOBODY]
    protocols = dict.fromkeys(row["protocol"] for row in clean)
    title = f"New York, {clean[0]['truth']}, at a share of {_LEADER_SHARE}, from counts"
    body = [
        [
            f"{protocol.upper()}, {name}",
            *(
                f"[{float(row[low]):.3f}, {float(row[high]):.3f}]"
                for row in clean
                if row["protocol"] == protocol
            ),
        ]
        for protocol in protocols
        for name, low, high in (
            ("Chernoff", "low", "high"),
            ("normal", "normal low", "normal high"),
        )
    ]
    columns = ("limits", *(f"ε = {epsilon:g}" for epsilon in _COUNT_EPSILONS))
    yield Table(columns, body, title, len(_COUNT_EPSILONS))
    inside = sum(row["inside"] == "1" for row in rows)
    yield Table(
        ("rounds of cities", "all frequencies inside"), [[str(len(rows)), str(inside)]], "", 2
    )


def report_tasks(seed: int, trials: int, share: float) -> list[tuple[str, ...]]:
    """Return the keys of the rounds that are certified from reports: a third of the trials."""
    every = product(range(-(-trials // 3)), _REPORT_PROTOCOLS, _EPSILONS, _ATTACKS)
    return [(str(seed), str(t), protocol, f"{eps:g}", a) for t, protocol, eps, a in every]


def play_reports(key: tuple[str, ...]) -> dict[str, str]:
    """Return the intervals of the targets' total from counts and reports, and their floor."""
    seed, trial, protocol, epsilon, attack = key
    users, rng = _users(), _rng(key)
    oracle = frequency_oracle(protocol, float(epsilon), len(users.items))
    reports = oracle.perturb(np.repeat(np.arange(users.counts.size), users.counts), rng)
    if attack != NOBODY:
        reports = np.concatenate([reports, _fakes(oracle, attack, _SHARE, rng)])
    questions = [TARGETS]
    certificate = certify(
        oracle, reports, _SHARE, CONFIDENCE, questions=questions, seed=int(seed) + int(trial)
    )
    counted = certify(oracle, Tally.of(oracle, reports), _SHARE, CONFIDENCE)
    numbers = (
        float(users.frequencies[list(TARGETS)].sum()),
        *counted.total(TARGETS),
        *certificate.total(TARGETS),
        certificate.least_malicious_share,
        undetectable(oracle, users.frequencies, TARGETS, _SHARE).floor,
    )
    return {name: f"{x:.5f}" for name, x in zip(COLUMNS[5:], numbers, strict=True)}


def report_tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the mean intervals of the targets' total, beside the floor of a round nobody attacks.

    "best" is the width that a test of all reports by their divergence has: see `best_width`.
    The last table counts the settings whose mean width is at most NARROW times the floor.
    """
    body, narrow = [], 0
    settings = dict.fromkeys((row["protocol"], row["epsilon"], row["attack"]) for row in rows)
    for protocol, epsilon, attack in settings:
        key = (protocol, epsilon, attack)
        own = [row for row in rows if (row["protocol"], row["epsilon"], row["attack"]) == key]
        mean = {name: float(np.mean([float(row[name]) for row in own])) for name in COLUMNS[5:]}
        ratio = (mean["high"] - mean["low"]) / mean["floor"]
        narrow += ratio <= NARROW
        inside = sum(float(r["low"]) <= float(r["truth"]) <= float(r["high"]) for r in own)
        body.append(
            [
                *(protocol.upper(), epsilon, attack),
                *(f"[{mean[f'{by}low']:.3f}, {mean[f'{by}high']:.3f}]" for by in ("counts ", "")),
                *(f"{mean['least']:.3f}", f"{mean['floor']:.3f}", f"{ratio:.2f}"),
                _best_ratio(protocol, float(epsilon), attack),
                f"{inside} of {len(own)}",
            ]
        )
    columns = (
        *("protocol", "ε", "attack", "from counts", "from reports", "least share"),
        *("floor", "width / floor", "best / floor", "truth inside"),
    )
    truth = float(rows[0]["truth"]) if rows else math.nan
    yield Table(columns, body, f"total of ten cities, {truth:.3f}, at a share of {_SHARE}", 9)
    yield Table(
        ("settings", f"width at most {NARROW} floors"), [[str(len(body)), str(narrow)]], "", 2
    )


def best_width(oracle: FrequencyOracle, total: float, n: int) -> float:
    """Return the width of all totals that n reports of honest users of a total do not exclude.

    A total x is excluded where N KL(P || Q) > ln(1/error) for the law P of the reports and every
    law Q >= (1 - share) H(x), where H is honest: then malicious reports do not explain it. The laws
    are of how many targets and others a report supports. The test knows P, so no split is lost.
    """
    holders, others = (honest_law(oracle, len(TARGETS), holds) for holds in (True, False))
    budget = -math.log(1 - CONFIDENCE) / n

    def law(x: float) -> FloatArray:
        return x * holders + (1 - x) * others

    def is_possible(x: float) -> bool:
        return _least_divergence(law(total), (1 - _SHARE) * law(x)) <= budget

    def end(inside: float, outside: float) -> float:
        if is_possible(outside):
            return outside
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if is_possible(middle) else (inside, middle)
        return inside

    return end(total, 1.0) - end(total, 0.0)


def _best_ratio(protocol: str, epsilon: float, attack: str) -> str:
    """Return the best width over the floor, empty for attacks with crafted reports."""
    if attack not in (NOBODY, "ria"):
        return ""
    users, share = _users(), _SHARE if attack == "ria" else 0.0
    oracle = frequency_oracle(protocol, epsilon, len(users.items))
    total = float((1 - share) * users.frequencies[list(TARGETS)].sum() + share)
    floor = undetectable(oracle, users.frequencies, TARGETS, _SHARE).floor
    n = users.n + malicious_users(users.n, share)
    return f"{best_width(oracle, total, n) / floor:.2f}"


def _least_divergence(law: FloatArray, honest: FloatArray) -> float:
    """Return the least KL(law || Q) of laws Q of at least `honest`: max(honest, z law) of sum 1."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        z = (low + high) / 2
        low, high = (low, z) if np.maximum(honest, z * law).sum() > 1 else (z, high)
    occurs = law > 0
    return float(law[occurs] @ np.log((law / np.maximum(honest, low * law))[occurs]))


@cache
def _users() -> GenuineUsers:
    return load_genuine_users("cities")


def _rng(key: tuple[str, ...]) -> Rng:
    return np.random.default_rng(list("/".join(key).encode()))


def _fakes(oracle: FrequencyOracle, attack: str, share: float, rng: Rng) -> Reports:
    m = malicious_users(_users().n, share)
    return make_attack(attack, targets=TARGETS).reports(oracle, m, rng)


def _normal_box(oracle: FrequencyOracle, tally: Tally) -> Region:
    """Return the box by normal limits, which hold about as often as they say."""
    d, p, q = oracle.domain_size, oracle.p, oracle.q
    honest = (1 - _LEADER_SHARE) * tally.n
    z = NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / (2 * d))

    def upper(counts: FloatArray) -> FloatArray:
        x = counts / honest
        return np.asarray(np.minimum(x + z * np.sqrt(np.clip(x * (1 - x), 0, None) / honest), 1.0))

    counts = tally.counts(oracle).astype(np.float64)
    box = Region.of((1 - q - upper(tally.n - counts)) / (p - q), (upper(counts) - q) / (p - q))
    empty = np.full(d, math.nan)
    return box or Region(empty, empty)
