"""Post-processing of estimates: vectors made consistent with being frequencies, and nothing about
the attack.

From Wang et al., Locally differentially private frequency estimation with consistency (NDSS 2020),
but for Normalization (Cao et al., USENIX Security 2021) and RSN (Li et al., CCS 2025).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.contract import Method, Option, Recovery, RecoveryInputs
from ldprecover.recovery.simplex import project_simplex
from ldprecover.types import FloatArray


@dataclass(frozen=True, eq=False)
class _Estimates:
    """What a post-processing works on: estimates, their standard error where the true frequency is
    0, and options.

    `noise` is sigma_0 = sqrt(q(1-q)/n)/(p-q), NaN where n is not known.
    """

    values: FloatArray
    noise: float
    options: Mapping[str, float]


def _norm(x: _Estimates) -> FloatArray:
    """Add (1 - sum)/d to every item."""
    with np.errstate(over="ignore", invalid="ignore"):
        shifted: FloatArray = x.values + (1 - x.values.sum()) / x.values.size
    if not np.isfinite(shifted).all():
        raise ParameterError("the estimates are too large: they have no sum")
    return shifted


def _norm_mul(x: _Estimates) -> FloatArray:
    """Set what is negative to zero, then scale to sum one."""
    clipped = np.maximum(x.values, 0)
    top = clipped.max()
    if not top > 0:
        raise ParameterError(
            "norm-mul: no estimate is positive, so there is nothing to scale to sum one"
        )
    clipped /= top  # the sum of huge numbers stays finite
    scaled: FloatArray = clipped / clipped.sum()
    return scaled


def _norm_cut(x: _Estimates) -> FloatArray:
    """Keep the largest estimates until their sum reaches 1, set the others to zero.

    Where the positive ones sum to less than 1 all of them stay. Equal estimates stay or go
    together.
    """
    ranked = np.sort(np.maximum(x.values, 0))[::-1]
    with np.errstate(over="ignore"):
        reached = np.flatnonzero(np.cumsum(ranked) >= 1)
    least = ranked[reached[0]] if reached.size else 0.0
    return np.where((x.values > 0) & (x.values >= least), x.values, 0.0)


def _base_cut(x: _Estimates) -> FloatArray:
    """Set to zero what is below T = Phi^-1(1 - alpha/d) sigma_0: what noise alone would reach alpha
    times.

    T is not below 0: where noise alone would reach it half the times, it takes the negative ones
    alone.
    """
    share = min(x.options["alpha"] / x.values.size, 0.5)
    threshold = NormalDist().inv_cdf(1 - share) * x.noise
    return np.where(x.values >= threshold, x.values, 0.0)


def _normalization(x: _Estimates) -> FloatArray:
    """Subtract the least estimate from all, then scale to sum one; equal estimates give the uniform
    distribution.
    """
    with np.errstate(over="ignore"):
        raised = x.values - x.values.min()
    top = raised.max()
    if not math.isfinite(top):
        raise ParameterError("normalization: the estimates are too far apart to be subtracted")
    if top == 0:
        return np.full(x.values.size, 1 / x.values.size)
    raised /= top
    scaled: FloatArray = raised / raised.sum()
    return scaled


def _rsn(x: _Estimates) -> FloatArray:
    """Shift to sum one; take what zeroing the negative adds from those in (0, 3 sigma_0) alone;
    scale to sum one.

    Where none is left in (0, 3 sigma_0) the rest is done by scaling.
    """
    values = _norm(x)
    small = 3 * x.noise
    while (negative := values < 0).any():
        excess = -values[negative].sum()
        values[negative] = 0
        segment = (values > 0) & (values < small)
        if not segment.any():
            break
        values[segment] -= excess / np.count_nonzero(segment)
    return _norm_mul(_Estimates(values, x.noise, x.options))


@dataclass(frozen=True)
class _PostProcessing:
    """A row of the table. A NOTE says what it does to the attack: nothing."""

    name: str
    summary: str
    process: Callable[[_Estimates], FloatArray]
    gives: Literal["distribution", "sum-one", "frequencies"]
    note: str
    needs_n: bool = False
    options: tuple[Option, ...] = ()

    def method(self) -> Method:
        """Return the row as a Method."""
        return Method(
            name=self.name,
            summary=self.summary,
            uses=frozenset({"n"} if self.needs_n else ()),
            recover=self.recover,
            needs=frozenset({"counts", "n"} if self.needs_n else {"counts"}),
            gives=self.gives,
            options=self.options,
        )

    def recover(self, inputs: RecoveryInputs) -> Recovery:
        """Return the processed estimates."""
        poisoned, oracle = inputs.poisoned, inputs.oracle
        recovered = self.process(
            _Estimates(poisoned, _noise(oracle, inputs.n), inputs.request.options)
        )
        if not np.isfinite(recovered).all():
            raise ParameterError(
                f"{self.name}: the estimates are too large, the result would not be finite"
            )
        return Recovery(
            method=self.name,
            eta=0.0,
            targets=(),
            malicious_sum=oracle.malicious_sum,
            poisoned=poisoned,
            malicious=np.zeros_like(poisoned),
            genuine=poisoned.copy(),
            recovered=recovered,
            notes=(f"{self.note}: nothing is assumed of the attack.",),
        )


def _noise(oracle: FrequencyOracle, n: int | None) -> float:
    return math.nan if n is None else math.sqrt(float(oracle.variance(0.0, n)))


_TABLE = (
    _PostProcessing(
        "norm-sub",
        "Projection of the poisoned frequencies on the probability simplex",
        lambda x: project_simplex(x.values),
        "distribution",
        "The nearest probability distribution to the poisoned frequencies",
    ),
    _PostProcessing(
        "norm",
        "One constant added to all frequencies, so that they sum to one",
        _norm,
        "sum-one",
        "Shifted to sum to one, negative frequencies left",
    ),
    _PostProcessing(
        "norm-mul",
        "Negative frequencies to zero, the others scaled to sum to one",
        _norm_mul,
        "distribution",
        "The positive frequencies in proportion",
    ),
    _PostProcessing(
        "norm-cut",
        "The largest frequencies until their sum reaches one, the others zero",
        _norm_cut,
        "frequencies",
        "The largest frequencies as they are, not scaled: they need not sum to one",
    ),
    _PostProcessing(
        "base-cut",
        "Frequencies that noise alone could explain to zero, the others as they are",
        _base_cut,
        "frequencies",
        "What rises above the noise as it is, not scaled: it need not sum to one",
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
    _PostProcessing(
        "normalization",
        "The least frequency subtracted from all, scaled to sum to one (Cao et al.)",
        _normalization,
        "distribution",
        "The poisoned frequencies above the least one, in proportion",
    ),
    _PostProcessing(
        "rsn",
        "Robust segment normalization: the shift to sum one is paid by small frequencies alone "
        "(Li et al.)",
        _rsn,
        "distribution",
        "Negative frequencies zeroed at the cost of those below three standard errors",
        needs_n=True,
    ),
)

METHODS: tuple[Method, ...] = tuple(row.method() for row in _TABLE)
