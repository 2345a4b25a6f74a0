"""Un-mixing: empirical Bayes on the simplex, without knowledge of the attack."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.unmixing.estimates import NoisyEstimates
from ldprecover.recovery.unmixing.model.density import rounded
from ldprecover.recovery.unmixing.model.effects import NONE, Relation, Sums, on_some, on_targets
from ldprecover.recovery.unmixing.model.families import AttackFamily, likely, remainder_hypotheses
from ldprecover.recovery.unmixing.model.mixture import History, Hypothesis, Mixture
from ldprecover.recovery.unmixing.model.posterior import Unmixed, averaged, projection
from ldprecover.recovery.unmixing.model.shapes import AT_ZERO, shapes
from ldprecover.recovery.unmixing.prior import PRIOR
from ldprecover.types import FloatArray

_DEVIATIONS = (-1.5, 0.0, 1.5)  # of the share of reports that follow a law
_LEAST_OWN = 0.1  # of an item's variance, where most of it is shared


def unmix(
    oracle: FrequencyOracle,
    estimates: NoisyEstimates,
    *,
    targets: tuple[int, ...] = (),
    canaries: tuple[int, ...] = (),
    history: History | None = None,
    least_attack: float = 0.9,
) -> Unmixed:
    """Return the genuine users' frequencies and the attack, from estimates z with noise sd.

    Each estimate is a f - c + s + e. The frequencies f follow one law for all items, or are near
    their `history`; c is a shift, s are spikes on some items or on the targets, and e is the noise.
    Laws, shifts and spikes are averaged over by the likelihood of the estimates, and the
    frequencies are conditioned on their sum of one. The estimates are projected on the simplex
    instead if no hypothesis fits them. The `targets` may be attacked, by
    default the suspects that the filters found; the `canaries` are held by nobody. The frequencies
    take an attack into account if its probability by the hypotheses is above `least_attack`.

    Cost: some thousand densities of d items, each from one Fourier transform. Raises ParameterError
    for a protocol that does not state its displacements.
    """
    unmixer = _Unmixer(oracle, estimates, targets, canaries)
    hypotheses = unmixer.without_history()
    if history is not None:
        hypotheses += unmixer.with_history(history)
    is_hedged = history is None and not (estimates.dropped or canaries)
    result = averaged(hypotheses, least_attack, estimates.z, estimates.sd, is_hedged=is_hedged)
    return result or projection(estimates.z, estimates.sd)


def history_of(oracle: FrequencyOracle, z: FloatArray, sd: FloatArray) -> History:
    """Return the frequencies of an earlier round without an attack, from its estimates z."""
    unmixed = unmix(oracle, NoisyEstimates(z=z, sd=sd, n=0), least_attack=math.inf)
    return History(unmixed.frequencies, unmixed.sd**2)


class _Unmixer:
    """The search for the likely hypotheses on one round."""

    def __init__(
        self,
        oracle: FrequencyOracle,
        estimates: NoisyEstimates,
        targets: tuple[int, ...],
        canaries: tuple[int, ...],
    ) -> None:
        z, sd = estimates.z, estimates.sd
        # Of items that too many reports share it is as likely as not that they were raised.
        self._prior_attack = PRIOR.attack
        shared = () if targets or not estimates.are_raised else tuple(estimates.suspects)
        if shared:
            targets, self._prior_attack = shared, 0.5
        self.sums = Sums.of(oracle, z, sd, estimates.n)
        # Noise that all items share is removed, so that only the rest is left to each.
        own = np.maximum(sd**2 - (self.sums.shared / z.size) ** 2, _LEAST_OWN * sd**2)
        sd = sd if not self.sums.shared else sd.min() * rounded(np.sqrt(own) / sd.min())
        self._z, self._sd = z, sd
        self._targets, self._canaries, self._additions = targets, canaries, estimates.additions
        self._laws = shapes(z.size - len(canaries))
        self._is_target = np.zeros(z.size)
        self._is_target[list(targets)] = 1.0
        middle = float(np.median(sd))
        largest = max(0.0, -float(np.quantile(z, PRIOR.lowest_quantile))) + 2 * middle
        self._largest = largest
        finest = middle / (2 * math.sqrt(z.size))
        self._family = partial(AttackFamily, sums=self.sums, largest=largest, finest=finest)
        self._spikes = on_some(z.size)
        # Where nothing shifts, the estimates do not tell which items the surplus is on: other
        # attacked items would be the popular ones.
        self._all_known = bool(shared) or not self.sums.displacements
        self._log_attack = math.log(self._prior_attack)
        if self.sums.displacements:
            self._log_attack -= math.log(PRIOR.shift_choices)
        self._log_attack_on_targets = math.log(self._prior_attack * PRIOR.attack_on_targets / 2)
        self._remainder = partial(
            remainder_hypotheses,
            targets=targets,
            canaries=canaries,
            sums=self.sums,
        )

    def without_history(self) -> list[Hypothesis]:
        """Return the likely hypotheses without earlier rounds."""
        log_prior = math.log(1 - self._prior_attack)
        honest = self._remainder(self._z, self._sd, 1.0, log_prior)
        return [*likely(honest), *likely(self._attacks()), *self._known_additions()]

    def _attacks(self) -> Iterator[Hypothesis]:
        """Yield the attacks without earlier rounds, on any items or on the targets."""
        z, targets = self._z, self._targets
        model = Mixture(z, self._sd, self._largest, targets, self._canaries)
        log_prior = self._log_attack + math.log(1 - PRIOR.attack_on_targets if targets else 1.0)
        families = [self._family(log_prior=log_prior, laws=self._laws, spikes=self._spikes)]
        if targets and not self._additions:
            spikes = on_targets(targets, z.size, all_known=self._all_known)
            on_them = self._log_attack + math.log(PRIOR.attack_on_targets / 2)  # shifted, or not
            family = self._family(
                log_prior=on_them,
                laws=self._laws,
                spikes=spikes,
                shift_alone=False,
                unshifted=True,
            )
            families.append(family)
        for family in families:
            yield from family.hypotheses(model)
        encoded = self.sums.encoded_reports()
        if encoded is not None:
            choices = [(encoded, each) for each in self._spikes]
            yield from model.hypotheses(self._laws, choices, log_prior)

    def _known_additions(self) -> list[Hypothesis]:
        """Return the likely hypotheses whose additions come from the histogram of reports.

        Attacks that raise the targets, and those that others conceal, are as likely beforehand.
        """
        raised, concealed = (likely(self._with_known_additions(way)) for way in (True, False))
        if raised and concealed:
            odds = min(concealed[0].score - raised[0].score, 0.0)
            raised = [replace(each, score=each.score + odds) for each in raised]
        return raised + concealed

    def _with_known_additions(self, is_raising: bool) -> Iterator[Hypothesis]:
        """Yield the hypotheses of some additions: the law of each is uncertain, so its share is."""
        additions = [each for each in self._additions if each.is_raising is is_raising]
        for each in additions:
            log_prior = self._log_attack_on_targets - math.log(len(_DEVIATIONS) * len(additions))
            for number in _DEVIATIONS:
                share = each.share + number * each.deviation
                if not 0 < share < PRIOR.most_malicious:
                    continue
                added = share * each.estimates
                noise = 1 + (added / self._sd) ** 2 / PRIOR.equal_spike_shape
                sd = self._sd * rounded(np.sqrt(noise))
                score = log_prior + each.log_likelihood - number**2 / 2
                for hypothesis in self._remainder(self._z - added, sd, 1 - share, score):
                    yield _raising(hypothesis, self._is_target * is_raising, not is_raising)

    def with_history(self, history: History) -> list[Hypothesis]:
        """Return the likely hypotheses with earlier rounds."""
        laws = (AT_ZERO,)
        hypotheses: list[Hypothesis] = []
        distance = 0.0 if self.sums.fixed else (self.sums.total - 1) / self.sums.error
        honest = Relation(1.0, 0.0, 0.0, -(distance**2) / 2), NONE
        for past in map(history.drifted, PRIOR.drifts):
            model = Mixture(self._z, self._sd, self._largest, history=past)
            log_prior = math.log(PRIOR.history / len(PRIOR.drifts))
            hypotheses += model.hypotheses(laws, [honest], log_prior + math.log(1 - PRIOR.attack))
            log_prior += self._log_attack
            family = self._family(
                log_prior=log_prior, laws=laws, spikes=self._spikes, unshifted=True
            )
            hypotheses += family.hypotheses(model)
        return likely(hypotheses)


def _raising(hypothesis: Hypothesis, spike: FloatArray, is_concealed: bool) -> Hypothesis:
    """Return the hypothesis with other probabilities that an attack raised each item."""
    return replace(
        hypothesis,
        moments=lambda: replace(hypothesis.moments(), spike=spike),
        is_concealed=is_concealed,
    )
