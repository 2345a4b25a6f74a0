"""The constants of un-mixing: the prior over rounds and attacks, and the filters' thresholds.

No constant depends on the protocol, on epsilon or on the data, and users set none. *Chosen* marks a
value that follows from no derivation; the tables in docs/measurements hold for these values.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Prior:
    """Probabilities before the round, limits of its hypotheses, and the grid of their search.

    Logarithms are natural, and their unit is the nat. Shares are between 0 and 1.
    """

    # --- Is there an attack, and on which items?

    attack: float = 0.2
    """Probability of an attack. Chosen."""

    shift_choices: int = 20
    """Shifts, about, of which the best is taken: some 30 are tried, and neighbours are alike. An
    attack that shifts is less probable by this factor, as in a Bonferroni correction."""

    attack_on_targets: float = 0.9
    """Probability that an attack is on the items named as targets, where some are named; that it is
    on others is the remainder. Chosen."""

    all_targets_named: float = 0.9
    """Probability that the named targets are all of the attacked items. Chosen."""

    shift_alone: float = 0.25
    """Probability of an attack that lowers all items and raises none visibly. Chosen."""

    encoded_reports: float = 10.0
    """Prior odds of unperturbed reports against other attacks, where the sum of the estimates shows
    a surplus of `encoded_errors` standard errors: they are the attacks of the literature."""

    encoded_errors: float = 4.0
    """Standard errors of the sum above which unperturbed reports are considered: an honest round
    exceeds 4 with probability 3e-5."""

    share_decay: float = 9.0
    """The prior density of the share b of malicious reports is in proportion to (1 - b)^9: its mean
    is one eleventh. Chosen."""

    # --- The spikes: what malicious reports add to the attacked items.

    many_spikes: float = 2 / 3
    """Probability of spikes on half of the items or on all: attacks that name no few targets, and
    many small attackers together. Spikes on few items are the remainder. Chosen."""

    few_of_items: float = 0.4
    """Largest number of spikes that counts as few, as a share of the items: just below d/2, the
    smallest number that counts as many."""

    exponential_spikes: tuple[int, ...] = (5, 10, 20, 40, 80, 160, 320)
    """Numbers of spikes of exponential sizes: doubling, as a mistaken number within a factor of 1.4
    hardly changes that law."""

    equal_spikes: tuple[int, ...] = (
        *range(3, 13),
        *(14, 16, 18, 20, 23, 26, 30, 35, 40, 80, 160, 320),
    )
    """Numbers of nearly equal spikes: a denser list, because their size is the total over their
    number. Fewer than 3 look like popular items."""

    equal_spike_shape: int = 300
    """Shape of the gamma law of nearly equal spikes: their relative deviation is 300^-1/2 = 6 %,
    which covers the gaps of the list above."""

    share_deviation: float = 0.15
    """Relative deviation of the share of malicious reports from the one that a histogram shows:
    reports of another law that prefers the same items. Chosen."""

    # --- The sums: the share of malicious reports and what they support.

    most_malicious: float = 0.9
    """Largest share of malicious reports considered. Chosen: honest ones must show at all."""

    most_malicious_by_sum: float = 0.3
    """The same where only the sum of the estimates tells the share. Chosen."""

    raised_by_report: tuple[int, ...] = (1, 4)
    """Raised items that a malicious report supports, where only the sum of the estimates tells the
    share. Chosen: the shares of more items differ less."""

    small_shares: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2)
    """Shares of malicious reports tried where they shift nothing. Chosen."""

    least_spikes_fixed: float = 0.001
    """Least total of spikes, in units of frequency, if the sum of the estimates is exact."""

    least_spikes: float = 0.02
    """Least total of spikes otherwise: less is within the noise of the sum."""

    least_spikes_unshifted: float = 0.01
    """Least total of spikes if malicious reports shift nothing."""

    # --- History: earlier, clean rounds over the same items.

    history: float = 0.9
    """Probability that earlier rounds are a guide to this one. Chosen."""

    drifts: tuple[float, ...] = (0.05, 0.15, 0.4)
    """Standard deviations of a frequency's relative change since: small, some, large. Chosen."""

    moved: float = 0.02
    """Probability that an item moved by as much as the largest frequency. Chosen."""

    # --- The search.

    lowest_quantile: float = 0.15
    """Quantile of the estimates that bounds the shift: 15 % of the items, at least, are taken to be
    held by next to nobody, so that their estimates are minus the shift and noise."""

    shifts: int = 9
    """Shifts of a grid: from 0 to the bound, then between the neighbours of the best one."""

    close: float = 6.0
    """Nats below the best at which a neighbouring shift is dropped: e^-6 = 0.25 % of its weight."""

    likely: float = 12.0
    """Nats below the best at which a hypothesis is dropped: 150 of them have less than 150 e^-12 =
    0.1 % of the best one's weight."""

    most_hypotheses: int = 150
    """Hypotheses averaged over, of each kind. Chosen for time."""

    # --- Densities.

    floor: float = 1e-9
    """Least density, in units of the noise's inverse: no estimate excludes a hypothesis alone."""

    faint: float = 30
    """Multiples of `floor` below which a density is rounding of the transform."""


PRIOR = Prior()


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """Limits of the report filters. Standard deviations are those of honest reports."""

    # --- Sizes: how many items a report supports.

    size_excess: float = 0.1
    """Share of the reports of a size that must exceed the honest fit. Chosen: below it, dropping
    costs more honest reports than it removes malicious ones."""

    # --- Sets of items that reports share.

    pair_items: int = 64
    """Most supported items among whose pairs a set is searched: an attack raises its targets."""

    rounds: int = 8
    """Sets that are searched one after the other, for several attackers. Chosen for time."""

    set_excess: float = 0.03
    """Share of the reports of a bin that must exceed the honest fit. Chosen."""

    set_score: float = 12.0
    """Standard deviations by which the dropped bins must exceed the honest fit. Chosen: the
    set and its bins were themselves picked among many."""

    suspicious: float = 3.0
    """Nats of a set's evidence, less its price, above which it counts: its p-value is below .05."""

    honest_loss: float = 0.5
    """Probability of the dropped sizes or bins, for honest reports, above which nothing is
    dropped: the estimates would lose more than half of the reports."""

    # --- Cells of a histogram: how often each of a few different reports was sent.

    full_cell: float = 1e-4
    """Probability, at most, that any cell of an honest round is dropped as too full."""

    most_cells: int = 512
    """Cells dropped at most. Chosen for time: their matrix is inverted."""

    least_known: float = 0.05
    """Least eigenvalue of I - P over the dropped cells, see `Cells`: what the others say in their
    place has at most 20 times the variance of a cell. Chosen."""

    set_evidence: float = 6.0
    """Nats by which a set that reports raise explains the histogram, beyond the price of naming it:
    an honest round has such a set with a probability of e^-6 about."""

    # --- Excess of bins.

    bin_score: float = 6.0
    """Standard deviations by which a bin must exceed the fit: 1e-9 per bin for normal counts."""

    # --- Estimates without bias from the reports that pass.

    set_mass: float = 0.9
    """Share of the genuine users that holds items of a set, above which the set is theirs and not
    an attacker's."""

    least_gap: float = 0.03
    """Multiple of p - q by which the support of an item in a set must still depend on its holders
    for the item to be estimated: below it, its deviation is 33 times the usual one."""

    least_rate: float = 0.1
    """Multiple of the honest support rate below which no measured rate is believed."""

    unknown_deviation: float = 20.0
    """Deviation of an item that cannot be estimated, in medians of all deviations: as good as
    unknown, and finite."""


THRESHOLDS = Thresholds()
