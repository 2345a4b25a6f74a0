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

from typing import Literal, NamedTuple

import numpy as np

from ldprecover import FrequencyOracle

Groups = list[tuple[np.ndarray | int, np.ndarray]]
"""Numbers of reports, and the probability with which each of them supports each item."""

# Constants of Shevtsova's two inequalities, in the docstring above.
_IDENTICAL, _SHIFT = 0.33554, 0.415
_DIFFERENT = 0.56


class NormalLaw(NamedTuple):
    """The normal law that each item's estimate tends to, and the Berry-Esseen bound of its error.

    If the variance is 0 the estimate equals its mean, and the error is 0.
    """

    mean: np.ndarray
    variance: np.ndarray
    error: np.ndarray


def malicious(support: np.ndarray, m: int) -> Groups:
    """Return the group of m malicious reports (paper, Lemma 1 and Theorem 4), of one law."""
    return [(m, support)]


def genuine(
    oracle: FrequencyOracle, f: np.ndarray, n: int, users: Literal["fixed", "sampled"]
) -> Groups:
    """Return the groups of n genuine reports (paper, Lemma 2 and Theorem 5).

    With `users` "fixed" the n users hold items with the frequencies f_X, and only the perturbation
    is random. Reports of users with different items differ in law, so the bound is the one for that
    case: the paper's constants are proved for reports of one law only. With "sampled" each user's
    item is drawn from f_X too. Then all reports have one law, and the paper's constants hold.
    """
    p, q = oracle.p, oracle.q
    if users == "sampled":
        return [(n, q + f * (p - q))]
    return [(n * f, np.full(f.size, p)), (n * (1 - f), np.full(f.size, q))]


def normal_law(oracle: FrequencyOracle, total: int, groups: Groups) -> NormalLaw:
    """Return the law of the average of all reports; of genuine and malicious ones Theorem 1's."""
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
