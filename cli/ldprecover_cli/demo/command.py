"""`demo`: the command."""

import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from secrets import token_urlsafe
from shutil import which
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ldprecover_cli import completion
from ldprecover_cli.errors import UsageError, file_errors
from ldprecover_cli.options import (
    AUTO,
    DEFAULT_URL,
    AttackName,
    Column,
    Json,
    Key,
    Model,
    Protocol,
    Seed,
    Url,
    connected,
)
from ldprecover_cli.output import console, note, print_json
from ldprecover_cli.signals import end_on_signals
from ldprecover_experiments import DemoSettings

if TYPE_CHECKING:
    from ldprecover_server import Application

_DEFAULT = DemoSettings()
_STOPPED = "Stopped."

Part = Literal["round", "users", "attacker", "analyst"]


def demo(
    ctx: typer.Context,
    *,
    dataset: Annotated[
        str,
        typer.Option(
            help="cities, fire, emoji, or a CSV or Parquet file with the columns item and count.",
            metavar="NAME|FILE",
            envvar="LDPRECOVER_DEMO_DATASET",
        ),
    ] = _DEFAULT.dataset,
    column: Column = None,
    protocol: Annotated[
        Protocol,
        typer.Option(
            help="How users perturb values: grr, oue, olh, sue, ss, hr, llh, one of a plugin, or "
            "auto.",
            envvar="LDPRECOVER_DEMO_PROTOCOL",
            autocompletion=completion.protocols,
        ),
    ] = "olh",
    epsilon: Annotated[
        float,
        typer.Option(
            help="Privacy budget of one report, 0.01 to 10.", envvar="LDPRECOVER_DEMO_EPSILON"
        ),
    ] = _DEFAULT.epsilon,
    users: Annotated[
        int,
        typer.Option(
            min=1,
            help="Number of genuine users, n; the paper's by default.",
            envvar="LDPRECOVER_DEMO_USERS",
        ),
    ] = _DEFAULT.users,
    beta: Annotated[
        float,
        typer.Option(help="Malicious share of all users, 0 to 0.9.", envvar="LDPRECOVER_DEMO_BETA"),
    ] = _DEFAULT.beta,
    attack: Annotated[
        AttackName,
        typer.Option(
            help="mga, mga-a, apa, apa2, mimicry and ria raise targets; joint frames them; aa, "
            "manip, mla and rpa distort everything.",
            envvar="LDPRECOVER_DEMO_ATTACK",
            metavar="NAME",
            autocompletion=completion.attacks,
        ),
    ] = "mga",
    model: Annotated[
        Model,
        typer.Option(
            help="aa, manip, mga: a report as strong as it can be, or the paper's encoded item."
        ),
    ] = "crafted",
    targets: Annotated[
        int,
        typer.Option(
            min=1, help="Number of targets, where the attack has them, drawn with the seed."
        ),
    ] = _DEFAULT.targets,
    eta: Annotated[
        float, typer.Option(help="What recovery assumes of m/n, malicious users per genuine one.")
    ] = _DEFAULT.eta,
    seed: Seed = 0,
    json: Json = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the server running until Ctrl-C.")
    ] = False,
    page: Annotated[
        bool,
        typer.Option(
            "--page",
            help="Serve the page with a form that runs drills on a separate server, or on the "
            "server at --url.",
        ),
    ] = False,
    host: Annotated[
        str, typer.Option(help="Address that --page listens on.", metavar="ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port that --page listens on; 0 takes a free one.", max=65535, min=0)
    ] = 0,
    part: Annotated[
        Part | None,
        typer.Option(
            help="Play only one part on the server at --url: open a round, report, or compare "
            "at the end."
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    key_file: Annotated[
        Path | None,
        typer.Option(help="File to read the key from, instead of --key.", metavar="FILE"),
    ] = None,
) -> None:
    """Play a poisoned round from end to end on a separate server, and show the recoveries.

    Genuine users report over HTTP, malicious users attack, and each estimate is compared with the
    truth.

    Example: ldprecover demo --protocol grr --beta 0.1

    Example: ldprecover demo --dataset fire --attack manip --json

    Example: ldprecover demo --page

    Example: ldprecover demo --part analyst --url http://127.0.0.1:8000
    """
    settings = DemoSettings(
        dataset, column, protocol, epsilon, users, beta, attack, model, targets, eta, seed
    )
    if protocol == AUTO:
        settings = _chosen(settings)
    if page:
        if part is not None or json or keep:
            raise UsageError("--page stands without --part, --json and --keep")
        _serve_page(
            settings, url if _on_command_line(ctx, "url") else None, _key(key, key_file), host, port
        )
        return
    for option in ("host", "port"):
        if _on_command_line(ctx, option):
            raise UsageError(f"--{option} belongs to --page")
    if part is None:
        _check_no_server_is_named(ctx)
        _play_all(settings, json=json, keep=keep)
    elif keep:
        raise UsageError("--keep is for a server of the demo's own: a part has none")
    else:
        _play_part(part, settings, url, _key(key, key_file), json=json)


def _chosen(settings: DemoSettings) -> DemoSettings:
    """Return the settings with the protocol that suits them best, and say why."""
    from ldprecover.planning.choosing import choose
    from ldprecover_experiments.datasets import dataset_of

    d = len(dataset_of(settings.dataset, settings.column).items)
    choice = choose(d, settings.epsilon, settings.users)
    note(choice.why)
    return replace(settings, protocol=choice.best.oracle.protocol)


def _check_no_server_is_named(ctx: typer.Context) -> None:
    for option, name in (("url", "--url"), ("key", "--key"), ("key_file", "--key-file")):
        if _on_command_line(ctx, option):
            raise UsageError(
                f"{name} needs --part or --page: otherwise the demo starts a separate server"
            )


def _on_command_line(ctx: typer.Context, option: str) -> bool:
    """Return whether an option is on the command line, not only in the environment."""
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _serve_page(
    settings: DemoSettings, url: str | None, key: str | None, host: str, port: int
) -> None:
    from ldprecover_experiments.drill import drill_server
    from ldprecover_experiments.local_server import temporary_folder

    with end_on_signals(), ExitStack() as stack:
        server: Application | str
        if url is None:
            key = token_urlsafe(24)
            server = _own_server(stack.enter_context(temporary_folder()), key)
        elif key is None:
            raise UsageError(
                "a drill opens a round at --url: give an admin key of the server with --key or "
                "--key-file"
            )
        else:
            server = url
        drill = stack.enter_context(drill_server(server, key, settings, host=host, port=port))
        if url is None:
            note(f"A separate server runs at {drill.url}; its admin key is {key}")
        note(f"Open {drill.address} in a browser; the drill runs until Ctrl-C.")
        with suppress(KeyboardInterrupt):
            drill.run_until_signal()
        note(_STOPPED)


def _own_server(folder: Path, key: str) -> "Application":
    """Return a server's application with this admin key and a new database in a folder."""
    from pydantic import SecretStr

    from ldprecover import counting
    from ldprecover_server import Application, Settings
    from ldprecover_server.storage import Storage

    # Without the environment, whose settings are for another server.
    settings = Settings.model_construct(admin_key=SecretStr(key))
    store = Storage(f"sqlite:///{folder}/demo.db")
    store.prepare()
    counting.warm_up()
    return Application(settings, store)


def _play_part(
    part: Part, settings: DemoSettings, url: str, key: str | None, *, json: bool
) -> None:
    from ldprecover_cli.demo.parts import play_part
    from ldprecover_client import progress_bar
    from ldprecover_experiments.demo import Demo, no_progress

    play = Demo(settings)
    with end_on_signals(), connected(url, key, round="current") as server:
        result = play_part(part, play, server, key, no_progress if json else progress_bar)
    if json:
        print_json(result.as_json)
    else:
        result.show(console())


def _play_all(settings: DemoSettings, *, json: bool, keep: bool) -> None:
    from ldprecover_cli.demo.picture import draw
    from ldprecover_client import progress_bar
    from ldprecover_experiments.demo import Demo, no_progress
    from ldprecover_experiments.local_server import local_server

    started = time.monotonic()
    play = Demo(settings)
    with end_on_signals(), local_server() as server:
        comparison = play.on(server.url, server.key, no_progress if json else progress_bar)
        if json:
            print_json(comparison.as_json())
        else:
            draw(comparison, console())
            # As this was started, where the shell would not find it: `make demo` needs no
            # environment to be active.
            program = "ldprecover" if which("ldprecover") else sys.argv[0]
            note(f"Took {time.monotonic() - started:.1f} s. In a browser: `{program} demo --page`")
        if keep:
            note(f"The server stays at {server.url} until Ctrl-C; its admin key is {server.key}")
            with suppress(KeyboardInterrupt):
                server.wait()
            note(_STOPPED)


def _key(key: str | None, file: Path | None) -> str | None:
    if file is None:
        return key
    try:
        with file_errors("read", file):
            return file.read_text(encoding="ascii").strip()
    except UnicodeDecodeError:
        raise UsageError(f"{file} contains no key") from None
