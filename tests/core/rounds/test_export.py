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
from ldprecover.rounds.report_files import ReportPart


@pytest.fixture(params=["grr", "oue", "olh"])
def export(request: pytest.FixtureRequest) -> RoundExport:
    parameters = RoundParameters(request.param, 1.3, ("a", "b", "é", "d"))
    return RoundExport("R1", "letters", parameters, Tally(np.array([5, 0, 2, 3]), 10))


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
    ("n", 11),
    ("counts", [4, 0, 2, 3]),
    ("counts", [0, 5, 2, 3]),
    ("epsilon", 1.4),
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


def test_missing_hash_range_is_detected() -> None:
    export = RoundExport(
        "R1", "x", RoundParameters("olh", 1.0, ("a", "b")), Tally(np.array([1, 2]), 3)
    )
    with pytest.raises(ParameterError, match="checksum"):
        RoundExport.from_dict(export.to_dict() | {"hash_range": None})


def test_uncovered_field_is_rejected(export: RoundExport) -> None:
    with pytest.raises(ParameterError, match="a field 'note', which no export has"):
        RoundExport.from_dict(export.to_dict() | {"note": "trust me"})


@pytest.mark.parametrize("field", ["round", "name"])
def test_a_name_that_utf8_cannot_write_is_rejected(export: RoundExport, field: str) -> None:
    with pytest.raises(ParameterError, match="surrogate"):
        RoundExport.from_dict(export.to_dict() | {field: "\ud800"})


@pytest.mark.parametrize("field", ["format", "items", "n", "counts", "hash_range"])
@pytest.mark.parametrize("value", [None, True, 1.5, {}, "x", [1.5], [-1]])
def test_non_export_is_rejected(export: RoundExport, field: str, value: object) -> None:
    values = copy.deepcopy(export.to_dict())
    if field == "round" and value == "x":
        values["round"] = None
    elif field == "hash_range" and value is None:
        del values["counts"]
    else:
        values[field] = value
    with pytest.raises(ParameterError):
        RoundExport.from_dict(values)


@pytest.mark.parametrize("text", ["", "[", "[]", "null", '"x"', "[" * 100_000, b"\xff"])
def test_non_object_json_is_rejected(text: str | bytes) -> None:
    with pytest.raises(ParameterError):
        RoundExport.from_json(text)


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
        "R1", "x", RoundParameters("grr", 1.0, ("a", "b")), Tally(np.array([1, 2]), 3)
    )
    message = export.parameters.digest.encode() + b"".join(
        n.to_bytes(8, "little") for n in (3, 1, 2)
    )
    message += b"\x02\0\0\0R1" + b"\x01\0\0\0x"
    assert export.checksum == hashlib.sha256(message).hexdigest()


def with_canaries() -> RoundExport:
    parameters = RoundParameters("olh", 1.3, ("a", "b", "c", "d"), canaries=(1, 3))
    return RoundExport("R1", "letters", parameters, Tally(np.array([5, 0, 2, 3]), 10))


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("canaries", [1], "checksum"),
        ("canaries", [1, 9], "every canary"),
        ("canaries", {"1": 3}, "canaries is missing or of another type"),
    ],
)
def test_changed_canaries_are_detected(field: str, value: object, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        RoundExport.from_dict(with_canaries().to_dict() | {field: value})


PARTS = (
    ReportPart(470_000, "part-0.parquet", 6, "ab" * 32),
    ReportPart(470_001, "part-0.parquet", 3, "cd" * 32),
)


def listing(parts: tuple[ReportPart, ...] = PARTS) -> RoundExport:
    parameters = RoundParameters("grr", 1.3, ("a", "b", "c", "d"))
    return RoundExport(
        "R1", "letters", parameters, Tally(np.array([5, 0, 2, 3]), 10), reports=parts
    )


@pytest.mark.parametrize("parts", [(), PARTS])
def test_a_file_lists_the_parts_of_a_dataset(parts: tuple[ReportPart, ...]) -> None:
    written = listing(parts).to_dict()
    assert written["reports"] == {"parts": [vars(part) for part in parts]}
    again = RoundExport.from_json(json.dumps(written))
    assert again.reports == parts
    assert again.to_dict() == written
    assert again.estimates().frequencies.tolist() == listing().estimates().frequencies.tolist()


@pytest.mark.parametrize(
    ("field", "value"),
    [("hour", 470_001), ("name", "part-1.parquet"), ("n", 5), ("sha256", "00" * 32)],
)
def test_a_changed_part_is_found_by_the_checksum(field: str, value: object) -> None:
    changed = copy.deepcopy(listing().to_dict())
    changed["reports"]["parts"][0][field] = value
    if field == "hour":
        changed["reports"]["parts"][0]["name"] = "other"
    with pytest.raises(ParameterError, match="checksum"):
        RoundExport.from_dict(changed)
    with pytest.raises(ParameterError, match="checksum"):
        RoundExport.from_dict(
            {name: each for name, each in listing().to_dict().items() if name != "reports"}
        )


@pytest.mark.parametrize(
    ("field", "values"),
    [
        (
            "name",
            [
                "",
                ".",
                "..",
                "../part",
                "a/b",
                "a\\b",
                ".hidden",
                "a\0",
                "a\n",
                "é",
                "x" * 129,
                3,
                None,
            ],
        ),
        ("hour", [-1, 1 << 31, 1.0, True, "5"]),
        ("n", [0, -1, 2.0, True, "5", 11]),
        ("sha256", ["ab" * 31, "AB" * 32, "g" * 64, None]),
    ],
)
def test_invalid_part_is_rejected(field: str, values: list[object]) -> None:
    for value in values:
        changed = copy.deepcopy(listing().to_dict())
        changed["reports"]["parts"][0][field] = value
        with pytest.raises(ParameterError, match="part"):
            RoundExport.from_dict(changed)


@pytest.mark.parametrize(
    "reports",
    [
        None,
        [],
        {},
        {"parts": None},
        {"parts": [], "more": 1},
        {"parts": [[]]},
        {"parts": [{"hour": 1}]},
    ],
)
def test_a_list_of_parts_in_another_form_is_rejected(reports: object) -> None:
    with pytest.raises(ParameterError, match="reports"):
        RoundExport.from_dict(listing().to_dict() | {"reports": reports})


def test_no_part_is_listed_twice() -> None:
    with pytest.raises(ParameterError, match="twice"):
        listing((PARTS[0], ReportPart(470_000, "part-0.parquet", 1, "00" * 32)))


def test_a_checksum_over_parts_is_what_any_language_can_compute() -> None:
    import hashlib

    parts = b""
    for hour, n, sha in ((470_000, 6, "ab"), (470_001, 3, "cd")):
        parts += hour.to_bytes(8, "little") + n.to_bytes(8, "little") + bytes.fromhex(sha * 32)
        parts += (14).to_bytes(4, "little") + b"part-0.parquet"
    message = listing().parameters.digest.encode() + b"".join(
        n.to_bytes(8, "little") for n in (10, 5, 0, 2, 3)
    )
    message += b"\x02\0\0\0R1" + b"\x07\0\0\0letters" + b"reports" + hashlib.sha256(parts).digest()
    assert listing().checksum == hashlib.sha256(message).hexdigest()
