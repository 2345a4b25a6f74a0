"""`drill`: a page that plays attacks and scores recoveries."""

from contextlib import ExitStack, suppress
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Annotated

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
from ldprecover_cli.options import Column, Key, Seed
from ldprecover_cli.output import note
from ldprecover_cli.signals import end_on_signals
from ldprecover_experiments import DemoSettings

if TYPE_CHECKING:
    from ldprecover_server import Application


def drill(
    *,
    open: Annotated[bool, typer.Option("--open", help="Open the page in your browser.")] = False,
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
    host: Annotated[
        str, typer.Option(help="Address to listen on.", metavar="ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 takes a free one.", max=65535, min=0)
    ] = 0,
    url: Annotated[
        str | None,
        typer.Option(
            help="Run drills on the server at this address; on a separate one when absent.",
            metavar="URL",
        ),
    ] = None,
    key: Key = None,
    key_file: KeyFile = None,
) -> None:
    """Watch it in a browser, with your choice of attack and repair.

    A drill is a round with simulated users and attackers, in which every recovery is scored
    against the truth. The options fill the form of the page.

    Example: ldprecover drill --open

    Example: ldprecover drill --url https://ldp.example.org --key-file admin.key
    """
    settings = chosen(
        DemoSettings(
            dataset, column, protocol, epsilon, users, beta, attack, model, targets, eta, seed
        )
    )
    from ldprecover_experiments.drill.server import drill_server
    from ldprecover_experiments.local_server import temporary_folder

    with end_on_signals(), ExitStack() as stack:
        server: Application | str
        admin_key = key_of(key, key_file) if url is not None else token_urlsafe(24)
        if admin_key is None:
            raise UsageError(
                "a drill opens a round at --url: give an admin key of the server with --key or "
                "--key-file"
            )
        if url is None:
            server = _own_server(stack.enter_context(temporary_folder()), admin_key)
            note(f"The admin key of the drill's own server is {admin_key}")
        else:
            server = url
        page = stack.enter_context(drill_server(server, admin_key, settings, host=host, port=port))
        note(f"Open {page.address} in a browser; Ctrl-C ends the drill.")
        if open:
            typer.launch(page.address)
        with suppress(KeyboardInterrupt):
            page.run_until_signal()
        note("Stopped.")


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
