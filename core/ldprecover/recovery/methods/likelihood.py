"""Maximum likelihood on the simplex, of counts (`mle`) or of reports (`em`), without an attack."""

from functools import partial

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.estimation.bisection import bisect
from ldprecover.estimation.simplex import project_simplex
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.contract import Method, Option, Recovery, RecoveryInputs
from ldprecover.reports.sample import Sample
from ldprecover.reports.source import ReportSource
from ldprecover.types import FloatArray, UInt8Array

_HALVINGS = 200  # of an interval of doubles
_HONEST = " Every report is taken as honest."
_MAX_BITS = 1 << 32  # support bits held, half a gigabyte


def counts_likelihood(oracle: FrequencyOracle, poisoned: FloatArray) -> FloatArray:
    """Return the distribution f that maximises the likelihood of the counts; s = q + (p-q) f.

    GRR: the counts are one multinomial draw, f maximises sum_v c(v) log s(v) exactly. Other
    protocols: the counts of two items are taken as independent, f maximises sum_v c(v) log
    s(v) + (1 - c(v)) log(1 - s(v)), where c(v) is the share of reports that support v. Either is a
    sum of concave functions of one item each, so one multiplier makes f sum to one: found by
    halving, O(d) a step.
    """
    p, q = oracle.p, oracle.q
    share = np.clip(q + (p - q) * poisoned, 0.0, 1.0)
    one_draw = oracle.traits.one_item

    def at(multiplier: float) -> FloatArray:
        if one_draw:  # c/s = multiplier
            s = share / multiplier
        else:
            # c/s - (1-c)/(1-s) = multiplier is m s^2 - (1+m) s + c = 0; this is its root in [0, 1],
            # free of cancellation.
            b = 1 + multiplier
            root = np.sqrt(np.maximum(b * b - 4 * multiplier * share, 0.0))
            s = 2 * share / (b + root) if b > 0 else (b - root) / (2 * multiplier)
        return np.clip((s - q) / (p - q), 0.0, 1.0)

    if one_draw and not share.any():
        raise ParameterError("mle: no report supports any item")
    low, high = np.finfo(np.float64).tiny if one_draw else -1.0, 1.0
    while at(high).sum() > 1:
        high *= 2
    while not one_draw and at(low).sum() < 1 and low > -1e300:
        low *= 2
    multiplier = bisect(lambda each: not at(each).sum() > 1, high, low, _HALVINGS)
    # The remaining error of the bisection, of the size of rounding, goes to the positive items.
    return project_simplex(at(multiplier))


def expectation_maximisation(
    source: ReportSource, start: FloatArray, *, iterations: int, tolerance: float
) -> tuple[FloatArray, int]:
    """Return the distribution f that makes the reports most likely, and the steps it took.

    The steps are `iterations + 1` if the last one still moved an item by more than `tolerance`.
    `start` is a distribution without zeros. A report is e^eps times as likely under an item it
    supports as under one it does not, so that a step is f(v) <- f(v) mean_z (1 + (e^eps - 1) 1[v in
    S(z)])/(1 + (e^eps - 1) f(S(z))). It stops when no item moves by more than `tolerance`. The only
    pass over the reports packs their supports, d bits each, and these are held; a histogram is
    measured again in each step.

    Raises ParameterError if there are no reports, or more than 2^32 bits to hold.
    """
    lift = _lift(source.oracle)
    packed = None if source.oracle.traits.histogram else source.total(_packed_supports)
    f = start
    for step in range(1, iterations + 1):
        if packed is None:
            sums = source.total(partial(_weight_sums_of_histogram, f=f))
        else:
            sums = np.sum([_weight_sums(source.oracle, bits, f) for bits in packed], axis=0)
        n = source.n
        if not n:
            raise ParameterError("em: there are no reports")
        moved = f * (sums[-1] + lift * sums[:-1]) / n
        moved /= moved.sum()
        change = np.abs(moved - f).max()
        f = moved
        if change <= tolerance:
            return f, step
    return f, iterations + 1


