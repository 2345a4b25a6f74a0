"""`demo`: a poisoned round in the terminal."""

import sys
import time
from contextlib import suppress
from shutil import which
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ldprecover_cli.demo.options import (
    DEFAULT,
    DemoAttack,
    DemoBeta,
    DemoDataset,
    DemoEpsilon,
    DemoEta,
    DemoModel,
    DemoProtocol,
    DemoTargets,
    DemoUsers,
    KeyFile,
    chosen,
    key_of,
)
from ldprecover_cli.errors import UsageError
from ldprecover_cli.options import DEFAULT_URL, Column, Json, Key, Seed, Url, connected
from ldprecover_cli.output import console, note, print_json
from ldprecover_cli.signals import end_on_signals
from ldprecover_experiments import DemoSettings

if TYPE_CHECKING:
    from ldprecover_cli.demo.server import DemoServer
    from ldprecover_experiments.simulation.comparison import Comparison

Part = Literal["round", "users", "attacker", "analyst"]


def demo(
    ctx: typer.Context,
    *,
    dataset: DemoDataset = DEFAULT.dataset,
    column: Column = None,
    protocol: DemoProtocol = "olh",
    epsilon: DemoEpsilon = DEFAULT.epsilon,
    users: DemoUsers = DEFAULT.users,
    beta: DemoBeta = DEFAULT.beta,
    attack: DemoAttack = "mga",
    model: DemoModel = "crafted",
    targets: DemoTargets = DEFAULT.targets,
    eta: DemoEta = DEFAULT.eta,
    seed: Seed = 0,
    json: Json = False,
    page: Annotated[
        bool,
        typer.Option(
            "--page", help="Open a page that plays more attacks, and serve it until Ctrl-C."
        ),
    ] = False,
    part: Annotated[
        Part | None,
        typer.Option(
            help="Play only one part on the server at --url: open a round, report, or compare "
            "at the end."
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    key_file: KeyFile = None,
) -> None:
    """Watch a survey being attacked and repaired, in a minute.

    Genuine users report over HTTP to a temporary server, malicious users attack, and each estimate
    and each recovery is compared with the truth.

    Example: ldprecover demo --protocol grr --beta 0.1

    Example: ldprecover demo --dataset fire --attack manip --json

    Example: ldprecover demo --page

    Example: ldprecover demo --part analyst --url http://127.0.0.1:8000
    """
    settings = chosen(
        DemoSettings(
            dataset, column, protocol, epsilon, users, beta, attack, model, targets, eta, seed
        )
    )
    if part is None:
        _check_no_server_is_named(ctx)
        _play_all(settings, json=json, page=page)
    elif page:
        raise UsageError("--page is for a server of the demo's own: a part has none")
    else:
        _play_part(part, settings, url, key_of(key, key_file), json=json)


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
    with end_on_signals(), connected(url, key, round="current") as server:
        result = play_part(part, play, server, key, no_progress if json else progress_bar)
    if json:
        print_json(result.as_json)
    else:
        result.show(console())


def _play_all(settings: DemoSettings, *, json: bool, page: bool) -> None:
    from ldprecover_cli.demo.server import demo_server

    started = time.monotonic()
    with end_on_signals(), demo_server(settings) as server:
        comparison = _play_on(server, settings, json=json)
        if page:
            _serve_page(server, comparison)
        elif not json:
            # As this was started, where the shell would not find it: `make demo` needs no
            # environment to be active.
            program = "ldprecover" if which("ldprecover") else sys.argv[0]
            note(f"Took {time.monotonic() - started:.1f} s. In a browser: `{program} demo --page`")


def _serve_page(server: "DemoServer", comparison: "Comparison") -> None:
    from ldprecover_client import Client

    with Client(server.url, key=server.key) as client:
        client.close_round("demo")
    server.plays.finish("demo", comparison)
    note(f"The page: {server.link} until Ctrl-C; its server's admin key is {server.key}")
    if console().is_terminal:
        typer.launch(server.link)
    with suppress(KeyboardInterrupt):
        server.wait()
    note("Stopped.")


def _play_on(server: "DemoServer", settings: DemoSettings, *, json: bool) -> "Comparison":
    """Play the demo on a server, print its result, and return it."""
    from ldprecover_cli.demo.picture import draw
    from ldprecover_client import progress_bar
    from ldprecover_experiments.simulation.demo import Demo, no_progress

    comparison = Demo(settings).on(server.url, server.key, no_progress if json else progress_bar)
    if json:
        print_json(comparison.as_json())
    else:
        draw(comparison, console())
    return comparison
