"""A round as one JSON file: parameters, tally and checksum, for estimates without a server."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any

from ldprecover.errors import ParameterError
from ldprecover.estimation.estimates import Estimates
from ldprecover.protocols import own_parameters
from ldprecover.recovery import AUTO, Recovery, RecoveryRequest, recover
from ldprecover.reports import ReportSource
from ldprecover.reports.tally import Tally
from ldprecover.rounds.parameters import TEXTS, RoundParameters, check_texts, text_bytes

FORMAT = "ldprecover-export-1"

_FIELDS: dict[str, type | tuple[type, ...]] = {
    "round": str,
    "name": str,
    "protocol": str,
    "epsilon": (int, float),
    "items": list,
    "n": int,
    "counts": list,
}
"""Fields of every file."""

_SEED = re.compile("[0-9a-f]{32}")


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of an object. Raises ParameterError for one that is there twice."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ParameterError("the export has a field twice")
    return fields


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundExport:
    """Id, name, parameters and tally of a round. `counts` in the file is the tally's summary.

        export = RoundExport.from_json(path.read_bytes())
        frequencies = export.estimates().frequencies
        recovered = export.recover().recovered

    `seed` are the 128 random bits, in hexadecimal digits, that split the reports for certificates.
    The server drew them when it closed the round; None for an open round. `question`, `title` and
    `thanks` are the texts that the round shows, and `language` is theirs; None for one that it does
    not have. `number` is that of the round in its `series`; None without one.

    Raises ParameterError if the tally is over other items, UTF-8 cannot write the id or the
    name, the seed is not 32 small hexadecimal digits, or a text is blank or too long.
    """

    round: str
    name: str
    parameters: RoundParameters
    tally: Tally
    seed: str | None = None
    question: str | None = None
    title: str | None = None
    thanks: str | None = None
    language: str | None = None
    series: str | None = None
    number: int | None = None

    def __post_init__(self) -> None:
        if self.tally.summary.size != self.parameters.oracle.summary_size:
            raise ParameterError(
                f"counts must be of the {self.parameters.oracle.summary_size} items"
            )
        place = (type(self.series), type(self.number))
        if place not in ((str, int), (NoneType, NoneType)):
            raise ParameterError("the export's series must be a text, with a whole number")
        try:
            (self.round + self.name + (self.series or "")).encode()
        except UnicodeEncodeError:
            raise ParameterError("the round's id or name holds half a surrogate pair") from None
        if self.seed is not None and not (type(self.seed) is str and _SEED.fullmatch(self.seed)):
            raise ParameterError("the export's seed must be 32 small hexadecimal digits")
        check_texts({name: getattr(self, name) for name in TEXTS})

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
        each as a u4 length and its UTF-8 bytes. For one with a seed then "seed" in ASCII and its 16
        bytes. For each of question, title, thanks and language that is there then its name and the
        text, each as a length and UTF-8; and likewise for its series and, in digits, its number.
        """
        sha = hashlib.sha256(self.parameters.digest.encode("ascii"))
        sha.update(struct.pack("<Q", self.tally.n) + self.tally.to_bytes())
        sha.update(text_bytes(self.round, self.name))
        if self.seed is not None:
            sha.update(b"seed" + bytes.fromhex(self.seed))
        for name, text in {**self._texts, **self._place}.items():
            sha.update(text_bytes(name, str(text)))
        return sha.hexdigest()

    @property
    def _texts(self) -> dict[str, str]:
        """The texts that it has by name."""
        texts = {name: getattr(self, name) for name in TEXTS}
        return {name: text for name, text in texts.items() if text is not None}

    @property
    def _place(self) -> dict[str, Any]:
        """Its series and number by name, if it has them."""
        return {} if self.series is None else {"series": self.series, "number": self.number}

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
            **({"practice": True} if parameters.practice else {}),
            "n": self.tally.n,
            "counts": self.tally.summary.tolist(),
            **({} if self.seed is None else {"seed": self.seed}),
            **self._texts,
            **self._place,
            "digest": parameters.digest,
            "checksum": self.checksum,
        }

    @classmethod
    def from_json(cls, text: str | bytes) -> RoundExport:
        """Read a file. Raises ParameterError unless it is an unchanged export."""
        try:
            document = json.loads(text, object_pairs_hook=_fields)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ParameterError(f"the export is not JSON: {error}") from None
        except ParameterError:
            raise
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
        fields: dict[str, Any] = document
        for field, kind in _FIELDS.items():
            if not isinstance(fields.get(field), kind) or isinstance(fields[field], bool):
                raise ParameterError(f"the export's {field} is missing or of another type")
        export = cls(
            round=fields["round"],
            name=fields["name"],
            parameters=RoundParameters.named(
                fields["protocol"],
                fields["epsilon"],
                fields["items"],
                {field: document[field] for field in own_parameters() if field in document},
                stored=True,
                practice=document.get("practice") is True,
            ),
            tally=Tally(fields["counts"], fields["n"]),
            seed=document.get("seed"),
            **{name: document.get(name) for name in (*TEXTS, "series", "number")},
        )
        if document != export.to_dict():
            raise ParameterError("the export was changed: its checksum or a field is another")
        return export

    def __add__(self, other: RoundExport) -> RoundExport:
        """Return the export of the reports of both rounds, such as those of two deployments.

        Its id and name join theirs by +, and it has no seed. It keeps a title, thanks, language and
        place in a series that both have. Raises ParameterError, with what differs, for rounds with
        other parameters or another question, and for a round that both contain.
        """
        differences = self.parameters.differences(other.parameters)
        if self.question != other.question:
            differences.append("question")
        if differences:
            fields = " and ".join(differences)
            raise ParameterError(
                f"the rounds {self.name} ({self.round}) and {other.name} ({other.round}) do not "
                f"add: they differ in {fields}"
            )
        if twice := self._rounds & other._rounds:
            raise ParameterError(f"the reports of the round {min(twice)} would count twice")
        shared = self._texts.items() & other._texts.items()
        place = self._place if self._place == other._place else {}
        return RoundExport(
            round=f"{self.round}+{other.round}",
            name=self.name if self.name == other.name else f"{self.name}+{other.name}",
            parameters=self.parameters,
            tally=self.tally + other.tally,
            **{**dict(shared), **place},
        )

    @property
    def _rounds(self) -> set[str]:
        """The ids of the rounds whose reports it has."""
        return set(self.round.split("+"))

    def estimates(self) -> Estimates:
        """Return the unbiased estimates of the server. Raises ParameterError without reports."""
        return Estimates.of(self.parameters.oracle, self.tally)

    def recover(
        self,
        request: RecoveryRequest | str = AUTO,
        *,
        history: Sequence[RoundExport] = (),
        reports: ReportSource | None = None,
    ) -> Recovery:
        """Return the recovery that the server answers with, as `ldprecover.recover` does.

        A method that reads reports needs them here. `history` are exports of rounds over the same
        items that are known to be clean; the request's own history comes before them.
        Raises ParameterError. Warns with CountsAloneWarning as `ldprecover.recover` does.
        """
        for round in history:
            if round.parameters.items != self.parameters.items:
                raise ParameterError(f"history: the round {round.name} has other items")
            if round.question != self.question:
                raise ParameterError(f"history: the round {round.name} asks another question")
            if round.parameters.practice != self.parameters.practice:
                raise ParameterError(f"history: the round {round.name} differs in practice")
            if round._rounds & self._rounds:
                raise ParameterError("history: a round cannot be its own history")
        if not isinstance(request, RecoveryRequest):
            request = RecoveryRequest(request)
        tallies = [(round.parameters.oracle, round.tally) for round in history]
        return recover(
            self.parameters.oracle,
            self.tally if reports is None else reports,
            replace(request, history=[*request.history, *tallies]),
            tally=self.tally,
        )
