"""Sentences about a demo's results."""

from ldprecover_cli.output import percent
from ldprecover_experiments.comparison import Comparison


def sentences(figures: Comparison) -> list[str]:
    """Return sentences on the attack, each recovery, and the value of known targets."""
    if not figures.settings.malicious_users:
        return [
            (
                "Nobody attacked: genuine and poisoned are the same, and what comes after is "
                "recovery's own doing."
            )
        ]
    error = {name: value for name, value in figures.mse.items() if value is not None}
    text = [_attack(figures, error), _without_targets(error)]
    if "unmixed" in error:
        text.append(_unmixed(figures, error))
    if figures.targets is not None:
        text.append(_with_targets(figures, error))
    return text


def _attack(figures: Comparison, error: dict[str, float]) -> str:
    text = (
        f"The attack took the MSE from {error['genuine']:.2e}, the noise of the protocol, to "
        f"{error['poisoned']:.2e}"
    )
    if figures.targets is None:
        return f"{text}."
    targets = list(figures.targets)
    true, poisoned = (float(f[targets].sum()) for f in (figures.true, figures.estimate("poisoned")))
    return (
        f"{text}, and the share of all targets together from a true {percent(true)} to an "
        f"estimated {percent(poisoned)}."
    )


def _without_targets(error: dict[str, float]) -> str:
    before, projected, recovered = (error[name] for name in ("poisoned", "projected", "recovered"))
    if projected < before:
        text = (
            "Projection on the simplex alone, blind to the attack, leaves "
            f"{_percent(projected / before)} of that MSE"
        )
    else:
        text = f"Projection on the simplex alone does not lower it ({projected:.2e})"
    if recovered >= before:
        return f"{text}; LDPRecover without the targets makes it worse ({recovered:.2e})."
    text += f"; LDPRecover without the targets leaves {_percent(recovered / before)}"
    if projected >= before:
        return f"{text}."
    if recovered >= projected:
        return f"{text}, no gain beyond the projection's."
    share = (before - projected) / (before - recovered)
    return f"{text}, and {_percent(share)} of that gain is the projection's."


def _unmixed(figures: Comparison, error: dict[str, float]) -> str:
    text = (
        "Un-mixing, which knows nothing either, leaves "
        f"{_percent(error['unmixed'] / error['poisoned'])}, "
        f"{_than(error['unmixed'], error['projected'])} projection alone"
    )
    fg = figures.fg
    if fg is None:
        return f"{text}."
    return f"{text}: all targets together come out {_over(fg['unmixed'])} their genuine estimate."


def _with_targets(figures: Comparison, error: dict[str, float]) -> str:
    fg = figures.fg
    assert fg is not None
    before, projected, error_with_targets = (
        error[name] for name in ("poisoned", "projected", "recovered_targets")
    )
    gain_known, gain_unknown = _over(fg["recovered_targets"]), _over(fg["recovered"])
    instead = "told or not" if gain_known == gain_unknown else f"not {gain_unknown}"
    return (
        f"LDPRecover*, which is told the targets, leaves {_percent(error_with_targets / before)}, "
        f"{_than(error_with_targets, projected)} "
        f"projection alone: all targets together come out {gain_known} their genuine "
        f"estimate, {instead}."
    )


def _than(error: float, other: float) -> str:
    if error == other:
        return "as much as"
    better, smaller, larger = error < other, min(error, other), max(error, other)
    times = (
        f"{larger / smaller:.3g} times " if smaller else ""
    )  # a tiny domain can be recovered without any error
    return f"{times}{'better' if better else 'worse'} than"


def _percent(share: float) -> str:
    return f"{100 * share:,.0f} %" if share >= 1 else f"{100 * share:.3g} %"


def _over(gain: float | None) -> str:
    assert gain is not None
    return f"{abs(100 * gain):.1f} points {'above' if gain >= 0 else 'below'}"
