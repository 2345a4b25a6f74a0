"""Post-processing of estimates: vectors made consistent with being frequencies, and nothing about
the attack.

From Wang et al., Locally differentially private frequency estimation with consistency (NDSS 2020),
but for Normalization (Cao et al., USENIX Security 2021) and RSN (Li et al., CCS 2025).
"""

import math
from collections.abc import Callable, Mapping
from statistics import NormalDist

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.estimation.simplex import project_simplex
from ldprecover.recovery.contract import Method, Option, Recovery, RecoveryInputs
from ldprecover.types import FloatArray


def _norm(values: FloatArray) -> FloatArray:
    """Add (1 - sum)/d to every item."""
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = values + (1 - values.sum()) / values.size
    if not np.isfinite(shifted).all():
        raise ParameterError("the estimates are too large: they have no sum")
    return shifted


def _norm_mul(values: FloatArray) -> FloatArray:
    """Set what is negative to zero, then scale to sum one."""
    clipped = np.maximum(values, 0)
    top = clipped.max()
    if not top > 0:
        raise ParameterError(
            "norm: no estimate is positive, so there is nothing to scale to sum one"
        )
    clipped /= top  # the sum of huge numbers stays finite
    return clipped / clipped.sum()


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
    share = min(float(inputs.request.options["alpha"]) / values.size, 0.5)
    threshold = NormalDist().inv_cdf(1 - share) * _noise(inputs)
    return np.where(values >= threshold, values, 0.0)


def _normalization(values: FloatArray) -> FloatArray:
    """Subtract the least estimate from all, then scale to sum one; equal estimates give the uniform
    distribution.
    """
    with np.errstate(over="ignore"):
        raised = values - values.min()
    if not np.isfinite(raised).all():
        raise ParameterError("norm: the estimates are too far apart to be subtracted")
    return _norm_mul(raised) if raised.any() else np.full(values.size, 1 / values.size)


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
    if inputs.n is None:
        raise ParameterError(f"norm needs the number of reports for the variant {_variant(inputs)}")
    return math.sqrt(float(inputs.oracle.variance(0.0, inputs.n)))


_VARIANTS: Mapping[str, tuple[Callable[[RecoveryInputs], FloatArray], str]] = {
    "add": (
        lambda inputs: _norm(inputs.poisoned),
        "Shifted to sum to one, negative frequencies left",
    ),
    "mul": (lambda inputs: _norm_mul(inputs.poisoned), "The positive frequencies in proportion"),
    "cut": (
        lambda inputs: _norm_cut(inputs.poisoned),
        "The largest frequencies as they are, not scaled: they need not sum to one",
    ),
    "base-cut": (
        _base_cut,
        "What rises above the noise as it is, not scaled: it need not sum to one",
    ),
    "normalization": (
        lambda inputs: _normalization(inputs.poisoned),
        "The poisoned frequencies above the least one, in proportion",
    ),
    "rsn": (
        _rsn,
        "Negative frequencies zeroed at the cost of those below three standard errors",
    ),
}
"""The ways to make estimates consistent, each with its note."""


def _variant(inputs: RecoveryInputs) -> str:
    return str(inputs.request.options["variant"])


def _recover(inputs: RecoveryInputs) -> Recovery:
    """Return the estimates processed by the variant."""
    process, note = _VARIANTS[_variant(inputs)]
    recovered = process(inputs)
    if not np.isfinite(recovered).all():
        raise ParameterError("norm: the estimates are too large, the result would not be finite")
    return inputs.recovery(recovered, [note + _NOTHING])


def _project(inputs: RecoveryInputs) -> Recovery:
    """Return the projection of the estimates."""
    note = "The nearest probability distribution to the poisoned frequencies"
    return inputs.recovery(project_simplex(inputs.poisoned), [note + _NOTHING])


_NOTHING = ": nothing is assumed of the attack."

METHODS = (
    Method(
        name="norm-sub",
        summary="Projection of the poisoned frequencies on the probability simplex",
        uses=frozenset(),
        recover=_project,
    ),
    Method(
        name="norm",
        summary="Other ways to make frequencies consistent, by variant (Wang et al., Cao et al., "
        "Li et al.)",
        uses={"n"},
        recover=_recover,
        gives="frequencies",
        options=(
            Option(
                "variant",
                default="add",
                meaning="add: one constant to all. mul: the negative to zero, the others scaled. "
                "cut: the largest until their sum is one. base-cut: to zero what noise could "
                "explain. normalization: the least subtracted, then scaled. rsn: the small pay for "
                "the negative",
                choices=tuple(_VARIANTS),
            ),
            Option(
                "alpha",
                default=2.0,
                low=1e-9,
                high=100.0,
                meaning="base-cut: items of frequency 0 expected to stay, of d; d/2 at most",
            ),
        ),
    ),
)
