"""The survey's sentences: each language has all of them, with the same places for numbers."""

import json
import re
from pathlib import Path

import pytest
from tests.client_js.conftest import CLIENT

EXAMPLE = CLIENT / "example"
ENGLISH = json.loads((EXAMPLE / "languages" / "en.json").read_text(encoding="utf-8"))


def places(sentences: dict[str, str]) -> dict[str, list[str]]:
    """Return the names of the values in each sentence, in alphabetical order."""
    return {key: sorted(set(re.findall(r"\{\w+\}", text))) for key, text in sentences.items()}


@pytest.mark.parametrize(
    "path", sorted((EXAMPLE / "languages").iterdir()), ids=lambda path: str(path.name)
)
def test_language_has_each_sentence_with_its_places(path: Path) -> None:
    sentences = json.loads(path.read_text(encoding="utf-8"))
    assert places(sentences) == places(ENGLISH)
    assert sentences["direction"] in ("ltr", "rtl")
    assert all(sentences.values())


def test_each_sentence_is_used_by_the_survey() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in EXAMPLE.glob("*.js"))
    assert {key for key in ENGLISH if not re.search(rf"[\".]{key}\b", code)} == set()
    assert set(re.findall(r"phrases?\(\s*\"(\w+)\"", code)) <= ENGLISH.keys()
