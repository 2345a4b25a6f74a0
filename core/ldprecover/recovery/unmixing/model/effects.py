"""The effects of a share of malicious reports on the estimates: z = a f - c + s.

For each item z is the estimate and f the frequency among genuine users. a is the share of honest
reports. c is the shift: what an item loses because malicious reports support it less often than
honest ones do. s are the spikes, what malicious reports add on purpose; rho is their total. Named
items may be popular instead: f has spikes too then, which total `popularity`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ldprecover.crafting import crafter_of
from ldprecover.crafting.crafter import DISPLACED_LAW, ENCODED_LAW
from ldprecover.distributions import power
from ldprecover.protocols import FrequencyOracle
from ldprecover.protocols.laws import required
from ldprecover.recovery.unmixing.model.density import Grid
from ldprecover.recovery.unmixing.prior import PRIOR
from ldprecover.types import ComplexArray, FloatArray

_CUT = 1.4  # equal spikes of this mean, in lengths of the grid, hardly reach it, nor wrap around


@dataclass(frozen=True)
class Relation:
    """Values of a, c, rho and `popularity` that agree with the estimates, and their log-weight."""

    a: float
    c: float
    rho: float
    log_weight: float
    popularity: float = 0.0

    @property
    def scale(self) -> float:
        """The factor of a frequency that has no spike."""
        return self.a * (1 - self.popularity)

    @property
    def spikes(self) -> float:
        """The total of all spikes in the estimates, the attack's and the users'."""
        return self.rho + self.a * self.popularity


@dataclass(frozen=True, kw_only=True)
class Sums:
    """The evidence of the protocol and of the sum of the estimates about an attack.

    `total` is the sum, `error` its standard error. `displacements` are those of the protocol
    divided by p - q: a share b of malicious reports shifts the estimates by b times one of them. If
    there is no displacement, nothing shifts. `encoded` is the sum of the estimates of unperturbed
    reports, `encoded_displacement` is their displacement. `fixed` says that every report's
    estimates sum to one. `shared` is the part of the error that is noise which all items share:
    some reports support all of them.
    """

    total: float
    error: float
    d: int
    displacements: tuple[float, ...]
    encoded: float
    encoded_displacement: float
    fixed: bool
    shared: float = 0.0

    @classmethod
    def of(cls, oracle: FrequencyOracle, z: FloatArray, sd: FloatArray, n: int = 0) -> "Sums":
        """Return the sums of the estimates z, from n reports, with noise of deviations sd.

        Raises ParameterError for a protocol that does not state its displacements.
        """
        crafter, scale = crafter_of(oracle), oracle.p - oracle.q
        others = required(crafter.encoded_others, oracle.protocol, ENCODED_LAW)
        displacements = required(crafter.displacements, oracle.protocol, DISPLACED_LAW)
        variance, shared = float(sd @ sd), 0.0
        if n and oracle.laws.report_sums is not None:
            largest, _ = oracle.laws.largest_sum_moments(n) or (variance, 0.0)
            shared = max(largest - variance, 0.0)
        return cls(
            total=float(z.sum()),
            error=math.sqrt(variance + shared),
            d=z.size,
            displacements=tuple(each / scale for each in displacements),
            encoded=(1 + others - oracle.q * z.size) / scale,
            encoded_displacement=(oracle.q - others / (z.size - 1)) / scale,
            fixed=oracle.fixed_size is not None,
            shared=math.sqrt(shared),
        )

    def at(self, c: float) -> Iterator[Relation]:
        """Yield the relations at the shift c; rho 0 is a shift without spikes.

        A shift by `shared` noise has either sign.
        """
        total = self.total + self.d * c
        shares = [min(c / each, PRIOR.most_malicious) for each in self.displacements]
        if not self.displacements:
            # Crafted reports support several raised items each, unperturbed ones one.
            surpluses = [number * self.encoded - 1 for number in PRIOR.raised_by_report]
            shares = [(total - 1) / each if each > 0 else 0.0 for each in surpluses]
            shares = [min(max(each, 0.0), PRIOR.most_malicious_by_sum) for each in shares]
        least = PRIOR.least_spikes_fixed if self.fixed else PRIOR.least_spikes
        log_weight = -math.log(len(shares) * (1 if self.fixed else 2))
        if self.shared:
            log_weight -= (self.d * c / self.shared) ** 2 / 2
        for b in shares:
            rho = total - (1 - b)
            if rho > least:
                yield Relation(1 - b, c, rho, log_weight)
            if c > 0 and self.displacements and not self.fixed:
                yield Relation(1 - b, c, 0.0, log_weight - (rho / self.error) ** 2 / 2)

    def unshifted(self) -> Iterator[Relation]:
        """Yield the relations of small shares of malicious reports that shift nothing."""
        shares = PRIOR.small_shares
        for b in shares:
            rho = self.total - 1 + b
            if rho > PRIOR.least_spikes_unshifted:
                yield Relation(1 - b, 0.0, rho, -math.log(len(shares)))

    def encoded_reports(self) -> Relation | None:
        """Return the relation of unperturbed malicious reports, or None unless the sum shows some.

        It fixes the shift too. None as well if nothing shifts: then no shift is searched.
        """
        if self.fixed or not self.displacements:
            return None
        b = (self.total - 1) / (self.encoded - 1)
        if b <= PRIOR.encoded_errors * self.error / abs(self.encoded - 1):
            return None
        b = min(b, PRIOR.most_malicious)
        c = b * self.encoded_displacement
        return Relation(1 - b, c, b * self.encoded + self.d * c, math.log(PRIOR.encoded_reports))


@dataclass(frozen=True)
class Spikes:
    """About `k` items have a spike, of exponential sizes or, if `narrow`, of nearly equal ones.

    Each item has one with probability k/d. If `on_targets`, every target has one, and `others` of
    the k spikes are on items that are no targets.
    """

    k: int
    narrow: bool
    log_prior: float
    on_targets: bool = False
    others: int = 0

    def share(self, d: int, *, others: bool = False) -> float:
        """Return the probability that an item has a spike: a target, or one of the `others`.

        All items are alike if the spikes are not on targets.
        """
        if not self.on_targets:
            return self.k / d
        # Without others every item may be a target.
        return self.others / max(d - self.k + self.others, 1) if others else 1.0

    def transform(self, rho: float, d: int, grid: Grid, *, others: bool = False) -> ComplexArray:
        """Return the Fourier transform of the law of an item's spike; all spikes total `rho`.

        With `others` it is that of an item that is no target.
        """
        share = self.share(d, others=others)
        if rho == 0 or share == 0:
            return np.ones(grid.omega.size, np.complex128)
        shape = PRIOR.equal_spike_shape if self.narrow else 1
        return (1 - share) + share * _gamma(rho / self.k, shape, grid)


NONE = Spikes(1, False, 0.0)
"""The spikes of a relation without any."""


def _gamma(mu: float, shape: int, grid: Grid) -> ComplexArray:
    """Return the transform (1 + i w mu/shape)^-shape of a gamma law, cut off beyond the grid."""
    u = grid.omega * (mu / shape)
    if shape == 1:
        beyond = np.exp(-grid.top / mu - 1j * grid.omega * grid.top)
        return np.asarray((1 - beyond) / (1 + 1j * u), np.complex128)
    if mu >= _CUT * grid.top:
        return np.zeros(grid.omega.size, np.complex128)
    u = np.minimum(u, 1.0)  # beyond, it is below 2^-150, and such small numbers are slow
    return power(np.asarray(1 / (1 + 1j * u), np.complex128), shape)


def on_some(d: int) -> list[Spikes]:
    """Return the spikes on unknown items: on many of the d items, or on few.

    Equal spikes on all items are left out: they are a shift.
    """
    many = [(d // 2, False), (d // 2, True), (d, False)]
    numbers = [(k, False) for k in PRIOR.exponential_spikes]
    numbers += [(k, True) for k in PRIOR.equal_spikes]
    few = [(k, narrow) for k, narrow in numbers if k < PRIOR.few_of_items * d]
    shared = [(many, PRIOR.many_spikes), (few, 1 - PRIOR.many_spikes)]
    return [
        Spikes(k, narrow, math.log(probability / len(kinds)))
        for kinds, probability in shared
        for k, narrow in kinds
    ]


def on_targets(targets: Sequence[int], d: int, *, all_known: bool) -> list[Spikes]:
    """Return the spikes on the targets, and unless `all_known` on as many other items too."""
    t = len(targets)
    more = max(3, t)
    alone = 1.0 if all_known or more > d - t else PRIOR.all_targets_named
    return [
        Spikes(t + others, narrow, math.log(probability / 2), True, others)
        for others, probability in ((0, alone), (more, 1 - alone))
        for narrow in (False, True)
        if probability
    ]
