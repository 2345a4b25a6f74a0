"""A TOML file that describes a form for `survey`."""

import re
import tomllib
from pathlib import Path
from typing import Any, ClassVar

from ldprecover import RoundParameters
from ldprecover_cli.errors import UsageError, file_errors
from ldprecover_cli.options import Column, Encoding, ReadAccess
from ldprecover_cli.output import JsonObject
from ldprecover_client import load_items
from ldprecover_experiments.validation import OneOrMore, StrictModel


class _FormFile(StrictModel):
    owner: ClassVar[str] = "a form"
    name: str = ""
    series: str = ""
    title: str = ""
    thanks: str = ""
    language: str = ""
    epsilon: float = 1.0
    users: int = 0
    tickets: int = 0
    shuffle: bool = False
    read_access: ReadAccess = "public"
    questions: list[Any]


class _Question(StrictModel):
    owner: ClassVar[str] = "a question (a form's stand above the first [[questions]])"
    question: str
    items: OneOrMore[str] = ()
    file: str = ""
    column: Column = None
    encoding: Encoding = "utf-8"


def load_form(file: Path, as_is: bool = False) -> JsonObject:
    """Return the keys of a form; its questions as the fields of their rounds. Raises UsageError."""
    place = f"{file}"
    rounds: list[JsonObject] = []
    try:
        with file_errors("read", file):
            document = tomllib.loads(file.read_text(encoding="utf-8-sig"))
        for i, fields in enumerate(_FormFile(**document).questions, 1):
            place = f"{file}, question {i}"
            each = _Question.of_mapping(fields)
            if any(each.question == other["question"] for other in rounds):
                raise ValueError("question must be another than those before it")
            items = each.items
            if each.file:
                path = file.parent / each.file
                listed = load_items(path, each.column, encoding=each.encoding, as_is=as_is)
                items = listed + items
            RoundParameters("grr", 1.0, items)  # raises for other than labels
            rounds.append({"question": each.question, "items": items})
    except ValueError as error:
        fault = re.sub(" --(?!as-is)", " the key ", str(error))
        if isinstance(error, UnicodeDecodeError):
            fault = "save it as UTF-8"
        raise UsageError(f"{place}: {fault}") from error
    return document | {"questions": rounds}
