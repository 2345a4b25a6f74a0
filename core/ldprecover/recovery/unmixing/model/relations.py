"""How a share of malicious reports shows in the sums of the estimates: z = a f - c + s, for each
item.

a is the share of honest reports, c what each item loses by reports that support it less often than
honest ones, and s the spikes of those that support it on purpose, of total rho.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ldprecover.crafting.crafter import DISPLACED_LAW, ENCODED_LAW
from ldprecover.laws import required
from ldprecover.protocols import FrequencyOracle, crafter_of
from ldprecover.types import FloatArray

_MOST = 0.9  # share of malicious reports
_MOST_BY_SUM = 0.3  # the same, where the sum of the estimates alone tells it
_SMALL_SHARES = (0.02, 0.05, 0.1, 0.2)
_OFF = (-1.5, 0.0, 1.5)  # standard errors of the sum


@dataclass(frozen=True)
class Relation:
    """Values of a, c and rho that the estimates allow, and the logarithm of their weight."""

    a: float
    c: float
    rho: float
    log_weight: float


@dataclass(frozen=True)
class Sums:
    """What the protocol lets the sum of the estimates tell of an attack.

    `total` is the sum, `error` its standard error. `displacements` are those of the protocol,
    divided by p - q: b times one is a shift. None means that nothing is shifted. `encoded` is what
    the estimates of unperturbed reports sum to, `encoded_displacement` the displacement of these.
    `fixed` says that the estimates of all reports sum to one.
    """

    total: float
    error: float
    d: int
    displacements: tuple[float, ...]
    encoded: float
    encoded_displacement: float
    fixed: bool

    @classmethod
    def of(cls, oracle: FrequencyOracle, z: FloatArray, sd: FloatArray) -> "Sums":
        """Return what the estimates z, with noise sd, sum to. Raises ParameterError for a protocol
        that lacks this.
        """
        crafter, scale = crafter_of(oracle), oracle.p - oracle.q
        others = required(crafter.encoded_others, oracle.protocol, ENCODED_LAW)
        displacements = required(crafter.displacements, oracle.protocol, DISPLACED_LAW)
        return cls(
            float(z.sum()),
            math.sqrt(float(sd @ sd)),
            z.size,
            tuple(each / scale for each in displacements),
            (1 + others - oracle.q * z.size) / scale,
            (oracle.q - others / (z.size - 1)) / scale,
            oracle.fixed_size is not None,
        )

    @property
    def honest(self) -> float:
        """The logarithm of the weight of there being no attack."""
        return 0.0 if self.fixed else -((self.total - 1) ** 2) / (2 * self.error**2)

    def at(self, c: float) -> Iterator[Relation]:
        """Yield the relations where estimates are shifted by c; rho 0 is a shift alone."""
        if not self.displacements:
            more = self.encoded - 1  # than honest reports sum to
            b = min(max((self.total - 1) / more, 0.0), _MOST_BY_SUM) if more > 0 else 0.0
            yield from self._sized(1 - b, c)
            return
        even = -math.log(len(self.displacements))
        for displacement in self.displacements:
            for relation in self._sized(1 - min(c / displacement, _MOST), c):
                yield Relation(relation.a, c, relation.rho, relation.log_weight + even)

    def _sized(self, a: float, c: float) -> Iterator[Relation]:
        left = self.total + self.d * c - a  # what the shift and the honest reports leave of the sum
        if self.fixed:
            if left > 0.001:
                yield Relation(a, c, left, 0.0)
            return
        for off in _OFF:
            rho = left + off * self.error
            if rho > 0.02:
                yield Relation(a, c, rho, -(off**2) / 2 - math.log(6))
        if c > 0:
            yield Relation(a, c, 0.0, -((left / self.error) ** 2) / 2 - math.log(6))

    def unshifted(self) -> Iterator[Relation]:
        """Yield the relations of a few small shares of malicious reports that shift nothing."""
        for b in _SMALL_SHARES:
            rho = self.total - 1 + b
            if rho > 0.01:
                yield Relation(1 - b, 0.0, rho, -math.log(4))

    def encoded_reports(self) -> Relation | None:
        """Return the relation of malicious reports that are all unperturbed, where the sum shows
        clearly that some are.

        It has the shift as well, so none is searched. None where no shift is searched in any case.
        """
        if self.fixed or not self.displacements:
            return None
        b = (self.total - 1) / (self.encoded - 1)
        if b <= 4 * self.error / abs(self.encoded - 1):
            return None
        b = min(b, _MOST)
        c = b * self.encoded_displacement
        return Relation(1 - b, c, b * self.encoded + self.d * c, math.log(10))
