"""A round as a file: read back as it was, refused when it was changed."""

import copy
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ldprecover import (
    Estimates,
    ParameterError,
    RecoveryRequest,
    RoundExport,
    RoundParameters,
    Tally,
    recover,
)


@pytest.fixture
def export() -> RoundExport:
    parameters = RoundParameters("olh", 1.3, ("a", "b", "é", "d"))
    return RoundExport(
        round="R1",
        name="letters",
        parameters=parameters,
        tally=Tally(np.array([5, 0, 2, 3]), 10),
        series="letters",
        number=3,
    )


def test_a_file_reads_back_to_the_same_round(export: RoundExport) -> None:
    again = RoundExport.from_json(json.dumps(export.to_dict()))
    assert (again.round, again.name, again.parameters) == (
        export.round,
        export.name,
        export.parameters,
    )
    assert again.tally == export.tally
    assert again.to_dict() == export.to_dict()


def test_candidate_costs_match_a_tally(export: RoundExport) -> None:
    oracle = export.parameters.oracle
    expected = Estimates.of(oracle, export.tally)
    assert export.estimates().frequencies.tolist() == expected.frequencies.tolist()
    recovered = export.recover(RecoveryRequest("ldprecover", eta=0.3, targets=[2]))
    assert (
        recovered.recovered.tolist()
        == recover(
            oracle, expected.frequencies, RecoveryRequest("ldprecover", eta=0.3, targets=[2])
        ).recovered.tolist()
    )


CHANGES: list[tuple[str, Any]] = [
    ("round", "R2"),
    ("name", "figures"),
    ("series", "figures"),
    ("number", 4),
    ("n", 11),
    ("counts", [4, 0, 2, 3]),
    ("counts", [0, 5, 2, 3]),
    ("epsilon", 1.4),
    ("hash_range", None),
    ("items", ["a", "b", "e", "d"]),
    ("checksum", "0" * 64),
    ("digest", "0" * 64),
]


@pytest.mark.parametrize(("field", "value"), CHANGES)
def test_checksum_detects_changed_numbers_and_labels(
    export: RoundExport, field: str, value: object
) -> None:
    changed = export.to_dict() | {field: value}
    with pytest.raises(ParameterError, match="checksum"):
        RoundExport.from_dict(changed)


def test_export_of_earlier_labels_is_read(export: RoundExport) -> None:
    items = (*export.parameters.items[:-2], "e\u0301", "\u00e9")
    old = replace(export, parameters=replace(export.parameters, items=items, stored=True))
    assert RoundExport.from_dict(old.to_dict()).parameters == old.parameters


SEED = "0123456789abcdef" * 2


def test_seed_is_in_file_and_checksum(export: RoundExport) -> None:
    seeded = replace(export, seed=SEED)
    assert RoundExport.from_json(json.dumps(seeded.to_dict())).seed == SEED
    assert "seed" not in export.to_dict()
    for seed in ("1" + SEED[1:], None):
        changed = {**seeded.to_dict(), "seed": seed}
        with pytest.raises(ParameterError, match="checksum"):
            RoundExport.from_dict(changed)


@pytest.mark.parametrize("seed", ["", SEED[1:], SEED.upper(), 5, f"{SEED}\n"])
def test_a_seed_that_is_not_128_bits_is_rejected(export: RoundExport, seed: Any) -> None:
    with pytest.raises(ParameterError, match="seed must be 32 small hexadecimal digits"):
        replace(export, seed=seed)
    with pytest.raises(ParameterError, match="seed must be 32 small hexadecimal digits"):
        RoundExport.from_dict({**export.to_dict(), "seed": seed})


def test_checksum_separates_id_and_name(export: RoundExport) -> None:
    changed = export.to_dict() | {"round": export.round + export.name[0], "name": export.name[1:]}
    with pytest.raises(ParameterError, match="checksum"):
        RoundExport.from_dict(changed)


def test_uncovered_field_is_rejected(export: RoundExport) -> None:
    with pytest.raises(ParameterError, match="a field is another"):
        RoundExport.from_dict(export.to_dict() | {"note": "trust me"})


@pytest.mark.parametrize("field", ["round", "name"])
def test_a_name_that_utf8_cannot_write_is_rejected(export: RoundExport, field: str) -> None:
    with pytest.raises(ParameterError, match="surrogate"):
        RoundExport.from_dict(export.to_dict() | {field: "\ud800"})


@pytest.mark.parametrize("field", ["format", "items", "n", "counts", "hash_range"])
@pytest.mark.parametrize("value", [None, True, 1.5, {}, "x", [1.5], [-1]])
def test_non_export_is_rejected(export: RoundExport, field: str, value: object) -> None:
    values = copy.deepcopy(export.to_dict())
    if field == "hash_range" and value is None:
        del values["counts"]
    else:
        values[field] = value
    with pytest.raises(ParameterError):
        RoundExport.from_dict(values)


@pytest.mark.parametrize("text", ["", "[", "[]", "null", '"x"', b"\xff"])
def test_non_object_json_is_rejected(text: str | bytes) -> None:
    with pytest.raises(ParameterError):
        RoundExport.from_json(text)


def test_repeated_field_is_rejected(export: RoundExport) -> None:
    text = json.dumps(export.to_dict())
    with pytest.raises(ParameterError, match=r"^the export has a field twice$"):
        RoundExport.from_json('{"counts": [1, 2], ' + text[1:])


