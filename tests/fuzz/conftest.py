"""Properties of everything that reads anonymous input; each has its share of FUZZ_SECONDS."""

import pytest
from tests.fuzzing import SECONDS, share, tried


def pytest_collection_finish(session: pytest.Session) -> None:
    share(max(1, len(session.items)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the numbers of inputs after a long run."""
    if SECONDS:
        terminalreporter.section("inputs tried, by kind and outcome")
        for kind, outcomes in tried.items():
            counts = ", ".join(f"{outcome} {n:,}" for outcome, n in sorted(outcomes.items()))
            terminalreporter.write_line(f"{kind}: {sum(outcomes.values()):,} ({counts})")
