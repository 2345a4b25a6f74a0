"""Properties for as long as one likes: briefly with the tests, for FUZZ_SECONDS in all with `make
fuzz`.
"""

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, settings

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
"""How long properties are tried; 0 for the few examples of the tests, the same ones every time."""

tried: defaultdict[str, Counter[str]] = defaultdict(Counter)
"""What the properties of this run were tried on: the number of inputs by kind and outcome."""

_each = SECONDS


def share(properties: int) -> None:
    """Divide the time among so many properties."""
    global _each
    _each = SECONDS / properties


def property_settings(examples: int, *, shrink: bool = True) -> settings:
    """Return settings for so many examples at a time; none is too slow, and a failure tells how to
    come back to it.
    """
    phases = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=not SECONDS,
        phases=phases if shrink else phases[:3],
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


def repeat(check: Callable[[], None]) -> None:
    """Run a property; again, on new examples, until its time is over."""
    end = time.monotonic() + _each
    check()
    while time.monotonic() < end:
        check()