@pytest.mark.parametrize("text", ['{"n": ' + "9" * 5_000 + "}", "[" * 100_000])
def test_too_deep_or_long_json_is_rejected(text: str) -> None:
    with pytest.raises(ParameterError, match=r"^the export is not JSON that any export has$"):
        RoundExport.from_json(text)


def test_the_checksum_is_what_any_language_can_compute() -> None:
    """Worked out apart: SHA-256 over the digest's 64 letters, n as u8, the counts as i8, id and
    name.
    """
    import hashlib

    export = RoundExport(
        round="R1",
        name="x",
        parameters=RoundParameters("grr", 1.0, ("a", "b")),
        tally=Tally(np.array([1, 2]), 3),
    )
    message = export.parameters.digest.encode() + b"".join(
        n.to_bytes(8, "little") for n in (3, 1, 2)
    )
    message += b"\x02\0\0\0R1" + b"\x01\0\0\0x"
    assert export.checksum == hashlib.sha256(message).hexdigest()


def of_letters(round: str, counts: list[int], epsilon: float = 1.3) -> RoundExport:
    parameters = RoundParameters("grr", epsilon, ("a", "b", "c", "d"))
    return RoundExport(
        round=round,
        name="letters",
        parameters=parameters,
        tally=Tally(np.array(counts), sum(counts)),
    )


def test_exports_of_the_same_parameters_add() -> None:
    both = of_letters("R1", [5, 0, 2, 3]) + of_letters("R2", [1, 1, 1, 1])
    assert (both.round, both.name, both.seed) == ("R1+R2", "letters", None)
    assert both.tally == Tally(np.array([6, 1, 3, 4]), 14)
    three = both + of_letters("R3", [0, 0, 0, 2])
    assert RoundExport.from_dict(three.to_dict()).tally.n == 16


def test_other_parameters_do_not_add() -> None:
    with pytest.raises(ParameterError, match=r"do not add: they differ in epsilon$"):
        of_letters("R1", [5, 0, 2, 3]) + of_letters("R2", [1, 1, 1, 1], epsilon=1.0)


QUESTION = "Which letter do you like?"


def test_texts_are_part_of_the_file_and_its_checksum() -> None:
    plain = of_letters("R1", [5, 0, 2, 3])
    export = replace(plain, question=QUESTION, thanks="Merci !")
    document = export.to_dict()
    assert (document["question"], document["thanks"]) == (QUESTION, "Merci !")
    assert "title" not in document
    assert RoundExport.from_dict(document).question == QUESTION
    assert export.parameters.digest == plain.parameters.digest
    with pytest.raises(ParameterError, match="was changed"):
        RoundExport.from_dict(document | {"question": "Which letter do you hate?"})
    with pytest.raises(ParameterError, match="was changed"):
        RoundExport.from_dict(document | {"title": "Merci !"})


@pytest.mark.parametrize("text", ["", " ", "a" * 301, "a\nb", "\ud800", 5])
def test_texts_are_plain(text: Any) -> None:
    with pytest.raises(ParameterError, match=r"^thanks "):
        replace(of_letters("R1", [5, 0, 2, 3]), thanks=text)


def test_rounds_of_other_questions_are_neither_added_nor_history() -> None:
    first = replace(of_letters("R1", [5, 0, 2, 3]), question=QUESTION, title="May", thanks="Bye")
    second = replace(of_letters("R2", [1, 1, 1, 1]), question=QUESTION, title="June", thanks="Bye")
    both = first + second
    assert (both.question, both.title, both.thanks) == (QUESTION, None, "Bye")
    other = replace(second, question=None)
    with pytest.raises(ParameterError, match="do not add: they differ in question"):
        first + other
    with pytest.raises(ParameterError, match="history: the round letters asks another question"):
        first.recover("unmix", history=[other])


def test_practice_is_part_of_the_file_and_rounds_for_practice_stay_apart() -> None:
    plain = of_letters("R1", [5, 0, 2, 3])
    export = replace(plain, parameters=replace(plain.parameters, practice=True))
    document = export.to_dict()
    assert document["practice"] is True
    assert "practice" not in plain.to_dict()
    assert RoundExport.from_dict(document).parameters == export.parameters
    for changed in (document | {"practice": 1}, plain.to_dict() | {"practice": True}):
        with pytest.raises(ParameterError, match="was changed"):
            RoundExport.from_dict(changed)
    with pytest.raises(ParameterError, match="do not add: they differ in practice"):
        export + of_letters("R2", [1, 1, 1, 1])
    with pytest.raises(ParameterError, match="history: the round letters differs in practice"):
        of_letters("R2", [1, 1, 1, 1]).recover("unmix", history=[export])


def test_a_round_is_not_added_twice() -> None:
    both = of_letters("R1", [5, 0, 2, 3]) + of_letters("R2", [1, 1, 1, 1])
    with pytest.raises(ParameterError, match="R2 would count twice"):
        both + of_letters("R2", [1, 1, 1, 1])


def test_true_is_no_number_of_reports(export: RoundExport) -> None:
    for field in ("n", "epsilon"):
        with pytest.raises(ParameterError, match=f"{field} is missing or of another type"):
            RoundExport.from_dict(export.to_dict() | {field: True})