def _packed_supports(sample: Sample) -> list[UInt8Array]:
    """Return the support bits of the reports, eight items a byte.

    Raises ParameterError if all reports have too many bits to hold.
    """
    if (sample.first + len(sample)) * -(-sample.oracle.domain_size // 8) * 8 > _MAX_BITS:
        raise ParameterError(
            f"em holds {sample.oracle.domain_size} bits a report: there are too many reports for it"
        )
    return [np.packbits(sample.supports(), axis=1)]


def _weight_sums_of_histogram(sample: Sample, *, f: FloatArray) -> FloatArray:
    """Return the summed weights of the reports that support each item; the last entry is of all.

    A report's weight is 1/(1 + (e^eps - 1) f(S(z))).
    """
    # Double precision: libraries add in different orders, which shows at 1e-8 in single.
    mass = sample.oracle.supported_mass(sample.reports, f)
    weights = 1 / (1 + _lift(sample.oracle) * mass)
    return np.append(*sample.support_sums(weights))


def _weight_sums(oracle: FrequencyOracle, packed: UInt8Array, f: FloatArray) -> FloatArray:
    """Return the same from packed support bits, in single precision."""
    bits = np.unpackbits(packed, axis=1, count=oracle.domain_size).astype(np.float32)
    # OpenBLAS computes beyond short rows and discards the result, whose flag is no error.
    with np.errstate(invalid="ignore"):
        masses = (bits @ f.astype(np.float32)).astype(np.float64)
    weights = 1 / (1 + _lift(oracle) * masses)
    return np.append(weights.astype(np.float32) @ bits, weights.sum())


def _mle(inputs: RecoveryInputs) -> Recovery:
    exact = inputs.oracle.traits.one_item
    note = (
        "The distribution under which the counts are most likely."
        if exact
        else "The distribution under which the counts are most likely, those of different items "
        "taken as independent."
    )
    return inputs.recovery(counts_likelihood(inputs.oracle, inputs.poisoned), [note + _HONEST])


def _em(inputs: RecoveryInputs) -> Recovery:
    oracle, source = inputs.oracle, inputs.reports
    assert source is not None  # the contract asks for them
    options = inputs.request.options
    # A start near the solution: from the uniform distribution it takes thousands of steps.
    start = 0.9 * counts_likelihood(oracle, inputs.poisoned) + 0.1 / oracle.domain_size
    f, steps = expectation_maximisation(
        source, start, iterations=int(options["iterations"]), tolerance=float(options["tolerance"])
    )
    note = f"The distribution that makes the reports most likely, after {steps} steps."
    if steps > int(options["iterations"]):
        note = (
            f"A distribution that makes the reports likely, not the most likely one: the limit of "
            f"{steps - 1} steps came first; give more with the option iterations."
        )
    return inputs.recovery(f, [note + _HONEST])


def _unfit_em(oracle: FrequencyOracle) -> str | None:
    if oracle.traits.one_item:
        return (
            f"the counts of {oracle.protocol} reports say all that the reports do; mle is their "
            "exact likelihood"
        )
    return (
        None
        if oracle.laws.likelihood_ratio is not None
        else f"the likelihood of {oracle.protocol} reports is not known"
    )


def _lift(oracle: FrequencyOracle) -> float:
    """Return e^eps - 1: a report's likelihood ratio of supported to other items, less one."""
    ratio = oracle.laws.likelihood_ratio
    assert ratio is not None  # else `_unfit_em` has said why not
    return ratio - 1


METHODS = (
    Method(
        name="mle",
        summary="The distribution under which the counts are most likely",
        uses=frozenset(),
        recover=_mle,
        cost="O(d), 200 times",
    ),
    Method(
        name="em",
        summary="The distribution that makes the reports most likely, by expectation maximisation",
        uses={"reports"},
        recover=_em,
        needs={"reports"},
        cost="O(iterations * nd), one pass over the reports; d bits a report are held, half a "
        "gigabyte at most. Of a histogram, one transform an iteration",
        options=(
            Option("iterations", default=200, low=1, high=1_000, meaning="Steps at most"),
            Option(
                "tolerance",
                default=1e-7,
                low=0.0,
                high=1.0,
                meaning="It stops when no frequency moves by more",
            ),
        ),
        unfit=_unfit_em,
    ),
)
