"""What the options of an attack mean in numbers: which targets, how many malicious users."""

from typing import Literal

from ldprecover_cli.failures import UsageError

__all__ = ["draw_targets", "malicious_users", "search_budget"]

_STREAM = 3  # of the seed; a population and a campaign of the same seed draw from its streams 0 to 2


def draw_targets(d: int, r: int, seed: int) -> tuple[int, ...]:
    """Return r of d items, drawn uniformly with the seed, in order. Raises UsageError unless 1 <= r < d."""
    import numpy as np

    if not 1 <= r < d:
        raise UsageError(f"the number of targets must be from 1 to {d - 1}, as there are {d} items, not {r}")
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM,)))
    return tuple(sorted(rng.choice(d, size=r, replace=False).tolist()))


def malicious_users(n: int, beta: float) -> int:
    """Return m = n beta/(1 - beta), rounded, so that beta = m/(n + m). Raises UsageError unless 0 <= beta <= 0.9."""
    if not 0 <= beta <= 0.9:
        raise UsageError(f"--beta must be from 0 to 0.9, not {beta:g}")
    return round(n * beta / (1 - beta))


def search_budget(text: str | None) -> int | Literal["exhaustive"] | None:
    """Return a number of seeds, or "exhaustive". Raises UsageError for anything else."""
    if text is None or text == "exhaustive":
        return text  # type: ignore[return-value]
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"--search is a number of seeds, or exhaustive, not {text!r}") from None
