"""The evidence of a round's reports, which is more than that of their counts.

A seed, drawn after the round is closed, draws a quarter of the reports; these choose scores, and
the others are scored. Equal reports are drawn one by one. So order, time and content of the reports
do not matter, and any order of the same reports gives the same evidence. Three random events share
the error: of the honest scores, of how many malicious reports are among those scored, and of
how far the frequencies of their honest users are from those of all.
"""

import itertools
from collections.abc import Sequence
from functools import partial

import numpy as np

from ldprecover.certificate.evidence import HonestPart, RoundEvidence, Scored, scores_log_tail
from ldprecover.certificate.partitions import Partition, numbers_of_cells, report_cells, set_cells
from ldprecover.certificate.scores import ScorePicker, Scores
from ldprecover.items import largest
from ldprecover.reports.sample import Drawn, Sample
from ldprecover.reports.source import ReportSource
from ldprecover.types import BoolArray, Int64Array

SEED_BITS = 128
"""Bits of the seed that draws the reports which choose scores."""
_SHARES = (1.0, 0.7, 0.4)  # of the malicious share, for which scores are chosen
_TYPICAL = 0.05  # in place of a malicious share of 0
_MOST = 128  # scores
_CHOOSING = 0.25  # of the reports choose the scores
_CHOICE, _CAUTION = 50, 1.5  # scores, and how much more, that the choice allows for
_SUSPECTS = (4, 8, 16)  # items of the largest estimates


def report_evidence(
    source: ReportSource,
    questions: Sequence[Int64Array],
    malicious_share: float,
    error: float,
    seed: int,
) -> RoundEvidence:
    """Return the evidence of reports, in three passes; scores suit the sets of the `questions`."""
    oracle, d = source.oracle, source.oracle.domain_size
    chosen = _choosing(source, seed)
    summaries = source.total_with(_summaries, chosen)
    choosing, scored = (int(n) for n in summaries[:, d])
    first_counts, counts = summaries[0, :d].astype(float), summaries[:, :d].sum(axis=0) * 1.0
    n = choosing + scored
    suspects = [largest(first_counts, r) for r in _SUSPECTS if r < d]
    sets = [items for items in (*questions, *suspects) if items.size]
    partitions = report_cells(oracle, sets) or [
        cells for items in sets if (cells := set_cells(oracle, items)) is not None
    ]
    scores: list[Scores] = []
    if partitions and choosing and scored:
        histograms = source.total_with(partial(_histograms, partitions), chosen)
        parts = np.split(histograms, np.cumsum([cells.size for cells in partitions])[:-1], axis=1)
        log_tail = _CAUTION * scores_log_tail(_CHOICE, error)
        picker = ScorePicker(partitions, [first for first, _ in parts], choosing, scored, log_tail)
        for share in dict.fromkeys((malicious_share or _TYPICAL) * x for x in _SHARES):
            box = RoundEvidence(oracle, first_counts, choosing, error).region(share)
            honest = HonestPart.of(n, scored, share, d, error)
            for items, sign in itertools.product(sets, (1.0, -1.0)):
                if box is None or honest is None or len(scores) >= _MOST:
                    break
                scores += picker.scores(box, honest, sign * np.isin(np.arange(d), items), scores)
    sums = [(parts[s.partition][1] * s.values).sum() for s in scores]
    result = Scored(scored, np.array([s.losses for s in scores]), np.array(sums))
    return RoundEvidence(oracle, counts, n, error, result)


def _choosing(source: ReportSource, seed: int) -> Drawn:
    """Return whether each report chooses the scores, in the order of the source.

    The source's order may be another in each copy of the round, so the seed draws places in the
    order of digests. Those of equal reports are equal: it does not matter which of them are drawn.
    Of a histogram, the seed draws the number of equal reports from the binomial law, report by
    report in ascending order.
    """
    if source.oracle.traits.histogram:
        return source.total(partial(_drawn, seed))
    digests = np.concatenate(source.total(partial(_digests, seed)))
    chosen = np.empty(digests.size, bool)
    chosen[np.argsort(digests, kind="stable")] = chooses(seed, digests.size)
    return chosen


def _drawn(seed: int, sample: Sample) -> Drawn:
    return sample.draw(_CHOOSING, np.random.Generator(np.random.Philox(key=seed).jumped(2)))


def _digests(seed: int, sample: Sample) -> list[np.ndarray]:
    """Return a 64-bit digest of each report, keyed by the seed, in a list that concatenates.

    It is a sum of the report's bytes times random numbers. Different reports have the same digest
    with a probability below 2^-56; their order would then matter, and the certificate be as valid.
    """
    reports, width = sample.reports, sample.oracle.wire.size
    factors = np.random.Philox(key=seed).jumped().random_raw(width)
    rows = np.ascontiguousarray(reports).view(np.uint8).reshape(len(reports), width)
    return [rows.astype(np.uint64) @ factors]


def chooses(seed: int, n: int) -> BoolArray:
    """Return whether each of n reports chooses the scores.

    Each does with probability 1/4, by two bits of the generator Philox at its place.
    """
    words = np.random.Philox(key=seed).random_raw(4 * -(-n // 128))  # 256 bits: 128 reports
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
    return np.asarray(bits.reshape(-1, 2)[:n].all(axis=1))


def _summaries(sample: Sample, chosen: Drawn) -> Int64Array:
    """Return the support counts of both parts, and their numbers of reports, (2, d + 1)."""
    tallies = [part.tally() for part in sample.split(chosen)]
    return np.array([np.append(each.counts(sample.oracle), each.n) for each in tallies])


def _histograms(partitions: Sequence[Partition], sample: Sample, chosen: Drawn) -> Int64Array:
    """Return how many reports of both parts each cell of all partitions has, (2, cells)."""
    histograms, sizes = [], [cells.size for cells in partitions]
    for part in sample.split(chosen):
        numbers = numbers_of_cells(partitions, sample.oracle, part.reports)
        histograms.append(np.concatenate([*map(part.bincount, numbers, sizes)]))
    return np.array(histograms)
