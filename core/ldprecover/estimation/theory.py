"""The paper's theorems on the estimates: means, variances, and distance from the normal law.

Every estimate is an average of independent terms Phi(v) = (1[v in S(z)] - q)/(p - q), one for each
report z (paper, III-C), and a term takes only two values. So each law below follows from the
probabilities with which reports support v.

The error is a Berry-Esseen bound: the greatest distance between the true cdf and the normal one.
The paper's Theorems 4 and 5 print it with moments of the average, sigma_y^2 = Var[Phi]/m and g_y =
E|f~_Y - mu_y|^3, beside the rate 1/sqrt(m). The inequality behind them takes moments of one report
with that rate, and so do these functions:

- identically distributed reports: 0.33554 (rho/sigma^3 + 0.415)/sqrt(n), with sigma^2 = Var[Phi]
  and rho = E|Phi - E Phi|^3 (I. Shevtsova, On the absolute constants in the Berry-Esseen type
  inequalities for identically distributed summands, 2011, arXiv:1111.6554);
- independent reports of different laws: 0.56 sum rho_i / (sum sigma_i^2)^(3/2) (I. Shevtsova, An
  improvement of convergence rate estimates in the Lyapunov theorem, Doklady Mathematics 2010).

A bound of 1 or more has no meaning. With a bound near 0 the normal law may be used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ldprecover._checks import finite_vector, is_integer
from ldprecover.errors import ParameterError
from ldprecover.protocols import FrequencyOracle
from ldprecover.types import FloatArray

# Constants of Shevtsova's two inequalities, in the docstring above.
_IDENTICAL, _SHIFT = 0.33554, 0.415
_DIFFERENT = 0.56


@dataclass(frozen=True, eq=False)
class NormalLaw:
    """The normal law that each item's estimate tends to, and the Berry-Esseen bound of its error.

    If the variance is 0 the estimate equals its mean, and the error is 0.
    """

    mean: FloatArray
    variance: FloatArray
    error: FloatArray


def malicious_law(oracle: FrequencyOracle, support: ArrayLike, m: int) -> NormalLaw:
    """Return the law of f~_Y(v) from m malicious reports (paper, Lemma 1 and Theorem 4).

    `support` is pi: pi(v) is the probability that a report supports v, so sum pi is the mean number
    of items that a report supports. Reports are independent, of one law. The mean is (pi - q)/(p -
    q), the variance pi(1 - pi)/(m(p - q)^2).
    """
    return _law(oracle, m, [(m, _probabilities(oracle, support, "support"))])


def genuine_law(
    oracle: FrequencyOracle,
    frequencies: ArrayLike,
    n: int,
    *,
    users: Literal["fixed", "sampled"] = "fixed",
) -> NormalLaw:
    """Return the law of f~_X~(v) from n genuine reports (paper, Lemma 2 and Theorem 5).

    With `users` "fixed" the n users hold items with the frequencies f_X, and only the perturbation
    is random. This is Lemma 2, with variance q(1-q)/(n(p-q)^2) + f(1-p-q)/(n(p-q)). Reports of
    users with different items differ in law, so the bound is the one for that case: the paper's
    constants are proved for reports of one law only.

    With "sampled" each user's item is drawn from f_X too. Then all reports have one law and support
    v with probability q + f(p-q). The variance is greater by f(1-f)/n, and the paper's constants
    hold.
    """
    f = _probabilities(oracle, frequencies, "frequencies")
    return _law(oracle, n, _genuine(oracle, f, n, users))


def poisoned_law(
    oracle: FrequencyOracle,
    frequencies: ArrayLike,
    support: ArrayLike,
    n: int,
    m: int,
    *,
    users: Literal["fixed", "sampled"] = "fixed",
) -> NormalLaw:
    """Return the law of f~_Z(v) from n genuine and m malicious reports (paper, Theorem 1).

    With eta = m/n, mean mu_x/(1+eta) + eta mu_y/(1+eta) and variance
    sigma_x^2/(1+eta)^2 + eta^2 sigma_y^2/(1+eta)^2. `users` as for `genuine_law`, `support` as for
    `malicious_law`. The paper bounds no error here; this is the one for reports of different laws.
    """
    f = _probabilities(oracle, frequencies, "frequencies")
    pi = _probabilities(oracle, support, "support")
    _check_number(m)
    return _law(oracle, n + m, [*_genuine(oracle, f, n, users), (m, pi)])


@dataclass(frozen=True)
class WorstChange:
    """How far an attack can move the expected sum of some estimates: up by `rise`, down by `fall`.

    `projected_rise` and `projected_fall` are the same for methods whose result is a distribution.
    """

    rise: float
    fall: float
    projected_rise: float
    projected_fall: float


def worst_change(
    oracle: FrequencyOracle, beta: float, items: int, share: float | None = None
) -> WorstChange:
    """Return how far a share beta of malicious reports can move the sum over `items` of d items.

    A bin, a range or the first k are such sums. Genuine users hold a `share` of these items; None
    allows any share. Let f be their share, r the number of items, and t the number of them that a
    report supports. The expected sum becomes (1 - beta) f + beta (t - rq)/(p - q) (paper, Equation
    1 and Lemma 1). The extremes are the most and the fewest of the items that any report supports:
    r and 0 where sizes are free. Under OLH these are bounds, since such a report takes a search for
    its seed. Noise comes on top.

    Raises ParameterError.
    """
    d, p, q = oracle.domain_size, oracle.p, oracle.q
    if not 0 <= beta <= 1:
        raise ParameterError(f"beta must be from 0 to 1, not {beta}")
    if not is_integer(items, 1, d):
        raise ParameterError(f"items must be an integer from 1 to {d}, not {items!r:.40}")
    if share is not None and not 0 <= share <= 1:
        raise ParameterError(f"share must be from 0 to 1, not {share}")
    size = oracle.fixed_size
    upper = items if size is None else min(items, size)
    lower = 0 if size is None else max(0, size - (d - items))
    lowest, highest = (0.0, 1.0) if share is None else (share, share)
    rise = beta * ((upper - items * q) / (p - q) - lowest)
    fall = beta * (highest - (lower - items * q) / (p - q))
    # A distribution's sum stays within 0 and 1.
    return WorstChange(rise, fall, min(rise, 1 - lowest), min(fall, highest))


def _genuine(
    oracle: FrequencyOracle, f: FloatArray, n: int, users: str
) -> list[tuple[FloatArray | int, FloatArray]]:
    _check_number(n)
    d, p, q = oracle.domain_size, oracle.p, oracle.q
    if users == "fixed":
        return [(n * f, np.full(d, p)), (n * (1 - f), np.full(d, q))]
    if users == "sampled":
        return [(n, q + f * (p - q))]
    raise ParameterError(f"users must be fixed or sampled, not {users!r}")


def _law(
    oracle: FrequencyOracle, total: int, groups: list[tuple[FloatArray | int, FloatArray]]
) -> NormalLaw:
    """Return the law of the average over groups of (number of reports, P(a report supports v))."""
    _check_number(total)
    gap = oracle.p - oracle.q
    mean = sum(count * (pi - oracle.q) for count, pi in groups) / (total * gap)
    # A report's term is Bernoulli(pi), shifted and divided by p - q: its second and third absolute
    # central moments are pi(1-pi) and pi(1-pi)(pi^2 + (1-pi)^2) over powers of p - q, which cancel
    # in the bounds.
    second = sum(count * pi * (1 - pi) for count, pi in groups)
    third = sum(count * pi * (1 - pi) * (pi**2 + (1 - pi) ** 2) for count, pi in groups)
    random = second > 0
    scale = np.where(random, second, 1.0)
    if len(groups) == 1:
        # rho/sigma^3 of one report is (third/n) / (second/n)^(3/2).
        error = _IDENTICAL * (third / scale**1.5 * np.sqrt(total) + _SHIFT) / np.sqrt(total)
    else:
        error = _DIFFERENT * third / scale**1.5
    return NormalLaw(
        np.asarray(mean), np.asarray(second / (total * gap) ** 2), np.where(random, error, 0.0)
    )


def _probabilities(oracle: FrequencyOracle, values: ArrayLike, name: str) -> FloatArray:
    vector = finite_vector(values, name)
    if vector.size != oracle.domain_size:
        raise ParameterError(f"{name} must be of the {oracle.domain_size} items, not {vector.size}")
    if not ((vector >= 0) & (vector <= 1)).all():
        raise ParameterError(f"every entry of {name} must be from 0 to 1")
    return vector


def _check_number(n: int) -> None:
    if not is_integer(n, 1):
        raise ParameterError("the number of reports must be an integer of at least 1")
