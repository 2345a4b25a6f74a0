"""Options of `demo`."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from typer import Option

from ldprecover_cli import completion
from ldprecover_cli.errors import UsageError, file_errors
from ldprecover_cli.options import AUTO
from ldprecover_cli.output import note
from ldprecover_experiments import DemoSettings

DEFAULT = DemoSettings()

DemoDataset = Annotated[
    str,
    Option(
        help="cities, fire, emoji, or a CSV or Parquet file with the columns item and count.",
        metavar="NAME|FILE",
    ),
]
DemoProtocol = Annotated[
    str,
    Option(
        help="How users perturb values: grr, oue, olh, sue, ss, hr, llh, one of a plugin, or auto.",
        autocompletion=completion.protocols,
    ),
]
DemoEpsilon = Annotated[float, Option(help="Privacy budget of one report, 0.01 to 10.")]
DemoUsers = Annotated[
    int, Option(min=1, help="Number of genuine users, n; the paper's by default.")
]
DemoBeta = Annotated[float, Option(help="Malicious share of all users, 0 to 0.9.")]
DemoAttack = Annotated[
    str,
    Option(
        help="mga, mga-a, apa, apa2, mimicry and ria raise targets; joint frames them; aa, manip, "
        "mla and rpa distort everything.",
        metavar="NAME",
        autocompletion=completion.attacks,
    ),
]
DemoModel = Annotated[
    Literal["crafted", "sampled"],
    Option(help="aa, manip, mga: a report as strong as it can be, or the paper's encoded item."),
]
DemoTargets = Annotated[
    int, Option(min=1, help="Number of targets, where the attack has them, drawn with the seed.")
]
DemoEta = Annotated[
    float, Option(help="What recovery assumes of m/n, malicious users per genuine one.")
]
KeyFile = Annotated[
    Path | None, Option(help="File to read the key from, instead of --key.", metavar="FILE")
]


def chosen(settings: DemoSettings) -> DemoSettings:
    """Return the settings; for the protocol auto with the one that suits them best, and say why."""
    if settings.protocol != AUTO:
        return settings
    from ldprecover.planning.choosing import choose
    from ldprecover_experiments.simulation.datasets import dataset_of

    d = len(dataset_of(settings.dataset, settings.column).items)
    choice = choose(d, settings.epsilon, settings.users)
    note(choice.why)
    return replace(settings, protocol=choice.best.oracle.protocol)


def key_of(key: str | None, file: Path | None) -> str | None:
    """Return the key in a file, or without one `key`. Raises UsageError."""
    if file is None:
        return key
    try:
        with file_errors("read", file):
            return file.read_text(encoding="ascii").strip()
    except UnicodeDecodeError:
        raise UsageError(f"{file} contains no key") from None
