"""Search for the mixes of attacks with the highest gain that no detector sees.

    python research/evasion_search.py --generations 4

A mix is an attack on ten targets by a share of the malicious users, among uniform reports (RPA) and
honest lies (RIA). The search also tunes the targets per report, the rate of APA2 and the width of
the seed search. It is evolutionary: a generation is drawn from a seed and from the best mix so far,
so the number of processes does not change the result.
"""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Annotated, Any, Self

import numpy as np
import typer

from ldprecover import ParameterError, frequency_oracle, recover
from ldprecover.estimation.metrics import frequency_gain
from ldprecover.evidence.alarms import raise_alarms
from ldprecover.recovery import ReportSource
from ldprecover_experiments.attacks import TARGETS, AttackSpec, Mix
from ldprecover_experiments.paper import PROTOCOLS
from ldprecover_experiments.parameters import EPSILON, Cell, GenuineUsers, load_genuine_users
from ldprecover_experiments.poisoned_round import PoisonedRound, simulate_round
from ldprecover_experiments.tables import Table

DETECTORS = ("alarms", "alarms and unmix")
"""The alarms at their default rate; or these and un-mixing, which must drop no report and give an
attack a probability below 1/2."""

GENERATION_SIZE = 16
SEARCH_ROUNDS = 4
"""A mix must stay undetected in each of these rounds."""
CONFIRMATION_ROUNDS = 20
"""A mix that would become the best is played again in as many fresh rounds."""
MAX_DETECTIONS = 1
"""Detections allowed in the confirmation rounds."""
CONFIRMATIONS_PER_GENERATION = 4

RATES = (0.4, 1.0)
"""Range of the coin's rate of APA2."""
SEARCH_WIDTHS = (1, 400)
"""Range of the number of hash seeds tried for a report."""


@dataclass(frozen=True)
class Candidate:
    """A mix of one attack on ten targets, uniform reports (`noise`) and honest lies (the rest).

    `search` is 1 for protocols without hash seeds.
    """

    attack: str
    model: str = "crafted"
    share: float = 1.0
    noise: float = 0.0
    each: int = 5
    rate: float = 0.5
    search: int = 100

    @property
    def mix(self) -> Mix:
        """The mix as the attack of a cell."""
        options: dict[str, Any] = {name: getattr(self, name) for name in self.tuned}
        parts = (
            (self.share, AttackSpec(self.attack, options=options), self.model),
            (self.noise, AttackSpec("rpa"), "crafted"),
            (self.lies, AttackSpec("ria"), "crafted"),
        )
        return Mix(tuple(part for part in parts if part[0] > 0))

    @property
    def lies(self) -> float:
        """The share of honest lies."""
        return max(0.0, round(1 - self.share - self.noise, 4))

    @property
    def tuned(self) -> list[str]:
        """The options of the attack that the search tunes."""
        own = {"apa": ["each"], "mga-a": ["each"], "apa2": ["rate"]}.get(self.attack, [])
        searched = self.model == "crafted" and self.attack != "ria"
        return [*own, "search"] if searched else own

    @property
    def label(self) -> str:
        """The mix as the table shows it."""
        if self.attack == "ria":
            shares = [(1 - self.noise, "RIA"), (self.noise, "RPA")]
        else:
            words = {"each": f"r' = {self.each}", "rate": f"rate {self.rate:g}"}
            if self.search > 1:
                words["search"] = f"search {self.search}"
            tuned = [words[name] for name in self.tuned if name in words]
            tuned += [self.model] if self.model != "crafted" else []
            attack = ", ".join([self.attack.upper(), *tuned])
            shares = [(max(self.share, 0.005), attack), (self.noise, "RPA"), (self.lies, "RIA")]
        return " + ".join(f"{share:.0%} {name}" for share, name in shares if share >= 0.005)

    @classmethod
    def random(cls, rng: np.random.Generator, attacks: Sequence[tuple[str, str]]) -> Self:
        """Return a random mix of one of these attacks."""
        attack, model = attacks[int(rng.integers(len(attacks)))]
        share = float(np.exp(rng.uniform(np.log(0.05), 0.0)))
        noise = (1 - share) * float(rng.uniform()) * int(rng.integers(2))  # half have no noise
        return cls(
            attack,
            model,
            *_shares(share, noise),
            int(rng.integers(2, TARGETS + 1)),
            round(float(rng.uniform(*RATES)), 3),
            int(np.exp(rng.uniform(*np.log(SEARCH_WIDTHS)))),
        )

    def neighbour(self, rng: np.random.Generator) -> Self:
        """Return a random mix near this one."""
        share, noise, rate, width = np.exp(0.25 * rng.standard_normal(4))
        attack_share, noise_share = _shares(self.share * share, self.noise * noise)
        return replace(
            self,
            share=attack_share,
            noise=noise_share,
            each=int(np.clip(self.each + rng.integers(-1, 2), 2, TARGETS)),
            rate=round(float(np.clip(self.rate * rate, *RATES)), 3),
            search=int(np.clip(round(self.search * width**2), *SEARCH_WIDTHS)),
        )


