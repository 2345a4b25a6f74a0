"""Parts of a demo, each played by a separate program on a running server."""

from dataclasses import dataclass
from typing import Any

from rich.console import Console

from ldprecover_cli.demo.picture import draw
from ldprecover_cli.errors import CommandError
from ldprecover_cli.output import counted, plain
from ldprecover_client import Client, RoundStatus
from ldprecover_experiments.comparison import Comparison
from ldprecover_experiments.demo import Demo, Stage


@dataclass(frozen=True)
class Opened:
    """The part `round` opened this one; it is now the current round."""

    round: RoundStatus

    def as_json(self) -> dict[str, Any]:
        """Return its id and name."""
        return {"round": self.round.id, "name": self.round.name}

    def draw(self, out: Console) -> None:
        """Say so."""
        out.print(f"The round {plain(self.round.name)} is open.")


@dataclass(frozen=True)
class Reported:
    """The part `users` or `attacker` sent its reports."""

    round: RoundStatus
    accepted: int
    noun: str

    def as_json(self) -> dict[str, Any]:
        """Return the round's id and the number of reports."""
        return {"round": self.round.id, "accepted": self.accepted}

    def draw(self, out: Console) -> None:
        """Say so."""
        out.print(f"{counted(self.accepted, self.noun)} reported to {plain(self.round.name)}.")


@dataclass(frozen=True)
class Compared:
    """The part `analyst` asked for estimates and recoveries, and compared them with the truth."""

    figures: Comparison

    def as_json(self) -> dict[str, Any]:
        """Return the demo's own JSON."""
        return self.figures.as_json()

    def draw(self, out: Console) -> None:
        """Draw the demo's own picture."""
        draw(self.figures, out)


def play_part(
    part: str, play: Demo, server: Client, key: str | None, stage: Stage
) -> Opened | Reported | Compared:
    """Play one part on the current round of a server, whose key this is.

    The key's scope is admin for "round", report for "users" and "attacker"; the analyst needs none
    where results are public. What only a simulation has, the truth and the genuine users' own
    estimate, the analyst makes again from the seed.

    Raises CommandError when the current round is not the one of these settings, or does not hold
    exactly the reports of its users and its attacker; and ClientError.
    """
    if part == "round":
        return Opened(play.open_round(server))
    round_ = server.round("current")
    if round_.parameters != play.parameters:
        raise CommandError(
            f"the current round, {plain(round_.name)}, has other parameters than this demo's"
        )
    if part == "users":
        return Reported(
            round_, play.report_genuine(server.url, key, round_.id, stage), "genuine user"
        )
    if part == "attacker":
        return Reported(
            round_, play.report_malicious(server.url, key, round_.id, stage), "malicious user"
        )
    expected = play.settings.users + play.malicious_users
    if round_.n != expected:
        raise CommandError(
            f"{plain(round_.name)} has {counted(round_.n, 'report')}, not the {expected:,} of this "
            "demo"
        )
    return Compared(play.compared(server, round_.id, play.genuine_estimate()))
