"""Seeded generators."""

import numpy as np


def rng(seed: int = 2) -> np.random.Generator:
    return np.random.default_rng(seed)