def _shares(share: float, noise: float) -> tuple[float, float]:
    """Return shares that sum to at most 1, the first at least 0.01."""
    share = max(float(share), 0.01)
    whole = max(1.0, share + float(noise))
    return round(share / whole, 4), round(float(noise) / whole, 4)


FIRST_CANDIDATES = (
    Candidate("ria"),
    Candidate("mga", "sampled", 1 / 7, 6 / 7),
    Candidate("apa", each=3, search=200),
    Candidate("apa", each=2, search=200),
    Candidate("apa2", search=200),
    Candidate("apa2", rate=0.42, search=200),
    Candidate("mga", "sampled"),
)
"""The known good mixes that start the first generation."""


@dataclass(frozen=True)
class Verdict:
    """The mean gain of a mix, its detectors, and the number of rounds with a detection."""

    gain: float
    detected_by: tuple[str, ...] = ()
    detections: int = 0


@dataclass(frozen=True)
class Result:
    """The best mix of a search, with its verdict in the confirmation rounds; None without any."""

    protocol: str
    detector: str
    best: Candidate | None = None
    confirmed: Verdict = Verdict(0.0)


Play = Callable[[range, Sequence[Mix]], Iterable[Verdict]]
"""Maps trials and mixes to a verdict for each mix."""


def judge(
    genuine_users: GenuineUsers, seed: int, protocol: str, detector: str, trials: range, mix: Mix
) -> Verdict:
    """Return the verdict on a mix; playing stops at the first detection that is one too many.

    Raises ParameterError for a mix that the protocol has no reports for.
    """
    gains, detected_by, detections = [], set[str](), 0
    for trial in trials:
        cell = Cell(genuine_users.name, protocol, mix, "crafted", trial=trial)
        round_ = simulate_round(cell, genuine_users, seed, reports=True)
        assert round_.targets is not None
        gains.append(frequency_gain(round_.poisoned.frequencies, round_.f_genuine, round_.targets))
        detectors = _detectors(round_, detector)
        detected_by |= detectors
        detections += bool(detectors)
        if detections > (MAX_DETECTIONS if len(trials) >= CONFIRMATION_ROUNDS else 0):
            break
    return Verdict(float(np.mean(gains)), tuple(sorted(detected_by)), detections)


def _detectors(round_: PoisonedRound, detector: str) -> set[str]:
    """Return which alarms a round raises. The cheap ones, which need counts alone, come first."""
    assert round_.reports is not None
    source = ReportSource(round_.oracle, round_.reports)
    for reports in (None, source):
        alarms = raise_alarms(round_.oracle, round_.together, reports)
        if raised := {alarm.name for alarm in alarms if alarm.raised}:
            return raised
    if detector == DETECTORS[0]:
        return set()
    conclusions = recover(round_.oracle, source, "unmix", tally=round_.together).conclusions
    assert conclusions is not None
    suspicious = conclusions.dropped or (conclusions.attack_probability or 0) >= 0.5
    return {"unmix"} if suspicious else set()


