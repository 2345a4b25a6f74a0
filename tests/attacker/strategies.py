"""Any protocol, and any attack on d items."""

from hypothesis import strategies as st

from ldprecover import OLH, FrequencyOracle, frequency_oracle
from ldprecover.crafting import DEFAULT_SEARCH, crafter_of
from ldprecover.crafting.crafter import Crafter
from ldprecover.protocols import LLH, PROTOCOLS
from ldprecover_attacker import (
    AA,
    AGAINST,
    APA,
    APA2,
    MGA,
    MGAA,
    MLA,
    MODELS,
    RIA,
    RPA,
    Attack,
    Cancel,
    InputPoisoning,
    ItemAttack,
    Joint,
    Manip,
    Mimicry,
    Several,
)
from ldprecover_attacker.cancel import pair_moments

NO_ROOM = "in a report that supports as many items as an honest one"
TOO_FEW_ITEMS = "apa can hide no target"

epsilons = st.floats(0.01, 10)
searches = st.integers(1, 30)
models = st.sampled_from(MODELS)


def aims_at_numbers(oracle: FrequencyOracle) -> bool:
    """Return whether APA2 and Cancel have reports of this protocol."""
    return type(crafter_of(oracle)).hit_reports is not Crafter.hit_reports


def has_room_together(oracle: FrequencyOracle, r: int) -> bool:
    """Return whether reports can support r items together, as Joint makes them."""
    if type(crafter_of(oracle)).joint_reports is Crafter.joint_reports:
        return False
    return not oracle.traits.seeded or oracle.own["hash_range"] ** (r - 1) <= 8192


def refusal(attack: Attack, oracle: FrequencyOracle) -> str | None:
    """Return what a refusal must say, or None where there is no reason for one."""
    if isinstance(attack, Several):
        return next(
            (reason for inner in attack.attacks if (reason := refusal(inner, oracle))), None
        )
    if isinstance(attack, Joint):
        r = len(attack.targets) + (attack.item is not None)
        if not has_room_together(oracle, r):
            return rf"lacks reports that support a set|too few .* seeds put {r} items into one"
        return None
    if isinstance(attack, APA2) and oracle.fixed_size == 1:
        return f"a {oracle.protocol} report supports one item"
    if isinstance(attack, APA2 | Cancel) and not aims_at_numbers(oracle):
        return "lacks reports that support a chosen number of targets"
    if isinstance(attack, Cancel):
        targets = attack.target_indices(oracle.domain_size)
        laws = crafter_of(oracle).hit_laws(targets, DEFAULT_SEARCH)
        moments = (laws @ pair_moments(oracle, targets.size)).round(12)
        return None if moments.min() <= 0 <= moments[-1] else "cancel the pairs of these targets"
    if isinstance(attack, APA2):
        return (
            NO_ROOM
            if len(attack.targets) * attack.rate > crafter_of(oracle).coin_capacity
            else None
        )
    if isinstance(attack, APA) and oracle.fixed_size != 1:
        each = attack.each or (len(attack.targets) + 1) // 2
        room = crafter_of(oracle).expected_size
        return (NO_ROOM if room else TOO_FEW_ITEMS) if each > room else None
    return None


def items_are_alike(oracle: FrequencyOracle) -> bool:
    """Return whether the support of crafted reports depends only on which items are promoted."""
    return type(crafter_of(oracle)).crafted_support is Crafter.crafted_support


@st.composite
def oracles(draw: st.DrawFn, max_size: int = 40) -> FrequencyOracle:
    """A protocol on 2 to `max_size` items."""
    epsilon, d = draw(epsilons), draw(st.integers(2, max_size))
    hashed = OLH(epsilon, d, draw(st.integers(2, 12) | st.just(65_536)))
    linear = LLH(epsilon, d, draw(st.sampled_from([2, 3, 5, 7, 13])))
    others = [
        frequency_oracle(name, epsilon, d) for name in PROTOCOLS if name not in ("olh", "llh")
    ]
    return draw(st.sampled_from([hashed, linear, *others]))


@st.composite
def item_attacks(draw: st.DrawFn, d: int) -> ItemAttack:
    targets = draw(st.lists(st.integers(0, d - 1), min_size=1, max_size=d, unique=True))
    others = [item for item in range(d) if item not in targets]
    each, size = (draw(st.none() | st.integers(1, limit)) for limit in (len(targets), d))
    search = draw(searches)
    return draw(
        st.sampled_from(
            [
                RPA(),
                RIA(targets),
                MGA(targets, model="sampled"),
                MGA(targets, search=search, against=draw(st.sampled_from(AGAINST))),
                MGAA(targets, each, search=search),
                APA(targets, each, search=search),
                APA2(targets, rate=draw(st.floats(0.01, 0.99)), search=search),
                Cancel(targets),
                Joint(
                    targets,
                    rate=draw(st.none() | st.floats(0, 1)),
                    item=draw(st.none() | st.sampled_from(others)) if others else None,
                ),
                Mimicry(targets, share=draw(st.floats(0.01, 0.99))),
                MLA(
                    draw(st.none() | st.integers(0, d - 1)),
                    against=draw(st.sampled_from(AGAINST)),
                    search=search,
                ),
                Manip(size, model=draw(models)),
                AA(model=draw(models)),
                AA("peaked", size, model=draw(models)),
            ]
        )
    )


def attacks(d: int) -> st.SearchStrategy[Attack]:
    """An attack on d items: one, its input poisoning, or several of these together."""
    one = item_attacks(d) | item_attacks(d).map(InputPoisoning)
    return one | st.lists(one, min_size=1, max_size=3).map(Several)
