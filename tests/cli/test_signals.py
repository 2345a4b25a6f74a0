"""Signals that arrive while something must not be interrupted."""

import signal

import pytest

from ldprecover_cli.signals import delayed_signals


def test_delayed_signal_arrives_after_the_block() -> None:
    reached = []

    def interrupted() -> None:
        with delayed_signals():
            signal.raise_signal(signal.SIGINT)
            reached.append("end of block")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert reached == ["end of block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
