"""Maximum likelihood on the simplex: decoding, and nothing about the attack."""

import numpy as np

from ldprecover._types import FloatArray, UInt8Array
from ldprecover.errors import ParameterError
from ldprecover.protocols import GRR, OLH, OUE, FrequencyOracle
from ldprecover.recovery.base import Knowledge, Method, Option, Recovery
from ldprecover.recovery.simplex import project_simplex

__all__ = ["METHODS", "counts_likelihood", "expectation_maximisation"]

_HALVINGS = 200  # of an interval of doubles
_MAX_BITS = 1 << 32  # support bits held, half a gigabyte


def counts_likelihood(oracle: FrequencyOracle, poisoned: FloatArray) -> FloatArray:
    """Return the distribution f under which the counts are most likely, given s(v) = q + (p-q) f(v).

    GRR: the counts are one multinomial draw, f maximises sum_v c(v) log s(v) exactly. Other protocols: the
    counts of two items are taken as independent, f maximises sum_v c(v) log s(v) + (1 - c(v)) log(1 - s(v)),
    where c(v) is the share of reports that support v. Either is a sum of concave functions of one item each,
    so one multiplier makes f sum to one: found by halving, O(d) a step.
    """
    p, q = oracle.p, oracle.q
    share = np.clip(q + (p - q) * poisoned, 0.0, 1.0)
    one_draw = isinstance(oracle, GRR)

    def at(multiplier: float) -> FloatArray:
        if one_draw:  # c/s = multiplier
            s = share / multiplier
        else:  # c/s - (1-c)/(1-s) = multiplier is m s^2 - (1+m) s + c = 0; its root in [0, 1], free of cancellation
            b = 1 + multiplier
            root = np.sqrt(np.maximum(b * b - 4 * multiplier * share, 0.0))
            s = 2 * share / (b + root) if b > 0 else (b - root) / (2 * multiplier)
        return np.clip((s - q) / (p - q), 0.0, 1.0)

    low, high = (0.0, 1.0) if one_draw else (-1.0, 1.0)
    if one_draw:
        if not share.any():
            raise ParameterError("mle: no report supports any item")
        low = np.finfo(np.float64).tiny
        while at(high).sum() > 1:
            high *= 2
    else:
        while at(high).sum() > 1:
            high *= 2
        while at(low).sum() < 1 and low > -1e300:
            low *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle).sum() > 1 else (low, middle)
    found = at(high)
    # What halving leaves is shared out among the positive items: it is of the size of rounding.
    return project_simplex(found)


def expectation_maximisation(
    oracle: FrequencyOracle, blocks: list[UInt8Array], start: FloatArray, *, iterations: int, tolerance: float
) -> tuple[FloatArray, int]:
    """Return the distribution f that makes the reports most likely, and the steps it took.

    `blocks` hold the support bits of the reports, `start` is a distribution without zeros. A report is
    e^eps times as likely under an item it supports as under one it does not, so that a step is
    f(v) <- f(v) mean_z (1 + (e^eps - 1) 1[v in S(z)])/(1 + (e^eps - 1) f(S(z))).
    It stops when no item moves by more than `tolerance`.
    """
    d, lift = oracle.domain_size, float(np.expm1(oracle.epsilon))
    n = sum(len(block) for block in blocks)
    f = start
    for step in range(1, iterations + 1):
        outside, inside = 0.0, np.zeros(d)
        for block in blocks:
            bits = np.unpackbits(block, axis=1, count=d).astype(np.float32)
            weights = 1 / (1 + lift * (bits @ f.astype(np.float32)).astype(np.float64))
            outside += weights.sum()
            inside += weights.astype(np.float32) @ bits
        moved = f * (outside + lift * inside) / n
        moved /= moved.sum()
        change = np.abs(moved - f).max()
        f = moved
        if change <= tolerance:
            return f, step
    return f, iterations


def _recovery(name: str, knowledge: Knowledge, recovered: FloatArray, note: str) -> Recovery:
    return Recovery(
        method=name,
        eta=0.0,
        targets=(),
        malicious_sum=knowledge.oracle.malicious_sum,
        poisoned=knowledge.poisoned,
        malicious=np.zeros_like(recovered),
        genuine=knowledge.poisoned.copy(),
        recovered=recovered,
        notes=(f"{note} Every report is taken as honest.",),
    )


def _mle(knowledge: Knowledge) -> Recovery:
    exact = isinstance(knowledge.oracle, GRR)
    note = (
        "The distribution under which the counts are most likely."
        if exact
        else "The distribution under which the counts are most likely, those of different items taken as independent."
    )
    return _recovery("mle", knowledge, counts_likelihood(knowledge.oracle, knowledge.poisoned), note)


def _em(knowledge: Knowledge) -> Recovery:
    oracle, source = knowledge.oracle, knowledge.reports
    assert source is not None  # the contract asks for them
    row_bytes = -(-oracle.domain_size // 8)
    blocks, held = [], 0
    for block in source.blocks():
        blocks.append(np.packbits(oracle.supports(block), axis=1))
        held += len(block) * row_bytes * 8
        if held > _MAX_BITS:
            raise ParameterError(f"em holds {oracle.domain_size} bits a report: there are too many reports for it")
    if not held:
        raise ParameterError("em: there are no reports")
    options = knowledge.options
    # Nearer than the uniform distribution, from which it takes thousands of steps.
    start = 0.9 * counts_likelihood(oracle, knowledge.poisoned) + 0.1 / oracle.domain_size
    f, steps = expectation_maximisation(
        oracle, blocks, start, iterations=int(options["iterations"]), tolerance=options["tolerance"]
    )
    return _recovery("em", knowledge, f, f"The distribution that makes the reports most likely, after {steps} steps.")


def _unfit_em(oracle: FrequencyOracle) -> str | None:
    if isinstance(oracle, GRR):
        return "the counts of grr reports say all that the reports do; mle is their exact likelihood"
    return _unfit(oracle)


def _unfit(oracle: FrequencyOracle) -> str | None:
    return None if isinstance(oracle, GRR | OUE | OLH) else f"the likelihood of {oracle.protocol} reports is not known"


METHODS = (
    Method(
        name="mle",
        summary="The distribution under which the counts are most likely",
        uses=frozenset(),
        recover=_mle,
        cost="O(d), 200 times",
        unfit=_unfit,
    ),
    Method(
        name="em",
        summary="The distribution that makes the reports most likely, by expectation maximisation",
        uses=frozenset({"reports"}),
        recover=_em,
        needs=frozenset({"reports"}),
        cost="O(iterations * nd); d bits a report are held",
        options=(
            Option("iterations", 200, 1, 1_000, "Steps at most"),
            Option("tolerance", 1e-7, 0.0, 1.0, "It stops when no frequency moves by more"),
        ),
        unfit=_unfit_em,
    ),
)
