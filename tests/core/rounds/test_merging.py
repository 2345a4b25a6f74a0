"""Rounds of several deployments added into one: nothing is lost, nothing counts twice."""

import hashlib
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldprecover import ParameterError, RecoveryRequest, RoundExport, RoundParameters, Tally
from ldprecover.protocols import PROTOCOLS
from ldprecover.rounds.merging import MergedRound

ITEMS = tuple("abcdefgh")


def export(
    id: str,
    counts: list[int],
    n: int,
    *,
    name: str = "letters",
    **fields: Any,
) -> RoundExport:
    parameters = RoundParameters(
        **{
            "protocol": "oue",
            "epsilon": 1.3,
            "items": ("a", "b", "c"),
            **fields,
        }
    )
    return RoundExport(id, name, parameters, Tally(np.array(counts), n))


def written(one: RoundExport) -> str:
    return json.dumps(one.to_dict())


@settings(max_examples=15)
@given(
    protocol=st.sampled_from(sorted(PROTOCOLS)),
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 200), min_size=1, max_size=4),
    data=st.data(),
)
def test_merge_equals_the_export_of_one_server(
    protocol: str, seed: int, cuts: list[int], data: st.DataObject
) -> None:
    """In any order and in any steps: the same file, and tally, estimates and recovery of all
    reports together.
    """
    parameters = RoundParameters(protocol, 1.0, ITEMS)
    rng = np.random.default_rng(seed)
    reports = parameters.oracle.perturb(rng.integers(0, len(ITEMS), 200), rng)

    def of(id: str, some: np.ndarray) -> RoundExport:
        return RoundExport(id, "letters", parameters, Tally.of(parameters.oracle, some))

    single = of("R", reports)
    parts = [of(f"R{i}", part) for i, part in enumerate(np.split(reports, sorted(cuts)))]
    at_once = RoundExport.merge(parts)
    waiting = data.draw(st.permutations(parts))
    while len(waiting) > 1:
        taken = data.draw(st.integers(2, len(waiting)))
        waiting = [*waiting[taken:], RoundExport.merge(waiting[:taken])]

    assert written(waiting[0]) == written(at_once)
    assert at_once.parameters == single.parameters
    assert at_once.tally == single.tally
    assert at_once.estimates().frequencies.tolist() == single.estimates().frequencies.tolist()
    assert (
        at_once.estimates().standard_errors.tolist() == single.estimates().standard_errors.tolist()
    )
    for request in (
        RecoveryRequest("ldprecover", eta=0.1),
        RecoveryRequest("ldprecover", targets=[2]),
        RecoveryRequest("norm", options={"variant": "base-cut"}),
    ):
        expected, actual = single.recover(request), at_once.recover(request)
        assert actual.recovered.tolist() == expected.recovered.tolist()
        assert actual.malicious.tolist() == expected.malicious.tolist()


@pytest.fixture
def merged() -> RoundExport:
    return RoundExport.merge([export("R2", [5, 0, 2], 6), export("R1", [1, 1, 1], 3, name="nord")])


def test_merged_file_reads_back_with_its_rounds(merged: RoundExport) -> None:
    first, second = export("R1", [1, 1, 1], 3, name="nord"), export("R2", [5, 0, 2], 6)
    assert merged.to_dict()["merged"] == [
        {"round": "R1", "name": "nord", "n": 3, "checksum": first.checksum},
        {"round": "R2", "name": "letters", "n": 6, "checksum": second.checksum},
    ]
    again = RoundExport.from_json(written(merged))
    assert again.merged == merged.merged
    assert again.tally == merged.tally == Tally(np.array([6, 1, 3]), 9)
    assert written(again) == written(merged)
    assert "merged" not in first.to_dict()


def test_merged_id_name_and_checksum_follow_the_documented_form(
    merged: RoundExport,
) -> None:
    first, second = export("R1", [1, 1, 1], 3, name="nord"), export("R2", [5, 0, 2], 6)
    digest = hashlib.sha256((first.checksum + second.checksum).encode()).hexdigest()
    assert (merged.round, merged.name) == (f"M{digest[:24]}", "letters+nord")
    message = merged.parameters.digest.encode() + b"".join(
        n.to_bytes(8, "little") for n in (9, 6, 1, 3)
    )
    message += b"\x19\0\0\0" + merged.round.encode() + b"\x0c\0\0\0letters+nord"
    message += b"merged\0\x02\0\0\0"
    message += b"\x03\0\0\0\0\0\0\0" + first.checksum.encode() + b"\x02\0\0\0R1\x04\0\0\0nord"
    message += b"\x06\0\0\0\0\0\0\0" + second.checksum.encode() + b"\x02\0\0\0R2\x07\0\0\0letters"
    assert merged.checksum == hashlib.sha256(message).hexdigest()


def test_rounds_of_one_name_keep_it() -> None:
    assert (
        RoundExport.merge([export(id, [0, 0, 0], 0) for id in ("R3", "R1", "R2")]).name == "letters"
    )


