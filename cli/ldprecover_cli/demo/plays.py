"""Attacks that the page of a demo plays, each on a new round of a running server."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from threading import Event
from typing import Any

from ldprecover_attacker import ATTACKS, attack_options
from ldprecover_client import Client
from ldprecover_experiments.simulation.comparison import Comparison
from ldprecover_experiments.simulation.demo import Demo
from ldprecover_experiments.simulation.demo_settings import DemoSettings
from ldprecover_experiments.simulation.demo_words import attack_words


class _StoppedError(Exception):
    """The plays were stopped."""


class Plays:
    """The plays on the server at `url` with its admin `key`, one after the other.

    They differ from `settings` in attack, share and number of targets. A context manager; its end
    stops a play in progress.
    """

    def __init__(self, url: str, key: str, settings: DemoSettings) -> None:
        self._url, self._key, self._settings = url, key, settings
        self._dataset = settings.load()
        self._states: dict[str, dict[str, Any]] = {}  # by the name of the round
        self._executor = ThreadPoolExecutor(1)
        self._stopped = Event()

    def start(self, attack: str, beta: float, targets: int) -> str:
        """Open a round, have all users report to it in the background, and return its name.

        Raises ParameterError and ClientError.
        """
        settings = replace(self._settings, attack=attack, beta=beta, targets=targets)
        demo = Demo(settings, self._dataset)
        with Client(self._url, key=self._key) as server:
            name = demo.open_round(server).name
        self._states[name] = {"settings": settings, "state": "running"}
        self._executor.submit(self._play, demo, name)
        return name

    def finish(self, name: str, comparison: Comparison) -> None:
        """Set the result of a play on the round `name`."""
        score = comparison.score.as_json()
        self._states[name] = {"settings": comparison.settings, "state": "done", "score": score}

    def state(self, name: str) -> dict[str, Any]:
        """Return the settings and state of the play on the round `name`, and all attacks.

        The state is "done" with a score, "failed" with an error, "running", or "none" for a round
        that was not played.
        """
        state = self._states.get(name, {"settings": self._settings, "state": "none"})
        attacks = {
            each: asdict(attack_words(each)) | {"targeted": "targets" in attack_options(each)}
            for each in sorted(ATTACKS)
        }
        return state | {"settings": state["settings"].as_json(), "attacks": attacks}

    def __enter__(self) -> "Plays":
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        self._executor.shutdown(cancel_futures=True)

    def stop(self) -> None:
        """Stop a play in progress at its next step; do not wait for it."""
        self._stopped.set()

    def _play(self, demo: Demo, name: str) -> None:
        try:
            with Client(self._url, key=self._key, sleep=self._pause) as server:
                comparison = demo.play(server, self._key, name, self._stage)
                server.close_round(name)
            self.finish(name, comparison)
        except Exception as error:  # noqa: BLE001  the page shows it
            reason = " ".join(str(error).split()) or type(error).__name__
            self._states[name] |= {"state": "failed", "error": reason}

    def _pause(self, seconds: float) -> None:
        if self._stopped.wait(seconds):
            raise _StoppedError

    @contextmanager
    def _stage(self, title: str) -> Iterator[Callable[[int, int], None]]:
        yield lambda done, total: self._pause(0)
