"""What canaries give to un-mixing: the table of docs/explanation/unmixing.md.

Cells of the evaluation, with ten more items that nobody holds. Un-mixing is told that they are
canaries, or takes them for items like others. Targets are never canaries, for an attacker can read
which they are; attacks on random items raise them too. Errors are those of the other items: the
mean over the trials is taken first, then ratios, then geometric means over data.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from math import nan

import numpy as np
from numpy.typing import NDArray

from ldprecover import RecoveryRequest
from ldprecover.estimation.metrics import mse
from ldprecover.recovery import RecoveryInputs, ReportSource, run_method
from ldprecover_experiments.paper import PROTOCOLS
from ldprecover_experiments.parameters import Cell, GenuineUsers, load_users_by_data
from ldprecover_experiments.poisoned_round import RoundSimulation, simulate_round
from ldprecover_experiments.tables import Table
from ldprecover_experiments.unmixing_evaluation import PARTS, Only, cells_of

DATA = ("ipums-like", "bump", "geometric")
CANARIES = 10
TRIALS = 2
COLUMNS = (
    *("attack", "protocol", "counts", "least", "reports", "least"),
    *("P(attack)", "told", "gain left", "told"),
)
VARIANTS = ((False, False), (False, True), (True, False), (True, True))
"""Whether un-mixing reads the reports, and whether it is told of the canaries."""


def sparing(cell: Cell, users: GenuineUsers, trials: int) -> Iterator[Cell]:
    """Yield the first trials of a cell whose targets are no canaries."""
    d = len(users.items) - CANARIES
    every = (replace(cell, trial=trial) for trial in count())
    return islice(
        (one for one in every if max(RoundSimulation(one, users, 0).targets or (0,)) < d), trials
    )


def unmixed(cell: Cell, users: GenuineUsers) -> list[tuple[float, float, float]]:
    """Return error, P(attack) and gain of un-mixing a round, for each of VARIANTS."""
    round_ = simulate_round(cell, users, 0, reports=True)
    d = round_.oracle.domain_size - CANARIES
    results = []
    assert round_.reports is not None
    for reads, informed in VARIANTS:
        inputs = RecoveryInputs(
            round_.oracle,
            round_.poisoned.frequencies,
            RecoveryRequest("unmix"),
            n=round_.together.n,
            reports=ReportSource(round_.oracle, round_.reports) if reads else None,
            canaries=tuple(range(d, d + CANARIES)) if informed else (),
        )
        recovery = run_method(inputs)
        assert recovery.conclusions is not None
        rise = recovery.recovered - round_.f_genuine
        gain = nan if round_.targets is None else float(rise[list(round_.targets)].sum())
        error = mse(recovery.recovered[:d], round_.truth[:d])
        results.append((error, recovery.conclusions.attack_probability or 0.0, gain))
    return results


def table(
    data: Sequence[str] = DATA,
    users: int | None = None,
    trials: int = TRIALS,
    attacks: Sequence[str] = PARTS["base"].attacks,
) -> Table:
    """Return by attack and protocol how many times canaries lessen the error of un-mixing."""
    users_by_data = {
        name: each.with_canaries(CANARIES)
        for name, each in load_users_by_data(data, users=users).items()
    }
    means = defaultdict(list)
    for cell, place in cells_of(Only(part=("base",), attack=attacks), users_by_data, 1).items():
        genuine = users_by_data[cell.data]
        results = [unmixed(each, genuine) for each in sparing(cell, genuine, trials)]
        means[place.attack, cell.protocol].append(np.mean(results, axis=0))
    rows = [
        [attack, protocol.upper(), *_columns(means[attack, protocol])]
        for attack in attacks
        for protocol in PROTOCOLS
        if (attack, protocol) in means
    ]
    every = [each for cells in means.values() for each in cells]
    return Table(COLUMNS, [*rows, ["all", "", *_columns(every)]])


def _columns(cells: Sequence[NDArray[np.float64]]) -> Iterator[str]:
    """Yield ratios of errors without and with canaries, for counts and for reports, then P(attack)
    and |FG| with the reports.
    """
    means = np.array(cells)
    errors, attack, gains = means.transpose(2, 1, 0)
    for without, with_ in (errors[:2], errors[2:]):
        yield f"{np.exp(np.log(without / with_).mean()):.2f}"
        yield f"{(without / with_).min():.2f}"
    yield from (f"{each.mean():.2f}" for each in attack[2:])
    targeted = gains[2:, ~np.isnan(gains[0])]
    yield from (f"{np.abs(each).mean():.3f}" if each.size else "" for each in targeted)
