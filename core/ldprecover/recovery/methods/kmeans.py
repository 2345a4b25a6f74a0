"""Estimates of random subsets of the reports, in two clusters: the subset defence, and
LDPRecover-KM.
"""

from functools import partial

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.estimation.simplex import project_simplex
from ldprecover.recovery.contract import AUTO, Method, Option, Recovery, RecoveryInputs
from ldprecover.recovery.methods.ldprecover import subtract
from ldprecover.reports.sample import Sample
from ldprecover.types import BoolArray, FloatArray, Int64Array

_MAX_STEPS = 100


def two_means(points: FloatArray) -> BoolArray:
    """Return which of the points (rows) are in the second of two clusters (Lloyd's algorithm).

    It starts from the two points farthest apart, so the result is deterministic; point 0 is in the
    first cluster.
    """
    centred = points - points.mean(axis=0)
    squares = (centred**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * centred @ centred.T
    first, second = np.unravel_index(int(distances.argmax()), distances.shape)
    centres = centred[[first, second]]
    labels = np.zeros(len(points), np.bool_)
    for _ in range(_MAX_STEPS):
        # |x - a|^2 - |x - b|^2 > 0
        nearer = (
            2 * centred @ (centres[1] - centres[0])
            + (centres[0] ** 2).sum()
            - (centres[1] ** 2).sum()
        ) > 0
        if (nearer == labels).all() or nearer.all() or not nearer.any():
            break
        labels = nearer
        centres = np.stack([centred[~labels].mean(axis=0), centred[labels].mean(axis=0)])
    return labels != labels[0]


def _clusters(inputs: RecoveryInputs) -> tuple[FloatArray, FloatArray, str]:
    """Return the mean estimates of the larger and the smaller cluster of random subsets, and a note
    on them (Li et al., USENIX Security 2023).
    """
    oracle, source, options = inputs.oracle, inputs.reports, inputs.request.options
    assert source is not None  # the contract asks for them
    subsets, rate, name = int(options["subsets"]), float(options["rate"]), inputs.request.method
    sums = source.total(
        partial(_subset_counts, subsets=subsets, rate=rate, seed=int(options["seed"]))
    )
    counts, sizes = sums[:, :-1], sums[:, -1]
    n = source.n
    if not sizes.all():
        raise ParameterError(
            f"{name}: too few reports, {n}, for {subsets} random subsets at rate {rate:g}: one "
            "holds none"
        )
    estimates = oracle.estimate(counts / sizes[:, None], 1)
    second = two_means(estimates)
    if not second.any():
        reason = (
            "at rate 1 each holds all reports" if rate == 1 else f"there are too few reports, {n}"
        )
        raise ParameterError(
            f"{name}: the estimates of all {subsets} random subsets are the same: {reason}"
        )
    if second.sum() * 2 > subsets:
        second = ~second
    note = (
        f"Of {subsets} random subsets {(~second).sum()} are in the larger cluster, taken as "
        "genuine. Every random subset holds malicious reports in the same proportion but for "
        "chance: what the clusters tell apart is mostly the noise of sampling."
    )
    return estimates[~second].mean(axis=0), estimates[second].mean(axis=0), note


def _subset_counts(sample: Sample, *, subsets: int, rate: float, seed: int) -> Int64Array:
    """Return the support counts of each subset, with its number of reports in the last column.

    Report i is in subset s if the i-th number of the generator [seed, s] is below the rate, in
    whatever block the report is. Of a histogram the generator draws the number of equal reports in
    subset s from the binomial law, report by report in ascending order.
    """
    # A double takes one step.
    generators = [np.random.PCG64([seed, s]).advance(sample.first) for s in range(subsets)]
    chosen = np.array([sample.draw(rate, np.random.Generator(each)) for each in generators])
    if sample.multiplicities is not None:
        tallies = [sample.split(numbers)[0].tally() for numbers in chosen]
        return np.array([np.append(each.counts(sample.oracle), each.n) for each in tallies])
    return np.column_stack([sample.subset_counts(chosen), np.count_nonzero(chosen, axis=1)])


def _k_means(inputs: RecoveryInputs) -> Recovery:
    """Return the mean estimate of the larger cluster, projected."""
    larger, _, note = _clusters(inputs)
    return inputs.recovery(project_simplex(larger), [note], genuine=larger)


def _ldprecover_km(inputs: RecoveryInputs) -> Recovery:
    """Return LDPRecover with the smaller cluster's estimate as f~_Y (paper, VII-B)."""
    if inputs.request.eta == AUTO:
        raise ParameterError(
            "ldprecover-km needs eta as a number: its malicious frequencies do not follow a model "
            "with a known sum"
        )
    _, smaller, note = _clusters(inputs)
    step = "The smaller cluster's estimate is subtracted as the malicious frequencies."
    return subtract(inputs, float(inputs.request.eta), smaller, (), [f"{note} {step}"])


METHODS = tuple(
    Method(
        name=name,
        summary=summary,
        uses=uses,
        recover=recover,
        needs={"reports"},
        cost="O(subsets * nd) bits and O(nd) hashes, one pass over the reports; memory O(subsets * "
        "d)",
        options=(
            Option(
                "subsets", default=30, low=2, high=200, meaning="G, the number of random subsets"
            ),
            Option(
                "rate",
                default=0.5,
                low=0.001,
                high=1.0,
                meaning="xi, the probability with which a subset holds each report",
            ),
            Option(
                "seed",
                default=0,
                low=0,
                high=2**32 - 1,
                meaning="Of the generator that draws the subsets",
            ),
        ),
    )
    for name, summary, uses, recover in (
        (
            "k-means",
            "Mean estimate of the larger of two clusters of random subsets, projected (Li et al.)",
            {"reports"},
            _k_means,
        ),
        (
            "ldprecover-km",
            (
                "LDPRecover-KM: the smaller cluster's estimate as the malicious frequencies "
                "(paper, VII-B)"
            ),
            {"eta", "reports"},
            _ldprecover_km,
        ),
    )
)
