"""The attack that no test of a round's reports can detect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache

import numpy as np

from ldprecover import FrequencyOracle, ParameterError
from ldprecover.certificate import undetectable
from ldprecover.protocols.laws import required
from ldprecover.types import FloatArray, Reports, Rng
from ldprecover_attacker.base import AttackPlan, draw_items
from ldprecover_attacker.targeted import TargetedAttack

_CELLS = 1 << 22  # (report, item) pairs of a block of reports
_SAMPLE = 20_000


@dataclass(frozen=True)
class Mimicry(TargetedAttack):
    """Turns honest reports into honest reports of other users, who hold the targets more often.

    No test of reports can then see the attack, and no recovery without other knowledge can undo it.
    `share` is the malicious share of all reports, above 0 and below 1. `frequencies` are those of
    the honest users, as the attacker knows them: the true ones, estimates or a guess; None takes
    all items for equally frequent.

    The round looks like the frequencies (1 - share) f + g, which
    `ldprecover.certificate.undetectable` states. A report is an honest one of a target. It is kept
    with a probability that leads to the law sum_v g_v R_v / share, or else drawn again.

    S is 1, and the gain is beta((1-q)/(p-q) - f_T) for few targets among many items, up to what
    that law falls below zero for a few reports, which nobody can send: `support` has it in.

    Raises ParameterError for a share or frequencies that do not fit.

        Mimicry([3, 40], share=0.1).reports(oracle, m=1000, rng=np.random.default_rng(0))
    """

    name = "mimicry"

    _: KW_ONLY
    share: float = 0.05
    frequencies: Sequence[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.share, bool) or not 0 < self.share < 1:
            raise ParameterError(f"share must be above 0 and below 1, not {self.share!r}")
        if self.frequencies is not None:
            object.__setattr__(self, "frequencies", tuple(map(float, self.frequencies)))

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> AttackPlan:
        targets = tuple(self.target_indices(oracle.domain_size).tolist())
        frequencies = None if self.frequencies is None else tuple(self.frequencies)
        law = _law_of(oracle, targets, self.share, frequencies)
        return AttackPlan(send=law.reports, support=lambda m: law.support())


@dataclass(frozen=True, eq=False)
class _Law:
    """The law sum_v weights_v R_v of reports, where it is above zero; the weights sum to one."""

    oracle: FrequencyOracle
    weights: FloatArray

    @property
    def block(self) -> int:
        """The number of reports that are drawn at a time."""
        return max(1, _CELLS // self.weights.size)

    def reports(self, m: int, rng: Rng) -> Reports:
        """Return m reports: proposals that are kept with the probability 1 - excess."""
        blocks, missing = [self.oracle.perturb([], rng)], m
        while missing:
            n = min(int(1.1 * missing * self._raised) + 100, self.block)
            proposals, excess = self._propose(n, rng)
            blocks.append(proposals[rng.random(n) >= excess][:missing])
            missing -= len(blocks[-1])
        return np.concatenate(blocks)

    def support(self) -> FloatArray:
        """Return the expected share of reports that support each item.

        The share of the weights is known. An excess above one adds little to it, which a sample of
        proposals estimates.
        """
        proposals, excess = self._propose(min(_SAMPLE, self.block), np.random.default_rng(0))
        cut = np.maximum(excess - 1, 0.0) * self._raised / len(proposals)
        support = self.oracle.laws.honest_support(self.weights)
        support = support + cut @ self.oracle.supports(proposals)
        clipped: FloatArray = np.clip(support / (1 + cut.sum()), 0.0, 1.0)
        return clipped

    @property
    def _raised(self) -> float:
        return float(np.maximum(self.weights, 0.0).sum())

    def _propose(self, n: int, rng: Rng) -> tuple[Reports, FloatArray]:
        """Return honest reports of raised items, and what the law has less of each, as a share."""
        log = required(self.oracle.laws.log_likelihood, self.oracle.protocol, "a law of reports")
        more, less = np.maximum(self.weights, 0.0), np.maximum(-self.weights, 0.0)
        reports = self.oracle.perturb(draw_items(more / more.sum(), n, rng), rng)
        if not less.any():
            return reports, np.zeros(n)
        ratio = log(reports, less / less.sum()) - log(reports, more / more.sum())
        return reports, less.sum() / more.sum() * np.exp(ratio)


# Each call of an attack makes its plan, and the linear programme may take a second.
@lru_cache(maxsize=8)
def _law_of(
    oracle: FrequencyOracle,
    targets: tuple[int, ...],
    share: float,
    frequencies: tuple[float, ...] | None,
) -> _Law:
    d = oracle.domain_size
    f = np.full(d, 1 / d) if frequencies is None else np.array(frequencies)
    looks = undetectable(oracle, f, targets, share).frequencies
    return _Law(oracle, (looks - (1 - share) * f) / share)
