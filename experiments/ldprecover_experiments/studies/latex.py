"""Means and standard errors in LaTeX."""

from collections.abc import Sequence
from math import floor, isfinite, log10, nan
from statistics import median_low

Mean = tuple[float | None, float | None]
"""A mean, NaN if it is refused and None without one, and its standard error."""


def power_of(means: Sequence[Sequence[Mean]]) -> int:
    """Return the power of ten in whose units half of the means are 1 or more."""
    sizes = [abs(mean) for row in means for mean, _ in row if mean and isfinite(mean)]
    return floor(log10(median_low(sizes))) if sizes else 0


def latex_means(row: Sequence[Mean], power: int, is_ranked: Sequence[bool]) -> list[str]:
    """Return a row of means ± standard errors in units of a power of ten.

    Bold are the ranked means that are nearest to 0, within the standard error of the nearest one.
    """
    sizes = [nan if mean is None else abs(mean) for mean, _ in row]
    ranked = [
        (size, error or 0.0)
        for size, (_, error), is_one in zip(sizes, row, is_ranked, strict=True)
        if is_one and isfinite(size)
    ]
    limit = sum(min(ranked, default=(-1.0, 0.0)))
    texts = [_latex(mean, power) for mean in row]
    return [
        rf"$\mathbf{{{text.strip('$')}}}$" if is_one and size <= limit else text
        for text, size, is_one in zip(texts, sizes, is_ranked, strict=True)
    ]


def _latex(number: Mean, power: int) -> str:
    """Return a mean with two significant digits of its error; without one, of itself, or more."""
    mean, error = number
    if mean is None or not isfinite(mean):
        return "--" if mean is None else "refused"
    smallest = error or abs(mean) or 1.0
    decimals = max(1 - floor(log10(smallest)) + power, 0 if error else 2)
    decimals = decimals if error else min(decimals, 4)
    text = f"{mean / 10**power:.{decimals}f}"
    return f"${text}$" if error is None else rf"${text} \pm {error / 10**power:.{decimals}f}$"