def test_seeds_add_in_any_order_and_steps() -> None:
    numbers = (0xFF << 120, 0x0F << 120, 5)
    exports = [
        replace(export(f"R{i}", [2, 1, 0], 3), seed=f"{number:032x}")
        for i, number in enumerate(numbers)
    ]
    merged = RoundExport.merge(exports)
    assert merged.seed == "f0" + 29 * "0" + "5"
    steps = RoundExport.merge([exports[2], RoundExport.merge(exports[1::-1])])
    assert written(steps) == written(merged)
    unseeded = [*exports[:2], replace(exports[2], seed=None)]
    assert RoundExport.merge(unseeded).seed is None
    assert RoundExport.merge(unseeded[::-1]).seed is None


def test_one_export_is_merged_to_itself(merged: RoundExport) -> None:
    assert RoundExport.merge([merged]) is merged
    with pytest.raises(ParameterError, match="one export or more"):
        RoundExport.merge([])


def test_repeated_round_is_rejected() -> None:
    """Also an older export of it, and one inside of files that were merged before."""
    r1, r2, r3 = (export(id, [1, 0, 0], 2) for id in ("R1", "R2", "R3"))
    later = export("R1", [2, 1, 0], 4)
    with pytest.raises(
        ParameterError,
        match=r"^round letters \(R1\) and round letters \(R1\) do not add: both have",
    ):
        RoundExport.merge([r1, r2, later])
    remaining, right = RoundExport.merge([r1, r2]), RoundExport.merge([r2, r3])
    both = (
        r"^all\.json and south\.json do not add: both have the round letters \(R2\), whose "
        r"reports would count twice$"
    )
    with pytest.raises(ParameterError, match=both):
        RoundExport.merge([remaining, right], called=["all.json", "south.json"])


@pytest.mark.parametrize(
    ("fields", "differences"),
    [
        ({"protocol": "sue"}, "protocol"),
        ({"epsilon": 1.4}, "epsilon"),
        ({"items": ("a", "c", "b")}, "items"),
        ({"canaries": (1,)}, "canaries"),
        ({"protocol": "olh", "epsilon": 1.3}, "protocol and hash_range"),
    ],
)
def test_different_parameters_are_rejected_by_field(
    fields: dict[str, Any], differences: str
) -> None:
    first, second = export("R1", [1, 1, 1], 3), export("R2", [1, 1, 1], 3, **fields)
    message = rf"^a and b do not add: their rounds differ in {differences}$"
    with pytest.raises(ParameterError, match=message):
        RoundExport.merge([first, second], called=["a", "b"])


def test_merged_round_cannot_be_its_own_history(merged: RoundExport) -> None:
    part = export("R1", [1, 1, 1], 3, name="nord")
    overlapping = RoundExport.merge([part, export("R3", [1, 1, 1], 3)])
    for one, other in ((merged, part), (part, merged), (merged, overlapping), (merged, merged)):
        with pytest.raises(ParameterError, match="its own history"):
            one.recover("unmix", history=[other])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"n": 4}, "n of the merged rounds"),
        ({"n": True}, "integer from 0"),
        ({"n": -1}, "integer from 0"),
        ({"round": "R0"}, "checksum"),
        ({"round": "R9"}, "order of their ids"),
        ({"round": "R2"}, "each once"),
        ({"name": "sud"}, "id and name"),
        ({"name": "\ud800"}, "surrogate"),
        ({"checksum": "0" * 64}, "id and name"),
        ({"checksum": "x" * 64}, "hexadecimal"),
        ({"checksum": 7}, "another type"),
        ({"note": "trust me"}, "the fields round, name, n, checksum"),
    ],
)
def test_changed_merged_rounds_are_detected(
    merged: RoundExport, changes: dict[str, Any], reason: str
) -> None:
    changed = merged.to_dict()
    changed["merged"][0] |= changes
    with pytest.raises(ParameterError, match=reason):
        RoundExport.from_dict(changed)


@pytest.mark.parametrize("value", [[], {}, None, "R1", [7], [{}]])
def test_merged_of_another_form_is_rejected(merged: RoundExport, value: object) -> None:
    with pytest.raises(ParameterError, match=r"merged|checksum"):
        RoundExport.from_dict(merged.to_dict() | {"merged": value})


def test_merged_rounds_must_be_two_or_more(merged: RoundExport) -> None:
    without = merged.to_dict()
    del without["merged"]
    with pytest.raises(ParameterError, match="checksum"):
        RoundExport.from_dict(without)
    with pytest.raises(ParameterError, match="two rounds or more"):
        RoundExport("M1", "x", merged.parameters, merged.tally, merged=merged.merged[:1])
    with pytest.raises(ParameterError, match="64 hexadecimal digits"):
        MergedRound("R1", "x", 3, merged.checksum[:63])


def test_too_many_reports_are_rejected() -> None:
    limit = (1 << 63) - 1
    with pytest.raises(ParameterError, match="below 2"):
        RoundExport.merge([export(id, [limit, 0, 0], limit) for id in ("R1", "R2")])
