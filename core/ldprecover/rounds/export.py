"""A round as one JSON file: parameters, tally and checksum, for estimates without a server."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar, get_type_hints

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.estimation.estimates import Estimates
from ldprecover.protocols import own_parameters
from ldprecover.recovery import AUTO, Recovery, RecoveryRequest, ReportSource, recover
from ldprecover.rounds.merging import MergedRound, bytes_of, called_together, check_merged
from ldprecover.rounds.parameters import RoundParameters, text_bytes
from ldprecover.rounds.report_files import ReportPart, check_parts, digest_of_parts

FORMAT = "ldprecover-export-1"

T = TypeVar("T")

_FIELDS: dict[str, type | tuple[type, ...]] = {
    "round": str,
    "name": str,
    "protocol": str,
    "epsilon": (int, float),
    "items": list,
    "n": int,
    "counts": list,
    "canaries": list,
}
"""Fields of every file, except that a round without canaries omits them."""

_OTHERS = {"format", "digest", "checksum", "merged", "reports", "seed"}

_SEED = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True, eq=False)
class RoundExport:
    """Id, name, parameters and tally of a round. `counts` in the file is the tally's summary.

        export = RoundExport.from_json(path.read_bytes())
        frequencies = export.estimates().frequencies
        recovered = export.recover().recovered

    `merged` are the rounds that `merge` added, in the order of their ids; empty for a round as its
    server has it.

    `reports` are the files of the report dataset around the export; None for an export of counts
    alone. They may hold fewer reports than the tally, never more.

    `seed` are the 128 random bits, in hexadecimal digits, that split the reports for certificates.
    The server drew them when it closed the round; None for an open round.

    Raises ParameterError if the tally is over other items, UTF-8 cannot write an id or a name, the
    merged rounds do not give this id, name and n, the files do not fit the tally, or the seed is
    not 32 small hexadecimal digits.
    """

    round: str
    name: str
    parameters: RoundParameters
    tally: Tally
    merged: tuple[MergedRound, ...] = ()
    reports: tuple[ReportPart, ...] | None = None
    seed: str | None = None

    def __post_init__(self) -> None:
        if self.tally.summary.size != self.parameters.oracle.summary_size:
            raise ParameterError(
                f"counts must be of the {self.parameters.oracle.summary_size} items"
            )
        try:
            "".join(
                (self.round, self.name, *(each.round + each.name for each in self.merged))
            ).encode()
        except UnicodeEncodeError:
            raise ParameterError("the round's id or name holds half a surrogate pair") from None
        if self.merged:
            check_merged(self.round, self.name, self.tally.n, self.merged)
        if self.reports is not None:
            check_parts(self.reports, self.tally.n)
        if self.seed is not None and not (type(self.seed) is str and _SEED.fullmatch(self.seed)):
            raise ParameterError("the export's seed must be 32 small hexadecimal digits")

    def __repr__(self) -> str:
        parameters = self.parameters
        return (
            f"RoundExport({self.name}, {parameters.protocol}, epsilon {parameters.epsilon:g}, "
            f"{len(parameters.items):,} items, {self.tally.n:,} reports)"
        )

    @property
    def checksum(self) -> str:
        """SHA-256 in hex over all the rest of the file, in a form that any language can write.

        Little-endian: the parameters' digest in ASCII, n as u8, the counts as i8, then id and name,
        each as a u4 length and its UTF-8 bytes. For a merged round then its rounds, by
        `merging.bytes_of`. For one with reports then "reports" in ASCII and the 32 bytes of
        `digest_of_parts`. For one with a seed then "seed" in ASCII and its 16 bytes.
        """
        sha = hashlib.sha256(self.parameters.digest.encode("ascii"))
        sha.update(struct.pack("<Q", self.tally.n) + self.tally.to_bytes())
        sha.update(text_bytes(self.round, self.name))
        if self.merged:
            sha.update(bytes_of(self.merged))
        if self.reports is not None:
            sha.update(b"reports" + digest_of_parts(self.reports))
        if self.seed is not None:
            sha.update(b"seed" + bytes.fromhex(self.seed))
        return sha.hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the file."""
        parameters = self.parameters
        return {
            "format": FORMAT,
            "round": self.round,
            "name": self.name,
            "protocol": parameters.protocol,
            "epsilon": parameters.epsilon,
            "items": list(parameters.items),
            # in the file of every protocol, as the files before other protocols had it
            "hash_range": None,
            **parameters.own,
            **({"canaries": list(parameters.canaries)} if parameters.canaries else {}),
            **({"merged": [asdict(each) for each in self.merged]} if self.merged else {}),
            "n": self.tally.n,
            "counts": self.tally.summary.tolist(),
            **(
                {}
                if self.reports is None
                else {"reports": {"parts": [asdict(part) for part in self.reports]}}
            ),
            **({} if self.seed is None else {"seed": self.seed}),
            "digest": parameters.digest,
            "checksum": self.checksum,
        }

    @classmethod
    def from_json(cls, text: str | bytes) -> RoundExport:
        """Read a file. Raises ParameterError unless it is an unchanged export."""
        try:
            document = json.loads(text)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ParameterError(f"the export is not JSON: {error}") from None
        # Integers of thousands of digits, or thousands of brackets.
        except (ValueError, RecursionError):
            raise ParameterError("the export is not JSON that any export has") from None
        return cls.from_dict(document)

    @classmethod
    def from_dict(cls, document: object) -> RoundExport:
        """Read the result of `to_dict`. Raises ParameterError if it was changed."""
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ParameterError(
                f"the file is not an export of a round: its format must be {FORMAT!r}"
            )
        fields: dict[str, Any] = {"canaries": [], **document}
        for field, kind in _FIELDS.items():
            if not isinstance(fields.get(field), kind) or isinstance(fields[field], bool):
                raise ParameterError(f"the export's {field} is missing or of another type")
        own = {field: document[field] for field in own_parameters() if field in document}
        for field, value in own.items():
            if value is not None and type(value) is not int:
                raise ParameterError(f"the export's {field} is of another type")
        for field in document.keys() - _FIELDS.keys() - own.keys() - _OTHERS:
            raise ParameterError(f"the export has a field {field[:80]!r}, which no export has")
        if not all(type(count) is int and 0 <= count < 1 << 63 for count in fields["counts"]):
            raise ParameterError("the export's counts must be integers from 0")
        reports = None
        if "reports" in document:
            parts = document["reports"]
            if not isinstance(parts, dict) or parts.keys() != {"parts"}:
                raise ParameterError("the export's reports must have the one field parts, a list")
            reports = _records(ReportPart, "reports", parts["parts"])
        export = cls(
            fields["round"],
            fields["name"],
            RoundParameters.named(
                fields["protocol"],
                fields["epsilon"],
                fields["items"],
                own,
                canaries=fields["canaries"],
            ),
            Tally(np.array(fields["counts"], dtype="<i8"), fields["n"]),
            merged=_records(MergedRound, "merged", document.get("merged", [])),
            reports=reports,
            seed=document.get("seed"),
        )
        if document != export.to_dict():
            raise ParameterError("the export is damaged or was changed: its checksum is another")
        return export

    @classmethod
    def merge(
        cls, exports: Sequence[RoundExport], *, called: Sequence[str] | None = None
    ) -> RoundExport:
        """Return the export of all reports of several rounds, such as those of several deployments.

        The rounds must have the same parameters, by their digest. The result is the same to the
        byte for every order and all steps of the additions. Id and name follow from
        `merging.called_together`. The
        seed is the exclusive or of the rounds' seeds, or None if one is None. A single export is
        returned unchanged.

        Raises ParameterError if parameters differ, or a round occurs twice, also inside merged
        exports. The message calls the exports as `called` does, else by name and id.
        """
        if not exports:
            raise ParameterError("give one export or more to merge")
        names = called or [f"round {export.name} ({export.round})" for export in exports]
        first = exports[0]
        sources: dict[str, str] = {}
        for export, name in zip(exports, names, strict=True):
            if export.parameters.digest != first.parameters.digest:
                others = " and ".join(_differences(first.parameters, export.parameters))
                raise ParameterError(
                    f"{names[0]} and {name} do not add: their rounds differ in {others}"
                )
            for each in export._rounds:
                if each.round in sources:
                    raise ParameterError(
                        f"{sources[each.round]} and {name} do not add: both have the round "
                        f"{each.name} ({each.round}), whose reports would count twice"
                    )
                sources[each.round] = name
        if len(exports) == 1:
            return first
        tally, seed = first.tally, first.seed
        for export in exports[1:]:
            tally += export.tally
            if seed is not None and export.seed is not None:
                seed = f"{int(seed, 16) ^ int(export.seed, 16):032x}"
            else:
                seed = None
        merged = tuple(sorted(each for export in exports for each in export._rounds))
        return cls(*called_together(merged), first.parameters, tally, merged=merged, seed=seed)

    @property
    def _rounds(self) -> tuple[MergedRound, ...]:
        """The rounds whose reports it has: its own, unless it is merged."""
        return self.merged or (MergedRound(self.round, self.name, self.tally.n, self.checksum),)

    def estimates(self) -> Estimates:
        """Return the unbiased estimates of the server. Raises ParameterError without reports."""
        return Estimates.of(self.parameters.oracle, self.tally)

    def recover(
        self,
        request: RecoveryRequest | str = AUTO,
        *,
        history: Sequence[RoundExport] = (),
        reports: ReportSource | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Recovery:
        """Return the recovery that the server answers with, as `ldprecover.recover` does.

        A method that reads reports needs them here. `history` are exports of rounds over the same
        items that are known to be clean; the request's own history comes before them.
        Raises ParameterError. Warns with CountsAloneWarning as `ldprecover.recover` does.
        """
        for round in history:
            if round.parameters.items != self.parameters.items:
                raise ParameterError(f"history: the round {round.name} has other items")
            if {each.round for each in round._rounds} & {each.round for each in self._rounds}:
                raise ParameterError("history: a round cannot be its own history")
        if not isinstance(request, RecoveryRequest):
            request = RecoveryRequest(request)
        tallies = [(round.parameters.oracle, round.tally) for round in history]
        return recover(
            self.parameters.oracle,
            self.tally if reports is None else reports,
            replace(request, history=[*request.history, *tallies]),
            tally=self.tally,
            canaries=self.parameters.canaries,
            progress=progress,
        )


def _differences(first: RoundParameters, second: RoundParameters) -> list[str]:
    """Return the fields in which the parameters of two rounds differ, as an export names them."""
    pairs = [
        ("protocol", first.protocol, second.protocol),
        ("epsilon", first.epsilon, second.epsilon),
        ("items", first.items, second.items),
        *(
            (name, first.own.get(name), second.own.get(name))
            for name in sorted({*first.own, *second.own})
        ),
        ("canaries", first.canaries, second.canaries),
    ]
    return [name for name, one, other in pairs if one != other]


def _records(kind: type[T], name: str, values: object) -> tuple[T, ...]:
    """Return dataclasses from a list of objects with their fields. Raises ParameterError."""
    types = get_type_hints(kind)
    if not isinstance(values, list):
        raise ParameterError(f"the export's {name} is of another type")
    for value in values:
        if not isinstance(value, dict) or value.keys() != types.keys():
            raise ParameterError(
                f"each of the export's {name} must have the fields {', '.join(types)}"
            )
        if not all(isinstance(value[field], each) for field, each in types.items()):
            raise ParameterError(f"the export's {name} has a part with a field of another type")
    return tuple(kind(**value) for value in values)
