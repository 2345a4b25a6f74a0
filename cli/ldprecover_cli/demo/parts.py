"""Parts of a demo, each played by a separate program on a running server."""

from ldprecover.sentences import counted
from ldprecover_cli.errors import CommandError
from ldprecover_cli.output import JsonObject, plain
from ldprecover_client import Client
from ldprecover_experiments.simulation.comparison import Comparison
from ldprecover_experiments.simulation.demo import Demo, Stage


def play_part(
    part: str, play: Demo, server: Client, key: str | None, stage: Stage
) -> Comparison | tuple[JsonObject, str]:
    """Play one part on the current round of a server, whose key this is; return its result.

    The result is the analyst's comparison; of another part, its fields and a sentence.

    The key's scope is admin for "round", report for "users" and "attacker"; the analyst needs none
    where results are public. The analyst computes the truth and the genuine users' estimate, which
    only a simulation has, from the seed.

    Raises CommandError when the current round is not the one of these settings, or does not hold
    exactly the reports of its users and its attacker; and ClientError.
    """
    if part == "round":
        opened = play.open_round(server)
        fields = {"round": opened.id, "name": opened.name}
        return fields, f"The round {plain(opened.name)} is open."
    round_ = server.round("current")
    name = plain(round_.name)
    if round_.parameters != play.parameters:
        raise CommandError(f"the current round, {name}, has other parameters than this demo's")
    if part == "analyst":
        expected = play.settings.users + play.malicious_users
        if round_.n != expected:
            raise CommandError(
                f"{name} has {counted(round_.n, 'report')}, not the {expected:,} of this demo"
            )
        return play.compared(server, round_.id, play.genuine_estimate())
    report, noun = {
        "users": (play.report_genuine, "genuine user"),
        "attacker": (play.report_malicious, "malicious user"),
    }[part]
    accepted = report(server.url, key, round_.id, stage)
    sentence = f"{counted(accepted, noun)} reported to {name}."
    return {"round": round_.id, "accepted": accepted}, sentence
