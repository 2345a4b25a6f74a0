"""Attacks that the page of a demo plays, each on a new round of the demo's server."""

from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from threading import Event
from typing import Any

from ldprecover_attacker import ATTACKS, attack_options
from ldprecover_cli.practice.server import PracticeServer
from ldprecover_client import Client
from ldprecover_experiments import Demo, DemoSettings
from ldprecover_experiments.simulation.comparison import Comparison
from ldprecover_experiments.simulation.demo_words import attack_words


class Plays:
    """The plays on a server, one after the other, and the calls that start and show them.

    They differ from `settings` in attack, share and number of targets.
    """

    def __init__(self, server: PracticeServer, settings: DemoSettings) -> None:
        self._client = Client(server.url, key=server.key, sleep=self._pause)
        self._key = server.key
        self._settings = settings
        self._plays: dict[str, tuple[DemoSettings, Future[Comparison]]] = {}  # by round
        self._executor = ThreadPoolExecutor(1)
        self._stopped = Event()
        server.add_call("/attack", self.start, "POST")
        server.add_call("/truth", self.state)

    def start(self, attack: str, beta: float, targets: int) -> dict[str, str]:
        """Open a round, have all users report to it in the background, and return its name.

        Raises ParameterError and ClientError.
        """
        demo = Demo(replace(self._settings, attack=attack, beta=beta, targets=targets))
        name = demo.open_round(self._client).name
        self._plays[name] = demo.settings, self._executor.submit(self._play, demo, name)
        return {"round": name}

    def finish(self, name: str, comparison: Comparison) -> None:
        """Close the round of a play that has ended, and set its result."""
        self._client.close_round(name)
        self._plays[name] = comparison.settings, self._executor.submit(lambda: comparison)

    def state(self, round: str) -> dict[str, Any]:
        """Return the settings and state of the play on the round, and all attacks.

        The state is "done" with a score, "failed" with an error, "running", or "none" for a round
        that was not played.
        """
        settings, play = self._plays.get(round, (self._settings, None))
        attacks = {
            each: asdict(attack_words(each)) | {"targeted": "targets" in attack_options(each)}
            for each in sorted(ATTACKS)
        }
        state = {"settings": settings.as_json(), "attacks": attacks}
        if play is None:
            return state | {"state": "none"}
        if not play.done():
            return state | {"state": "running"}
        if error := play.exception():
            return state | {"state": "failed", "error": str(error)}
        return state | {"state": "done", "score": play.result().score.as_json()}

    def close(self) -> None:
        """Stop a play in progress at its next step; do not wait for it."""
        self._stopped.set()
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    def _play(self, demo: Demo, name: str) -> Comparison:
        comparison = demo.play(self._client, self._key, name, self._stage)
        self._client.close_round(name)
        return comparison

    def _pause(self, seconds: float) -> None:
        if self._stopped.wait(seconds):
            raise CancelledError

    def _stage(self, title: str) -> AbstractContextManager[Callable[[int, int], None]]:
        return nullcontext(lambda done, total: self._pause(0))
