"""`demo`: a poisoned round in the terminal."""

import sys
import time
from contextlib import closing
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Option

from ldprecover_cli import completion
from ldprecover_cli.connection import connected
from ldprecover_cli.errors import UsageError
from ldprecover_cli.option_values import read_lines
from ldprecover_cli.options import DEFAULT_URL, AsIs, Column, Encoding, Json, Key, Seed, Url
from ldprecover_cli.output import console, note, print_json
from ldprecover_cli.signals import end_on_signals
from ldprecover_experiments import DemoSettings

if TYPE_CHECKING:
    from ldprecover_experiments.simulation.comparison import Comparison

_DEFAULT = DemoSettings()

Part = Literal["round", "users", "attacker", "analyst"]


def demo(
    ctx: typer.Context,
    *,
    dataset: Annotated[
        str,
        Option(
            help="cities, fire, emoji, or a text, CSV or Parquet file: one row a user, or the "
            "columns item and count.",
            metavar="NAME|FILE",
        ),
    ] = _DEFAULT.dataset,
    column: Column = None,
    encoding: Encoding = "utf-8",
    as_is: AsIs = False,
    protocol: Annotated[
        str,
        Option(
            help="How users perturb values: grr, oue, olh, sue, ss, hr, llh, or one of a plugin.",
            autocompletion=completion.protocols,
        ),
    ] = "olh",
    epsilon: Annotated[
        float, Option(help="Privacy budget of one report, 0.01 to 10.")
    ] = _DEFAULT.epsilon,
    users: Annotated[
        int, Option(min=1, help="Number of genuine users, n; the paper's by default.")
    ] = _DEFAULT.users,
    beta: Annotated[float, Option(help="Malicious share of all users, 0 to 0.9.")] = _DEFAULT.beta,
    attack: Annotated[
        str,
        Option(
            help="mga, mga-a, apa, apa2, cancel, mimicry and ria raise targets; joint frames them; "
            "aa, manip, mla and rpa distort everything.",
            metavar="NAME",
            autocompletion=completion.attacks,
        ),
    ] = "mga",
    model: Annotated[
        Literal["crafted", "sampled"],
        Option(
            help="aa, manip, mga: a report as strong as it can be, or the paper's encoded item."
        ),
    ] = "crafted",
    targets: Annotated[
        int,
        Option(min=1, help="Number of targets, where the attack has them, drawn with the seed."),
    ] = _DEFAULT.targets,
    eta: Annotated[
        float, Option(help="What recovery assumes of m/n, malicious users per genuine one.")
    ] = _DEFAULT.eta,
    seed: Seed = 0,
    json: Json = False,
    page: Annotated[
        bool,
        Option("--page", help="Open a page that plays more attacks, and serve it until Ctrl-C."),
    ] = False,
    part: Annotated[
        Part | None,
        Option(
            help="Play only one part on the server at --url: open a round, report, or compare "
            "at the end."
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    key_file: Annotated[
        Path | None, Option(help="File to read the key from, instead of --key.", metavar="FILE")
    ] = None,
) -> None:
    """Watch a survey being attacked and repaired, in a minute.

    Genuine users report over HTTP to a temporary server, malicious users attack, and each estimate
    and each recovery is compared with the truth.

    Example: ldprecover demo --protocol grr --beta 0.1

    Example: ldprecover demo --dataset fire --attack manip --json

    Example: ldprecover demo --page

    Example: ldprecover demo --part analyst --url http://127.0.0.1:8000
    """
    settings = DemoSettings(
        dataset=dataset,
        column=column,
        protocol=protocol,
        epsilon=epsilon,
        users=users,
        beta=beta,
        attack=attack,
        model=model,
        targets=targets,
        eta=eta,
        seed=seed,
        encoding=encoding,
        as_is=as_is,
    )
    if part is None:
        _check_no_server_is_named(ctx)
        _play_all(settings, json=json, page=page)
    elif page:
        raise UsageError("--page is for a server of the demo's own: a part has none")
    else:
        if key_file is not None:
            key = "\n".join(read_lines(key_file)).strip()
        _play_part(part, settings, url, key, json=json)


def _check_no_server_is_named(ctx: typer.Context) -> None:
    for option, name in (("url", "--url"), ("key", "--key"), ("key_file", "--key-file")):
        source = ctx.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            raise UsageError(f"{name} needs --part: otherwise the demo starts a separate server")


def _play_part(
    part: Part, settings: DemoSettings, url: str, key: str | None, *, json: bool
) -> None:
    from ldprecover_cli.demo.parts import play_part
    from ldprecover_client import progress_bar
    from ldprecover_experiments.simulation.demo import Demo, no_progress

    play = Demo(settings)
    with end_on_signals(), connected(url, key) as server:
        result = play_part(part, play, server, key, no_progress if json else progress_bar)
    if not isinstance(result, tuple):
        _show(result, json=json)
    elif json:
        print_json(result[0])
    else:
        console().print(result[1])


def _play_all(settings: DemoSettings, *, json: bool, page: bool) -> None:
    from ldprecover_cli.practice.plays import Plays
    from ldprecover_cli.practice.server import practice_server
    from ldprecover_client import progress_bar
    from ldprecover_experiments.simulation.demo import Demo, no_progress

    started = time.monotonic()
    with end_on_signals(), practice_server("demo") as server:
        stage = no_progress if json else progress_bar
        comparison = Demo(settings).on(server.url, server.key, stage)
        _show(comparison, json=json)
        if page:
            with closing(Plays(server, settings)) as plays:
                plays.finish("demo", comparison)
                server.wait(
                    f"The page: {server.link} until Ctrl-C; its server's admin key is {server.key}"
                )
        elif not json:
            # As this was started, where the shell would not find it: `make demo` needs no
            # environment to be active.
            program = "ldprecover" if which("ldprecover") else sys.argv[0]
            note(f"Took {time.monotonic() - started:.1f} s. In a browser: `{program} demo --page`")


def _show(comparison: "Comparison", *, json: bool) -> None:
    from ldprecover_cli.demo.picture import draw

    if json:
        print_json(comparison.as_json())
    else:
        draw(comparison, console())
