"""Measure what canaries give to un-mixing, and print the table of docs/explanation/unmixing.md.

    python docs/scripts/canary_table.py

Cells of the evaluation, with ten more items that nobody holds: un-mixing is told that they are
canaries, or takes them for items like others. Targets are never canaries, for who attacks can read
which they are; attacks on random items raise them too. Errors are those of the other items: the
mean over the trials is taken first, then ratios, then geometric means over data.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice

import numpy as np

from ldprecover import recover
from ldprecover.estimation.metrics import mse
from ldprecover_experiments.paper import PROTOCOLS
from ldprecover_experiments.parameters import Cell, GenuineUsers, load_users_by_data
from ldprecover_experiments.poisoned_round import PoisonedRound, RoundSimulation, simulate_round
from ldprecover_experiments.tables import Table
from ldprecover_experiments.unmixing_evaluation import BASE, Only, cells_of

WORLDS = ("ipums-like", "bump", "geometric")
CANARIES = 10
TRIALS = 2
COLUMNS = (
    "attack",
    "protocol",
    "counts",
    "least",
    "reports",
    "least",
    "P(attack)",
    "told",
    "gain left",
    "told",
)


@dataclass(frozen=True)
class UnmixingResult:
    """What un-mixing made of a round: its error and gain over the items that are no canaries, and
    P(attack).
    """

    error: float
    attack: float
    gain: float | None


def watched(genuine_users: GenuineUsers) -> GenuineUsers:
    """Return the crowd with ten more items, held by nobody."""
    canaries = tuple(f"canary {i + 1}" for i in range(CANARIES))
    return GenuineUsers(
        genuine_users.name,
        (*genuine_users.items, *canaries),
        np.append(genuine_users.counts, np.zeros(CANARIES, np.int64)),
    )


def sparing(cell: Cell, genuine_users: GenuineUsers, trials: int) -> Iterator[Cell]:
    """Yield so many trials of a cell whose targets are no canaries."""
    d = len(genuine_users.items) - CANARIES
    every = (replace(cell, trial=trial) for trial in count())
    yield from islice(
        (one for one in every if max(RoundSimulation(one, genuine_users, 0).targets or (0,)) < d),
        trials,
    )


def answered(round_: PoisonedRound, *, told: bool, reads: bool) -> UnmixingResult:
    """Return what un-mixing makes of a round, told of the canaries or not, with the reports or
    without.
    """
    d = round_.oracle.domain_size - CANARIES
    found = recover(
        round_.oracle,
        round_.poisoned.frequencies,
        "unmix",
        n=round_.together.n,
        reports=round_.reports if reads else None,
        canaries=range(d, d + CANARIES) if told else (),
    )
    assert found.conclusions is not None
    raised = None if round_.targets is None else list(round_.targets)
    gain = None if raised is None else float((found.recovered - round_.f_genuine)[raised].sum())
    return UnmixingResult(
        mse(found.recovered[:d], round_.truth[:d]),
        found.conclusions.attack_probability or 0.0,
        gain,
    )


def played(
    cells: Sequence[Cell], users_by_data: Mapping[str, GenuineUsers]
) -> dict[tuple[bool, bool], list[UnmixingResult]]:
    """Return what un-mixing makes of these trials of one cell, by whether it is told and whether it
    reads reports.
    """
    found = defaultdict(list)
    for cell in cells:
        round_ = simulate_round(cell, users_by_data[cell.data], 0, reports=True)
        for told, reads in ((False, False), (True, False), (False, True), (True, True)):
            found[told, reads].append(answered(round_, told=told, reads=reads))
    return found


def table(
    data: Sequence[str], users: int | None, trials: int, attacks: Sequence[str] = BASE
) -> Table:
    """Return how many times canaries lessen the error of un-mixing, by attack and protocol."""
    users_by_data = {
        name: watched(genuine_users)
        for name, genuine_users in load_users_by_data(data, users=users).items()
    }
    found = defaultdict(list)
    for cell, place in cells_of(Only(part=("base",), attack=attacks), users_by_data, 1).items():
        trial = list(sparing(cell, users_by_data[cell.data], trials))
        found[place.attack, cell.protocol].append(played(trial, users_by_data))
    rows = [
        [attack, protocol.upper(), *_row(found[attack, protocol])]
        for attack in attacks
        for protocol in PROTOCOLS
        if (attack, protocol) in found
    ]
    every = [one for cells in found.values() for one in cells]
    return Table(COLUMNS, [*rows, ["all", "", *_row(every)]])


def _row(cells: Sequence[Mapping[tuple[bool, bool], Sequence[UnmixingResult]]]) -> Iterator[str]:
    """Yield the columns: ratios of errors without and with canaries, for counts and for reports,
    P(attack), |FG|.
    """
    for reads in (False, True):
        errors = np.array(
            [
                [np.mean([a.error for a in cell[told, reads]]) for told in (False, True)]
                for cell in cells
            ]
        )
        ratios = errors[:, 0] / errors[:, 1]
        yield f"{np.exp(np.log(ratios).mean()):.2f}"
        yield f"{ratios.min():.2f}"
    for told in (False, True):
        yield f"{np.mean([a.attack for cell in cells for a in cell[told, True]]):.2f}"
    for told in (False, True):
        gains = [[a.gain for a in cell[told, True] if a.gain is not None] for cell in cells]
        known = [abs(np.mean(of_cell)) for of_cell in gains if of_cell]
        yield f"{np.mean(known):.3f}" if known else ""


def printed() -> Iterator[str]:
    """Yield the table of docs/explanation/unmixing.md in Markdown."""
    yield table(WORLDS, None, TRIALS).markdown()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=WORLDS)
    parser.add_argument("--users", type=int, help="of each data set; by default its own number")
    parser.add_argument("--trials", type=int, default=TRIALS)
    asked = parser.parse_args()
    sys.stdout.write(f"{table(asked.data, asked.users, asked.trials).markdown()}\n")


if __name__ == "__main__":
    main()
