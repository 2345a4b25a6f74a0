"""The exact law of a search for hash seeds, computed another way than the package does."""

import math

import numpy as np


def best_hits(r: int, g: int, budget: int) -> tuple[float, float]:
    """Return mean and variance of the fullest bucket's items in the best of `budget` seeds.

    Under an ideal hash the items of a bucket, given how many fall in all g, are Poisson(r/g)
    variables conditioned on their sum r, so P(fullest <= k) is the r-th term of the g-fold
    convolution of a Poisson law cut at k, over the r-th term of Poisson(r).
    """
    poisson = np.array([math.exp(-r / g) * (r / g) ** j / math.factorial(j) for j in range(r + 1)])
    total = math.exp(-r) * r**r / math.factorial(r)
    at_most = np.zeros(r + 1)
    for k in range(1, r + 1):
        cut = np.where(np.arange(r + 1) <= k, poisson, 0.0)
        convolved = np.eye(1, r + 1)[0]
        for _ in range(g):
            convolved = np.convolve(convolved, cut)[: r + 1]
        at_most[k] = min(1.0, convolved[r] / total) ** budget
    mass = np.diff(at_most, prepend=0.0)
    hits = np.arange(r + 1)
    mean = float(mass @ hits)
    return mean, float(mass @ hits**2) - mean**2
