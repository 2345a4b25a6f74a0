"""Post-processing of estimates: vectors made consistent with being frequencies, and nothing about
the attack.

From Wang et al., Locally differentially private frequency estimation with consistency (NDSS 2020),
but for Normalization (Cao et al., USENIX Security 2021) and RSN (Li et al., CCS 2025).
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Literal

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.recovery.contract import Method, Option, Recovery, RecoveryInputs
from ldprecover.recovery.simplex import project_simplex
from ldprecover.types import FloatArray


def _norm(values: FloatArray) -> FloatArray:
    """Add (1 - sum)/d to every item."""
    with np.errstate(over="ignore", invalid="ignore"):
        shifted: FloatArray = values + (1 - values.sum()) / values.size
    if not np.isfinite(shifted).all():
        raise ParameterError("the estimates are too large: they have no sum")
    return shifted


def _norm_mul(values: FloatArray) -> FloatArray:
    """Set what is negative to zero, then scale to sum one."""
    clipped = np.maximum(values, 0)
    top = clipped.max()
    if not top > 0:
        raise ParameterError(
            "norm-mul: no estimate is positive, so there is nothing to scale to sum one"
        )
    clipped /= top  # the sum of huge numbers stays finite
    scaled: FloatArray = clipped / clipped.sum()
    return scaled


def _norm_cut(values: FloatArray) -> FloatArray:
    """Keep the largest estimates until their sum reaches 1, set the others to zero.

    Where the positive ones sum to less than 1 all of them stay. Equal estimates stay or go
    together.
    """
    ranked = np.sort(np.maximum(values, 0))[::-1]
    with np.errstate(over="ignore"):
        reached = np.flatnonzero(np.cumsum(ranked) >= 1)
    least = ranked[reached[0]] if reached.size else 0.0
    return np.where((values > 0) & (values >= least), values, 0.0)


def _base_cut(inputs: RecoveryInputs) -> FloatArray:
    """Set to zero what is below T = Phi^-1(1 - alpha/d) sigma_0: what noise alone would reach alpha
    times.

    T is not below 0: where noise alone would reach it half the times, it takes the negative ones
    alone.
    """
    values = inputs.poisoned
    share = min(inputs.request.options["alpha"] / values.size, 0.5)
    threshold = NormalDist().inv_cdf(1 - share) * _noise(inputs)
    return np.where(values >= threshold, values, 0.0)


def _normalization(values: FloatArray) -> FloatArray:
    """Subtract the least estimate from all, then scale to sum one; equal estimates give the uniform
    distribution.
    """
    with np.errstate(over="ignore"):
        raised = values - values.min()
    top = raised.max()
    if not math.isfinite(top):
        raise ParameterError("normalization: the estimates are too far apart to be subtracted")
    if top == 0:
        return np.full(values.size, 1 / values.size)
    raised /= top
    scaled: FloatArray = raised / raised.sum()
    return scaled


def _rsn(inputs: RecoveryInputs) -> FloatArray:
    """Shift to sum one; take what zeroing the negative adds from those in (0, 3 sigma_0) alone;
    scale to sum one.

    Where none is left in (0, 3 sigma_0) the rest is done by scaling.
    """
    values = _norm(inputs.poisoned)
    small = 3 * _noise(inputs)
    while (negative := values < 0).any():
        excess = -values[negative].sum()
        values[negative] = 0
        segment = (values > 0) & (values < small)
        if not segment.any():
            break
        values[segment] -= excess / np.count_nonzero(segment)
    return _norm_mul(values)


def _noise(inputs: RecoveryInputs) -> float:
    """Return sigma_0 = sqrt(q(1-q)/n)/(p-q), the standard error at frequency 0."""
    assert inputs.n is not None  # the contract requires it
    return math.sqrt(float(inputs.oracle.variance(0.0, inputs.n)))


def _method(
    name: str,
    summary: str,
    gives: Literal["distribution", "sum-one", "frequencies"],
    note: str,
    process: Callable[[RecoveryInputs], FloatArray],
    *,
    needs_n: bool = False,
    options: tuple[Option, ...] = (),
) -> Method:
    """Return the method whose result is `process` of its inputs."""

    def recover(inputs: RecoveryInputs) -> Recovery:
        """Return the processed estimates."""
        recovered = process(inputs)
        if not np.isfinite(recovered).all():
            raise ParameterError(
                f"{name}: the estimates are too large, the result would not be finite"
            )
        return inputs.recovery(recovered, [f"{note}: nothing is assumed of the attack."])

    n = frozenset({"n"} if needs_n else ())
    return Method(
        name=name,
        summary=summary,
        uses=n,
        recover=recover,
        needs=n | {"counts"},
        gives=gives,
        options=options,
    )


METHODS = (
    _method(
        "norm-sub",
        "Projection of the poisoned frequencies on the probability simplex",
        "distribution",
        "The nearest probability distribution to the poisoned frequencies",
        lambda inputs: project_simplex(inputs.poisoned),
    ),
    _method(
        "norm",
        "One constant added to all frequencies, so that they sum to one",
        "sum-one",
        "Shifted to sum to one, negative frequencies left",
        lambda inputs: _norm(inputs.poisoned),
    ),
    _method(
        "norm-mul",
        "Negative frequencies to zero, the others scaled to sum to one",
        "distribution",
        "The positive frequencies in proportion",
        lambda inputs: _norm_mul(inputs.poisoned),
    ),
    _method(
        "norm-cut",
        "The largest frequencies until their sum reaches one, the others zero",
        "frequencies",
        "The largest frequencies as they are, not scaled: they need not sum to one",
        lambda inputs: _norm_cut(inputs.poisoned),
    ),
    _method(
        "base-cut",
        "Frequencies that noise alone could explain to zero, the others as they are",
        "frequencies",
        "What rises above the noise as it is, not scaled: it need not sum to one",
        _base_cut,
        needs_n=True,
        options=(
            Option(
                "alpha",
                2.0,
                1e-9,
                100.0,
                "Items of frequency 0 that are expected to stay, of the d items; d/2 at most",
            ),
        ),
    ),
    _method(
        "normalization",
        "The least frequency subtracted from all, scaled to sum to one (Cao et al.)",
        "distribution",
        "The poisoned frequencies above the least one, in proportion",
        lambda inputs: _normalization(inputs.poisoned),
    ),
    _method(
        "rsn",
        "Robust segment normalization: the shift to sum one is paid by small frequencies alone "
        "(Li et al.)",
        "distribution",
        "Negative frequencies zeroed at the cost of those below three standard errors",
        _rsn,
        needs_n=True,
    ),
)
