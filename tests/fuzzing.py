"""Property tests: brief in the test suite, FUZZ_SECONDS in total with `make fuzz`."""

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, settings

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
"""Seconds of fuzzing; 0 for the few examples of the tests, the same ones each time."""

tried: defaultdict[str, Counter[str]] = defaultdict(Counter)
"""Number of inputs of this run, by kind and outcome."""

_each = SECONDS


def share(properties: int) -> None:
    """Divide the time among the properties."""
    global _each
    _each = SECONDS / properties


def property_settings(examples: int, *, shrink: bool = True) -> settings:
    """Return settings for `examples` at a time; a failure prints how to reproduce it."""
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
    """Run a property, and repeat it with new examples until its time is over."""
    end = time.monotonic() + _each
    check()
    while time.monotonic() < end:
        check()
