"""The search for what no alarm sees: mixes of the catalogue's attacks, tuned for gain against the
alarms of a round.

A mix is an attack on targets, of some share of the malicious users, among uniform reports and
honest lies; with the number of targets in a report, the coins' rate and the width of the search for
seeds. Candidates come in generations of one size, drawn from a seed and from the best so far, so
that the same command finds the same whatever the processes.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from ldprecover import ParameterError, frequency_oracle, recover
from ldprecover.alarms import raise_alarms
from ldprecover.metrics import frequency_gain
from ldprecover.recovery import METHODS, ReportSource
from ldprecover_experiments.attacks import AttackSpec, Mix
from ldprecover_experiments.poisoned_round import PoisonedRound, draw_round
from ldprecover_experiments.setting import EPSILON, TARGETS, Cell, Crowd
from ldprecover_experiments.tables import Table

WATCHERS = ("alarms", "alarms and unmix")
"""By whom a mix must not be seen: the alarms at their default rate; these, and un-mixing, which
must drop no report and give an attack less than one half."""

GENERATION = 16
ROUNDS, CONFIRMED, ALLOWED, _TRIED = 4, 20, 1, 4
"""Rounds in none of which a mix may be seen; rounds of their own in which one that would be the
best is confirmed, and in how many of these it may be seen. Of a generation so many are tried at
most."""

_RATES, _WIDTHS = (0.4, 1.0), (1, 400)


@dataclass(frozen=True)
class Candidate:
    """A mix of one attack on ten targets, uniform reports (`noise`) and, what is left, honest lies
    about the targets.

    `search` is 1 where there are no seeds to search.
    """

    attack: str
    model: str = "crafted"
    share: float = 1.0
    noise: float = 0.0
    each: int = 5
    rate: float = 0.5
    search: int = 100

    @property
    def text(self) -> str:
        """The mix as the attack of a cell."""
        options: dict[str, Any] = {}
        if self.attack in ("apa", "mga-a"):
            options["each"] = self.each
        if self.attack == "apa2":
            options["rate"] = self.rate
        if self.model == "crafted" and self.attack != "ria":
            options["search"] = self.search
        name = f"{self.attack} {json.dumps(options, sort_keys=True)}" if options else self.attack
        parts = [
            (self.share, name, self.model),
            (self.noise, "rpa", "crafted"),
            (self.lies, "ria", "crafted"),
        ]
        return str(Mix.of(*(part for part in parts if part[0] > 0)))

    @property
    def lies(self) -> float:
        """The share that lies honestly."""
        return max(0.0, round(1 - self.share - self.noise, 4))

    @property
    def words(self) -> str:
        """The mix as tables have it."""
        tuned = {
            "apa": f", r' = {self.each}",
            "mga-a": f", r' = {self.each}",
            "apa2": f", rate {self.rate:g}",
        }
        if self.attack == "ria":
            return " + ".join(
                [
                    f"{1 - self.noise:.0%} RIA",
                    *([f"{self.noise:.0%} RPA"] if self.noise >= 0.005 else []),
                ]
            )
        search = (
            f", {self.model}"
            if self.model != "crafted"
            else f", search {self.search}"
            if self.search > 1
            else ""
        )
        rest = [
            f"{share:.0%} {what}"
            for share, what in ((self.noise, "RPA"), (self.lies, "RIA"))
            if share >= 0.005
        ]
        return " + ".join(
            [f"{self.share:.0%} {self.attack.upper()}{tuned.get(self.attack, '')}{search}", *rest]
        )

    @classmethod
    def drawn(cls, rng: np.random.Generator, attacks: Sequence[tuple[str, str]]) -> Self:
        """Return a random one."""
        attack, model = attacks[int(rng.integers(len(attacks)))]
        share = float(np.exp(rng.uniform(np.log(0.05), 0.0)))
        noise = (1 - share) * float(rng.uniform()) * int(rng.integers(2))  # every second has none
        return cls(
            attack,
            model,
            *_shares(share, noise),
            int(rng.integers(2, TARGETS + 1)),
            round(float(rng.uniform(*_RATES)), 3),
            int(np.exp(rng.uniform(*np.log(_WIDTHS)))),
        )

    def moved(self, rng: np.random.Generator) -> Self:
        """Return one that is near."""
        share, noise, rate, width = np.exp(0.25 * rng.standard_normal(4))
        of_attack, of_noise = _shares(self.share * share, self.noise * noise)
        return replace(
            self,
            share=of_attack,
            noise=of_noise,
            each=int(np.clip(self.each + rng.integers(-1, 2), 2, TARGETS)),
            rate=round(float(np.clip(self.rate * rate, *_RATES)), 3),
            search=int(np.clip(round(self.search * width**2), *_WIDTHS)),
        )


def _shares(share: float, noise: float) -> tuple[float, float]:
    """Return shares of at most one together, and of the attack at least one in a hundred."""
    share = max(float(share), 0.01)
    whole = max(1.0, share + float(noise))
    return round(share / whole, 4), round(float(noise) / whole, 4)


_HINTS = (
    Candidate("ria"),
    Candidate("mga", "sampled", 1 / 7, 6 / 7),
    Candidate("apa", each=3, search=200),
    Candidate("apa", each=2, search=200),
    Candidate("apa2", search=200),
    Candidate("apa2", rate=0.42, search=200),
    Candidate("mga", "sampled"),
)
"""What is tried first."""


@dataclass(frozen=True)
class Verdict:
    """What a mix gained, on average over the rounds played, who saw it in any of them, and in how
    many it was seen.
    """

    gain: float
    seen: tuple[str, ...] = ()
    times: int = 0


@dataclass(frozen=True)
class Found:
    """The best mix that a search found for one protocol and watcher, and how it did in the rounds
    that confirm.
    """

    protocol: str
    watcher: str
    best: Candidate | None = None
    confirmed: Verdict | None = None


Play = Callable[[range, Sequence[str]], Sequence[Verdict]]
"""From trials and the texts of mixes to what became of each mix."""


def judged(
    crowd: Crowd, seed: int, protocol: str, watcher: str, trials: range, text: str
) -> Verdict:
    """Return what a mix gains in these trials, and who sees it, up to the trial in which it is seen
    too often.

    Raises ParameterError for what the protocol has no reports for.
    """
    gains, seen, times = [], set[str](), 0
    for trial in trials:
        round_ = draw_round(
            Cell(crowd.name, protocol, text, "crafted", trial=trial), crowd, seed, reports=True
        )
        assert round_.targets is not None
        gains.append(frequency_gain(round_.poisoned.frequencies, round_.f_genuine, round_.targets))
        who = _seen_by(round_, watcher)
        seen |= who
        times += bool(who)
        if times > (ALLOWED if len(trials) >= CONFIRMED else 0):
            break
    return Verdict(float(np.mean(gains)), tuple(sorted(seen)), times)


def _seen_by(round_: PoisonedRound, watcher: str) -> set[str]:
    """Return the alarms that a round raises, those of its counts first and the others only where
    these are silent.
    """
    seen = {alarm.name for alarm in raise_alarms(round_.oracle, round_.together) if alarm.raised}
    if seen or round_.reports is None:
        return seen
    source = ReportSource(round_.oracle, round_.reports)
    seen = {
        alarm.name for alarm in raise_alarms(round_.oracle, round_.together, source) if alarm.raised
    }
    if seen or watcher == WATCHERS[0]:
        return seen
    found = recover(
        round_.oracle,
        round_.poisoned.frequencies,
        method="unmix",
        n=round_.together.n,
        reports=source,
    ).conclusions
    assert found is not None
    return {"unmix"} if found.dropped or (found.attack_probability or 0) >= 0.5 else set()


@dataclass(frozen=True)
class Search:
    """A search on one protocol: generations of mixes, drawn with the seed and from the best that
    was not seen.

    Raises ParameterError for a watcher that there is not.
    """

    protocol: str
    watcher: str
    seed: int
    generations: int

    def __post_init__(self) -> None:
        if self.watcher not in watchers():
            raise ParameterError(
                f"the watcher must be one of {', '.join(watchers())}, not {self.watcher!r}"
            )

    def run(self, play: Play, progress: Callable[[int], None] = lambda played: None) -> Found:
        """Return the best mix of all generations; `play` may play the mixes of one generation at
        once.

        After each generation `progress` is called with the number of mixes that it had.
        """
        rng = np.random.default_rng(
            [self.seed, *self.protocol.encode(), WATCHERS.index(self.watcher)]
        )
        attacks, seeded = (
            attacks_on(self.protocol),
            frequency_oracle(self.protocol, EPSILON, 100).traits.seeded,
        )
        found = Found(self.protocol, self.watcher)
        for number in range(self.generations):
            mixes = _generation(number, found.best, attacks, rng, seeded=seeded)
            verdicts = play(range(ROUNDS), [mix.text for mix in mixes])
            unseen = [
                (verdict.gain, mix)
                for mix, verdict in zip(mixes, verdicts, strict=True)
                if not verdict.seen
            ]
            least = 0.0 if found.confirmed is None else found.confirmed.gain
            for gain, mix in sorted(unseen, key=lambda one: -one[0])[:_TRIED]:
                if gain <= least:
                    break
                (confirmed,) = play(range(ROUNDS, ROUNDS + CONFIRMED), [mix.text])
                if confirmed.times <= ALLOWED and confirmed.gain > least:
                    found = replace(found, best=mix, confirmed=confirmed)
                    break
            progress(len(mixes))
        return found


def watchers() -> tuple[str, ...]:
    """Return by whom a mix can be seen: without the method unmix by the alarms alone."""
    return WATCHERS if "unmix" in METHODS else WATCHERS[:1]


def attacks_on(protocol: str) -> list[tuple[str, str]]:
    """Return the attacks beside honest lies, and their models, that a protocol has; of those that
    are one the first.
    """
    every = [
        ("mga", "sampled"),
        ("mga", "crafted"),
        ("mga-a", "crafted"),
        ("apa", "crafted"),
        ("apa2", "crafted"),
    ]
    oracle = frequency_oracle(protocol, EPSILON, 100)
    if oracle.traits.one_item:
        return every[:1]
    found = []
    for attack, model in every:
        try:
            AttackSpec(attack).make(model, tuple(range(TARGETS))).reports(
                oracle, 1, np.random.default_rng(0)
            )
        except ParameterError:
            continue
        found.append((attack, model))
    return found


def _generation(
    number: int,
    best: Candidate | None,
    attacks: Sequence[tuple[str, str]],
    rng: np.random.Generator,
    *,
    seeded: bool,
) -> list[Candidate]:
    """Return mixes: the hints first, then a quarter at random and the others near the best."""
    found = (
        [hint for hint in _HINTS if hint.attack == "ria" or (hint.attack, hint.model) in attacks]
        if not number
        else []
    )
    while len(found) < GENERATION:
        # Near honest lies alone there is nothing but these.
        near = best is not None and best.attack != "ria" and len(found) >= GENERATION // 4
        found.append(
            best.moved(rng) if best is not None and near else Candidate.drawn(rng, attacks)
        )
    return found if seeded else [replace(mix, search=1) for mix in found]


class Verdicts:
    """Verdicts on the disk, a line each, so that a search that was stopped goes on where it was.

    What a broken-off write left is passed over.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._known: dict[str, Verdict] = {}
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
            try:
                key, gain, seen, times = json.loads(line)
                self._known[key] = Verdict(float(gain), tuple(seen), int(times))
            except (ValueError, TypeError):
                continue

    def player(
        self,
        crowd: Crowd,
        search: Search,
        run: Callable[[Callable[[str], Verdict], Sequence[str]], Iterable[Verdict]],
    ) -> Play:
        """Return what plays a search's mixes: those that are not known by `run`, a map, which may
        be of processes.
        """

        def play(trials: range, texts: Sequence[str]) -> list[Verdict]:
            of = (
                f"{crowd.name} {crowd.digest} {crowd.n} {search.seed} {search.protocol} "
                f"{search.watcher} {trials}"
            )
            keys = {text: f"{of} {text}" for text in texts}
            missing = [text for text, key in keys.items() if key not in self._known]
            one = partial(judged, crowd, search.seed, search.protocol, search.watcher, trials)
            for text, verdict in zip(missing, run(one, missing), strict=True):
                self._known[keys[text]] = verdict
                with self.file.open("a", encoding="utf-8") as file:
                    line = [keys[text], verdict.gain, verdict.seen, verdict.times]
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
            return [self._known[keys[text]] for text in texts]

        return play


def table(found: Iterable[Found]) -> Table:
    """Return what the searches found: a row for each protocol and watcher."""
    rows = []
    for one in found:
        if one.best is None or one.confirmed is None:
            rows.append([one.protocol.upper(), one.watcher, "nothing", "", ""])
            continue
        seen = f"{one.confirmed.times} of {CONFIRMED}"
        rows.append(
            [one.protocol.upper(), one.watcher, one.best.words, f"{one.confirmed.gain:+.2f}", seen]
        )
    columns = ("protocol", "unseen by", "mix of malicious users", "gain", "seen in")
    return Table(columns, rows, "the highest gains found that are not seen", 2)