def search(protocol: str, detector: str, seed: int, generations: int, play: Play) -> Result:
    """Return the best mix of all generations that stays undetected on a protocol."""
    rng = np.random.default_rng([seed, *protocol.encode(), DETECTORS.index(detector)])
    attacks = attacks_on(protocol)
    seeded = frequency_oracle(protocol, EPSILON, 100).traits.seeded
    result = Result(protocol, detector)
    for number in range(generations):
        mixes = _generation(number, result.best, attacks, rng, seeded=seeded)
        verdicts = play(range(SEARCH_ROUNDS), [mix.mix for mix in mixes])
        undetected = [
            (verdict.gain, mix)
            for mix, verdict in zip(mixes, verdicts, strict=True)
            if not verdict.detected_by
        ]
        by_gain = sorted(undetected, key=lambda pair: -pair[0])
        for gain, mix in by_gain[:CONFIRMATIONS_PER_GENERATION]:
            if gain <= result.confirmed.gain:
                break
            trials = range(SEARCH_ROUNDS, SEARCH_ROUNDS + CONFIRMATION_ROUNDS)
            (confirmed,) = play(trials, [mix.mix])
            if confirmed.detections <= MAX_DETECTIONS and confirmed.gain > result.confirmed.gain:
                result = replace(result, best=mix, confirmed=confirmed)
                break
    return result


def attacks_on(protocol: str) -> list[tuple[str, str]]:
    """Return the attacks other than honest lies that a protocol has, each with its model."""
    crafted = [(name, "crafted") for name in ("mga", "mga-a", "apa", "apa2")]
    pairs = [("mga", "sampled"), *crafted]
    oracle = frequency_oracle(protocol, EPSILON, 100)
    if oracle.traits.one_item:  # the other attacks send the same reports
        return pairs[:1]

    def has_reports(attack: str, model: str) -> bool:
        try:
            candidate = AttackSpec(attack).make(model, tuple(range(TARGETS)))
            candidate.reports(oracle, 1, np.random.default_rng(0))
        except ParameterError:
            return False
        return True

    return [pair for pair in pairs if has_reports(*pair)]


def _generation(
    number: int,
    best: Candidate | None,
    attacks: Sequence[tuple[str, str]],
    rng: np.random.Generator,
    *,
    seeded: bool,
) -> list[Candidate]:
    """Return the known mixes first, then a quarter at random and the others near the best."""
    first = () if number else FIRST_CANDIDATES
    mixes = [mix for mix in first if mix.attack == "ria" or (mix.attack, mix.model) in attacks]
    while len(mixes) < GENERATION_SIZE:
        # Honest lies have no parameters: their neighbours are honest lies again.
        if best is not None and best.attack != "ria" and len(mixes) >= GENERATION_SIZE // 4:
            mixes.append(best.neighbour(rng))
        else:
            mixes.append(Candidate.random(rng, attacks))
    return mixes if seeded else [replace(mix, search=1) for mix in mixes]


def table(results: Iterable[Result]) -> Table:
    """Return the results as a table, a row for each protocol and detector."""
    rows = []
    for result in results:
        row, verdict = ["nothing", "", ""], result.confirmed
        if result.best is not None:
            count = f"{verdict.detections} of {CONFIRMATION_ROUNDS}"
            row = [result.best.label, f"{verdict.gain:+.2f}", count]
        rows.append([result.protocol.upper(), result.detector, *row])
    columns = ("protocol", "unseen by", "mix of malicious users", "gain", "seen in")
    return Table(columns, rows, "the highest gains found that are not seen", 2)


def main(
    data: str = "cities",
    users: Annotated[int | None, typer.Option(help="Default: the data's own number.")] = None,
    generations: int = 10,
    seed: int = 0,
    protocols: Annotated[list[str], typer.Option()] = [*PROTOCOLS],  # noqa: B006  typer copies it
    detectors: Annotated[list[str], typer.Option()] = [*DETECTORS],  # noqa: B006
    jobs: int = os.cpu_count() or 1,
) -> None:
    """Search for the mixes of attacks with the highest gain that no detector sees."""
    genuine_users = load_genuine_users(data, users=users)
    results = []
    with ProcessPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        for protocol, detector in product(protocols, detectors):

            def play(
                trials: range, mixes: Sequence[Mix], names: tuple[str, str] = (protocol, detector)
            ) -> Iterable[Verdict]:
                one = partial(judge, genuine_users, seed, *names, trials)
                return pool.map(one, mixes) if pool else map(one, mixes)

            results.append(search(protocol, detector, seed, generations, play))
    sys.stdout.write(f"{table(results).markdown()}\n")


if __name__ == "__main__":
    typer.run(main)
