"""Recoveries: those from counts against a limit, those from reports against the same work report by
report in Python.

Diffstats' steps are those that its authors publish: sum every report, then, for each of ten
thresholds and each of 63 sets of items, keep the reports that support none of the set. FIAD's
itemsets are mined by mlxtend's FP-growth, as there. Both are timed on a sample of the reports and
scaled up: their time is proportional to the reports.
"""

import itertools
import statistics
import warnings
from collections.abc import Iterator
from functools import partial

import numpy as np
import typer
from bench.harness import Work, seconds

from ldprecover import FrequencyOracle, RecoveryRequest, Tally, frequency_oracle, recover
from ldprecover.recovery import METHODS
from ldprecover_attacker import MGA
from ldprecover_client import Population
from ldprecover_experiments import PoisonedRound

MANY, LIMIT_MS = 10_000, 50
SLOW = {"unmix": 10_000}
"""Limits in milliseconds of slower methods."""
D, EPSILON, REPORTS, BETA, TARGETS = 490, 0.5, 100_000, 0.05, 10
GOAL = 20
SAMPLE = 2_000
_LONGEST = 12


def median_seconds(work: Work, rounds: int) -> float:
    """Return the median time of some calls."""
    return statistics.median(seconds(work) for _ in range(rounds))


def from_counts(rounds: int) -> Iterator[str]:
    """Yield a line for each method that needs no reports, with its slowest protocol."""
    rng = np.random.default_rng(1)
    for name, method in METHODS.items():
        if "reports" in method.needs:
            continue
        slowest = 0.0
        for protocol in ("grr", "oue", "olh"):
            oracle = frequency_oracle(protocol, EPSILON, MANY)
            if method.unfit(oracle) is not None:
                continue
            users = rng.dirichlet(np.ones(MANY) / 10)
            counts = rng.binomial(REPORTS, oracle.q + (oracle.p - oracle.q) * users)
            frequencies = (counts / REPORTS - oracle.q) / (oracle.p - oracle.q)
            request = RecoveryRequest(
                name, targets=range(TARGETS) if "targets" in method.needs else ()
            )
            work = partial(recover, oracle, frequencies, request, n=REPORTS)
            slowest = max(slowest, median_seconds(work, rounds))
        yield (
            f"{name + ':':18} {1000 * slowest:6.1f} ms at d = {MANY} (goal <= "
            f"{SLOW.get(name, LIMIT_MS)})"
        )


def poisoned(oracle: FrequencyOracle) -> np.ndarray:
    """Return packed reports, a share BETA of them of a crafted MGA, in random order."""
    rng = np.random.default_rng(1)
    malicious = round(REPORTS * BETA)
    users = Population(1 / np.arange(1, D + 1), REPORTS - malicious, seed=1)
    attack = MGA(rng.choice(D, TARGETS, replace=False).tolist())
    reports = PoisonedRound.clean(oracle, users).under(attack, malicious, rng).reports
    assert reports is not None
    rng.shuffle(reports)
    return reports


def diffstats_in_python(support: np.ndarray) -> None:
    """Take the published steps over each report; the choice of flagged sizes costs nothing."""
    sizes = [int(sum(report)) for report in support]
    unique_sizes, counts = np.unique(sizes, return_counts=True)
    for threshold in range(1, 11):
        flagged = [
            i
            for i, size in enumerate(sizes)
            if size in unique_sizes[np.argsort(-counts)[:threshold]]
        ]
        top = np.argsort(-support[flagged].sum(axis=0))[:6]
        for length in range(1, 7):
            for items in itertools.combinations(top, length):
                [i for i in flagged if not any(support[i][item] == 1 for item in items)]


def fiad_by_fp_growth(support: np.ndarray, q: float) -> None:
    """Mine the sets that are supported as often as honest reports support one item."""
    import pandas as pd
    from mlxtend.frequent_patterns import fpgrowth

    fpgrowth(pd.DataFrame(support.astype(bool)), min_support=q, max_len=_LONGEST)


def from_reports(rounds: int) -> Iterator[str]:
    """Yield a line for FIAD and for Diffstats under each protocol."""
    for protocol in ("oue", "olh"):
        oracle = frequency_oracle(protocol, EPSILON, D)
        reports = poisoned(oracle)
        tally = Tally.of(oracle, reports)
        support = oracle.supports(reports[:SAMPLE]).astype(int)
        for name in ("diffstats", "fiad"):
            ours = median_seconds(partial(recover, oracle, reports, name, tally=tally), rounds)
            try:
                peer = (
                    diffstats_in_python
                    if name == "diffstats"
                    else lambda s: fiad_by_fp_growth(s, oracle.q)  # noqa: B023
                )
                theirs = seconds(lambda: peer(support)) * REPORTS / SAMPLE  # noqa: B023
            except ImportError as missing:
                yield f"{name}, {protocol}: {ours:6.2f} s; not compared: {missing}"
                continue
            yield (
                f"{name}, {protocol}: {ours:6.2f} s, in Python {theirs:6.0f} s, "
                f"{theirs / ours:5.0f} times as fast "
                f"(goal >= {GOAL})"
            )


def main(rounds: int = 5) -> None:
    """Time recoveries, the median of some rounds."""
    warnings.simplefilter("ignore")  # the peers'
    print(f"recoveries, {REPORTS} reports over {D} items where reports are read")
    for line in itertools.chain(from_counts(rounds), from_reports(rounds)):
        print(line, flush=True)


if __name__ == "__main__":
    typer.run(main)
