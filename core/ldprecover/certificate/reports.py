"""The evidence of a round's reports, which is more than that of their counts.

A seed, drawn after the round is closed, draws a quarter of the reports; these choose scores, and
the others are scored. So order, time and content of the reports do not matter. Three random events
share the error: of the honest scores, of how many malicious reports are among those scored, and of
how far the frequencies of their honest users are from those of all.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ldprecover.certificate.cells import Cells, numbers_of_cells, report_cells, set_cells
from ldprecover.certificate.counts import CountEvidence
from ldprecover.certificate.regions import Region
from ldprecover.certificate.scores import Chooser, HonestPart, Scores
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.reports import ReportSource
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports

SEED_BITS = 128
"""Bits of the seed that draws the reports which choose scores."""
_SPLIT, _COUNTS = 1 / 20, 1 / 5  # of the error: each of both limits of the split, and the counts
_SCORES = 1 - _COUNTS - 2 * _SPLIT
_SHARES = (1.2, 1.0, 0.5, 0.0)  # of the malicious share, for which scores are chosen
_TYPICAL = 0.05  # in place of a malicious share of 0
_MOST = 128  # scores
_CHOICE = 50  # scores and more that the choice allows for
_SUSPECTS = (4, 8, 16)  # items of the largest estimates


@dataclass(frozen=True, eq=False)
class ReportEvidence:
    """The evidence of reports, of which `scored` are scored.

    `sums` are of their k scores, and the `losses`, (k, d), those of a user of each item.
    """

    counts: CountEvidence
    scored: int
    losses: FloatArray
    sums: FloatArray
    error: float

    @property
    def n(self) -> int:
        """The number of reports."""
        return self.counts.n

    @property
    def domain_size(self) -> int:
        """The number of items."""
        return self.counts.domain_size

    @property
    def events(self) -> int:
        """The number of events: those of counts and scores, and the two limits of the split."""
        return self.counts.events + self.sums.size + 2

    def region(self, malicious_share: float) -> Region | None:
        """Return all frequencies that counts and scores allow; one linear programme."""
        box = self.counts.region(malicious_share)
        honest = _honest_part(
            self.n, self.scored, malicious_share, self.domain_size, _SPLIT * self.error
        )
        if box is None or honest is None or not self.sums.size:
            return box
        log_tail = math.log(self.sums.size / (_SCORES * self.error))
        polytope = honest.polytope(box, self.losses, (self.sums + log_tail) / honest.n)
        return polytope if polytope.is_possible else None


def report_evidence(
    source: ReportSource,
    questions: Sequence[Int64Array],
    malicious_share: float,
    error: float,
    quarantined: int,
    seed: int,
) -> ReportEvidence:
    """Return the evidence of reports, in two passes; scores suit the sets of the `questions`."""
    oracle, d = source.oracle, source.oracle.domain_size
    summaries = source.total_indexed(partial(_summaries, seed))
    choosing, scored = (int(n) for n in summaries[:, d])
    choosers, counts = summaries[0, :d].astype(float), summaries[:, :d].sum(axis=0).astype(float)
    n = choosing + scored + quarantined
    # The seed splits quarantined reports too. They may be honest, with any scores.
    unseen = int(np.count_nonzero(~chooses(seed, choosing + scored, quarantined)))
    all_counts = CountEvidence(oracle, counts, n, 1 - _COUNTS * error, quarantined)
    evidence = partial(ReportEvidence, all_counts, scored + unseen, error=error)
    suspects = [np.argsort(-choosers, kind="stable")[:r] for r in _SUSPECTS if r < d]
    partitions = _partitions(oracle, questions, suspects)
    scores: list[Scores] = []
    if partitions and choosing and scored:
        histograms = source.total_indexed(partial(_histograms, seed, partitions))
        parts = np.split(histograms, np.cumsum([cells.size for cells in partitions])[:-1], axis=1)
        chooser = Chooser(
            partitions,
            [first for first, _ in parts],
            choosing,
            scored,
            math.log(_CHOICE / (_SCORES * error)) * 1.5,
        )
        box_evidence = CountEvidence(oracle, choosers, choosing, 1 - error)
        for share in dict.fromkeys((malicious_share or _TYPICAL) * x for x in _SHARES):
            box = box_evidence.region(share)
            honest = _honest_part(n, scored + unseen, share, d, _SPLIT * error)
            for items in [*questions, *suspects]:
                for sign in (1.0, -1.0):
                    if box is not None and honest is not None and len(scores) < _MOST:
                        weights = np.zeros(d)
                        weights[items] = sign
                        scores += chooser.scores(box, honest, weights, scores)
    sums = [float(parts[s.partition][1] @ s.values + unseen * s.values.max()) for s in scores]
    return evidence(np.array([s.losses for s in scores]), np.array(sums))


def _honest_part(
    n: int, scored: int, malicious_share: float, d: int, error: float
) -> HonestPart | None:
    """Return limits of the honest part of the scored reports, each wrong with this error.

    None if nothing is left. Both are drawn without replacement: Hoeffding 1963, section 6, limits
    the malicious reports. The mean distance follows from Cauchy and Schwarz, and it is exceeded as
    McDiarmid's inequality says.
    """
    malicious, log_tail = math.floor(malicious_share * n), math.log(1 / error)
    sampled = malicious * scored / n + math.sqrt(malicious * log_tail / 2)
    honest, others = scored - min(sampled, malicious), n - scored
    if honest < 2:
        return None
    mean = math.sqrt((d - 1) * others / (honest * (honest + others - 1))) / 2
    return HonestPart(honest, min(1.0, mean + math.sqrt(others * log_tail / 2) / honest))


def chooses(seed: int, first: int, n: int) -> BoolArray:
    """Return whether each of n reports, before which `first` others come, chooses the scores.

    Each does with probability 1/4, by two bits of the generator Philox at its position.
    """
    block, offset = divmod(first, 128)  # reports of 256 bits
    words = np.random.Philox(key=seed).advance(block).random_raw(4 * -(-(offset + n) // 128))
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
    return np.asarray(bits.reshape(-1, 2)[offset : offset + n].all(axis=1))


def _summaries(seed: int, oracle: FrequencyOracle, reports: Reports, first: int) -> Int64Array:
    """Return the support counts of both parts, and their numbers of reports, (2, d + 1)."""
    chosen = chooses(seed, first, len(reports))
    parts = reports[chosen], reports[~chosen]
    return np.array([np.append(oracle.support_counts(part), len(part)) for part in parts])


def _histograms(
    seed: int, partitions: Sequence[Cells], oracle: FrequencyOracle, reports: Reports, first: int
) -> Int64Array:
    """Return how many reports of both parts each cell of all partitions has, (2, cells)."""
    scored = ~chooses(seed, first, len(reports))
    histograms = [
        np.bincount(cell + cells.size * scored, minlength=2 * cells.size).reshape(2, -1)
        for cells, cell in zip(
            partitions, numbers_of_cells(partitions, oracle, reports), strict=True
        )
    ]
    return np.concatenate(histograms, axis=1)


def _partitions(
    oracle: FrequencyOracle, questions: Sequence[Int64Array], suspects: Sequence[Int64Array]
) -> list[Cells]:
    """Return partitions by single reports; or by the sets, and by questions among suspects."""
    single = report_cells(oracle, [*questions, *suspects])
    if single:
        return single
    lists = [[items] for items in (*questions, *suspects)]
    lists += [[items, np.setdiff1d(suspects[-1], items)] for items in questions if suspects]
    partitions = [set_cells(oracle, sets) for sets in lists if all(items.size for items in sets)]
    return [cells for cells in partitions if cells is not None]
