"""Recovery of the honest frequencies from a poisoned round, by one of METHODS."""

from __future__ import annotations  # help() then shows annotations by their short names

import warnings
from collections.abc import Callable, Iterable
from typing import TypeAlias, cast

from numpy.typing import ArrayLike

from ldprecover._checks import finite_vector, plain_array
from ldprecover.errors import CountsAloneWarning, ParameterError
from ldprecover.estimation.estimates import Estimates
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import Conclusions, Dropped
from ldprecover.recovery.contract import (
    AUTO,
    DEFAULT_ETA,
    MAX_ETA,
    METHODS,
    NEEDS,
    Method,
    Option,
    Recovery,
    RecoveryInputs,
    RecoveryRequest,
    recover_tally,
    run_method,
)
from ldprecover.recovery.malicious_models import (
    MALICIOUS_MODELS,
    MaliciousShare,
    estimate_share,
)
from ldprecover.recovery.methods import BUILT_IN
from ldprecover.recovery.methods.auto import chosen_method
from ldprecover.reports.source import ReportSource
from ldprecover.reports.tally import Tally
from ldprecover.types import FloatArray, Reports

__all__ = [
    "AUTO",
    "DEFAULT_ETA",
    "MALICIOUS_MODELS",
    "MAX_ETA",
    "METHODS",
    "NEEDS",
    "Conclusions",
    "Dropped",
    "MaliciousShare",
    "Method",
    "Option",
    "Recovery",
    "RecoveryFunction",
    "RecoveryInputs",
    "RecoveryRequest",
    "RoundData",
    "chosen_method",
    "estimate_share",
    "recover",
    "recover_tally",
    "run_method",
]

METHODS.update((method.name, method) for method in BUILT_IN)


RoundData: TypeAlias = Reports | Callable[[], Iterable[Reports]] | ReportSource | Tally | ArrayLike
"""The data of a round that `recover` takes:

- the reports: an array of integers, as `WireForm.rows` takes it; a function that returns an
  iterator over arrays and is called for each pass; or a ReportSource of the same oracle, which may
  read them elsewhere;
- their Tally, where the reports are not kept;
- their unbiased and unclipped frequencies, d floats: integers are reports.
"""

RecoveryFunction: TypeAlias = Callable[[FloatArray, FrequencyOracle], ArrayLike]
"""From the estimates and the oracle to recovered frequencies, of which `Method.of` is a method."""


def recover(
    oracle: FrequencyOracle,
    data: RoundData,
    request: RecoveryRequest | str | Method | RecoveryFunction = AUTO,
    *,
    tally: Tally | None = None,
    n: int | None = None,
) -> Recovery:
    """Return what a method recovers from a poisoned round over d items.

    Parameters:
        oracle: The oracle of the reports.
        data: The packed reports, as an array or in another form of `RoundData`: a function that
            returns them, a ReportSource, their Tally, or d unbiased and unclipped frequencies.
        request: The method and the assumptions about the attack. A str or a Method is short for the
            request with this method and the defaults, a function (estimates, oracle) -> frequencies
            for `Method.of` of it. "auto" chooses a method.
        tally: The Tally of the reports, if it is known. It saves the pass that counts them.
        n: The number of reports behind frequencies, if it is known.

    A note of the result names the method that "auto" chose, and the assumptions that the method
    does not use. If the oracle has the trait `histogram`, methods that read reports work from the
    Tally too, with the same result.

    Raises ParameterError, with the reason, for a request that the method cannot serve, and
    CountsAloneWarning where a method would also filter the reports, and has their counts alone.

        import numpy as np
        from ldprecover import RecoveryRequest, frequency_oracle, recover

        oracle = frequency_oracle("oue", epsilon=1.0, domain_size=100)
        reports = oracle.perturb(np.arange(100).repeat(50))
        recover(oracle, reports).recovered
        recover(oracle, reports, RecoveryRequest("ldprecover", eta=0.1, targets=[3, 40])).recovered
    """
    if isinstance(request, str):
        request = RecoveryRequest(request)
    elif not isinstance(request, RecoveryRequest):
        request = RecoveryRequest(own=request)
    source, tally = _read(oracle, data, tally)
    if tally is None:
        frequencies = finite_vector(cast(ArrayLike, data), "frequencies")
    elif n is not None:
        raise ParameterError("n is for frequencies alone: reports and tallies have their number")
    else:
        frequencies, n = Estimates.of(oracle, tally).frequencies, tally.n
    recovery = run_method(RecoveryInputs(oracle, frequencies, request, n, source))
    filters = "reports" in request.method_of(recovery).better_with and not oracle.traits.one_item
    if source is None and filters:
        warnings.warn(
            f"{recovery.method} got counts alone, and cannot filter the reports: pass the reports "
            "first where they are kept",
            CountsAloneWarning,
            stacklevel=2,
        )
    return recovery


def _read(
    oracle: FrequencyOracle, reports: object, tally: Tally | None
) -> tuple[ReportSource | None, Tally | None]:
    """Return the source of the reports and their tally: of frequencies, neither."""
    if isinstance(reports, Tally):
        source = ReportSource.of_tally(oracle, reports) if oracle.traits.histogram else None
        return source, reports
    if not callable(reports) and not isinstance(reports, ReportSource):
        is_list, reports = isinstance(reports, list | tuple), plain_array(reports, "frequencies")
        if reports.dtype.kind not in "biuV" and reports.ndim == 1:
            return None, None
        if is_list:
            raise ParameterError(
                "frequencies must be floats and reports an array, not a list of integers: give "
                "np.array(data, float) or np.array(data)"
            )
    source = ReportSource.of(oracle, reports, tally)
    return source, source.tally() if tally is None else tally
