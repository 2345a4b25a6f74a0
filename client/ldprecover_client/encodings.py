# ruff: noqa: RUF001, SIM905  letters of all scripts, in lists that are read as words
"""Encodings of text: how likely each is, and labels that were read in a wrong one."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from string import printable

from ldprecover.items import quoted
from ldprecover_client.errors import DatasetError

_CODECS = (
    "utf-8 cp1252 mac-roman cp1250 iso-8859-2 cp1251 koi8-r cp866 mac-cyrillic cp1253 cp1254 "
    "cp1255 cp1256 cp1257 cp874 cp437 cp850 cp852 shift_jis euc-kr gb18030 big5 euc-jp"
).split()
"""What is tried, the likelier one first."""
_WRONG = "cp1252 latin-1 mac-roman cp850 cp1251"
"""Encodings in which programs read a text by mistake before they write it as UTF-8."""
_MARGIN = 0.5
_UTF_8 = 0.55  # what valid UTF-8 adds to a fit: no other text has it by chance

_IDEOGRAPHS = (
    "山市州江南海安阳平城东西北中大上下河宁口水龙门津京定新高金石湖天林长清丰兴泉台明福德泰化庆沙田和宝云连"
    "春谷武义川广永陽東龍寧門長豐興慶寶雲連義廣島的一是不人有了在国國这這以生来來会會自分出行小子三木村町区"
    "區崎岡本橋佐久井野原千葉茶肉菜面鱼牛米果酒油豆"
)
_LETTERS = (
    "äöüß éèêàçôîïâûëùœæÿ áéíóúñüàèòïç ãáéçíóõâêôúà åäöé æøåéö áéíóúýðþæö ąćęłńóśźż "
    "áčďéěíňóřšťúůýž áäčďéíľňóôŕšťúýž áéíóöőúüű ăâîşţșț čćđšž çğıöşüâî äçžňöşüý äëéêîôûè "
    "ąčęėįšųūž āčēģīķļņšūž äõöüšž áàãéèẽíìóòõúùŋƒɖɛɣɩɔʋ ăâđêôơưạ-ỹáàãéèíìóòõúùý а-яё "
    "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя ά-ώϊϋ "
    "\u05b0-\u05c7\u05d0-\u05f4 \u060c-\u06d3 \u0e01-\u0e59 ぁ-ヿ一-鿿 가-힣"
).split()
"""The letters beyond ASCII of a language or script; a text has one of them."""
_PUNCTUATION = re.compile(r"[‘’´ʻʼ“”„‚–—…«»‹›·•№°€£¿¡ªº\xa0\u0307]|[©®™½¼¾²³¹±×§†‡](?![^\W\d_])")
_BROKEN = re.compile(
    # a symbol within a word, two scripts in one, controls, signs without their letter, and a run
    # of accented letters
    r"[^\W\d_](?![’'‘´–.·ʻʼ-])(?![\0-\x7f])[^\w\s][^\W\d_]|[a-zA-Z][Ͱ-\u0e7f]|[Ͱ-\u0e7f][a-zA-Z]"
    r"|[\x80-\x9f\ufffd\ue000-\uf8ff]|[\u0e47-\u0e4e]{2}|[\u0e40-\u0e45]{2}|[À-ɏ]{3}"
)


def codec_of(encoding: str) -> str:
    """Return Python's name of an encoding: UTF-16, or one that has ASCII. Raises DatasetError."""
    with suppress(LookupError, ValueError):
        codec = codecs.lookup(encoding).name
        if codec == "utf-16" or printable.encode().decode(codec) == printable:
            return codec
    raise DatasetError(
        "encoding must be utf-16, or one of Python's that has ASCII, such as cp1252, cp1251 or "
        f"shift_jis, not {encoding!r:.40}"
    )


def readings(raw: bytes, tried: Sequence[str] = _CODECS) -> list[tuple[float, str, str]]:
    """Return the readings of bytes, each with its fit and its encoding, the likeliest first."""
    texts: dict[str, str] = {}
    for codec in tried:
        with suppress(UnicodeError):
            texts.setdefault(raw.decode(codec), codec)
    fits = (
        (_fit(text) + _UTF_8 * (codec == "utf-8"), text, codec) for text, codec in texts.items()
    )
    return sorted(fits, key=lambda reading: -reading[0])


def better_reading(label: str, codec: str) -> str:
    """Return how a label reads in the encoding that its bytes fit better, or ""."""
    for wrong in (_WRONG if codec.startswith("utf") else codec).split():
        with suppress(UnicodeError):
            raw, fit = label.encode(wrong), _fit(label)
            # Where the label fits, UTF-8 alone can fit better by the margin.
            tried = _CODECS[:1] if fit > _MARGIN else _CODECS
            for best, text, other in readings(raw, tried)[:1]:
                if best > fit + _MARGIN:
                    return f"{quoted(text)} in {other}"
    return ""


@lru_cache
def _fit(text: str) -> float:
    """Return the share of letters beyond ASCII that one language has, less what no word has."""
    lower = _PUNCTUATION.sub("", text.lower())
    number = len(re.findall(r"[^\0-\x7f]", lower))
    letters = max(len(re.findall(rf"(?![\0-\x7f])[{each}]", lower)) for each in _LETTERS)
    rare = len(re.findall(f"(?![{_IDEOGRAPHS}])[一-鿿]|[ъыьэющшчфцхйΰψϊξχϋζ]", lower))
    broken = sum(not match.isascii() for match in _BROKEN.findall(text))
    for word in re.findall(r"[^\W\d_]+", text):
        first, rest = word[:1], word[1:]
        if first.islower() and rest[1:] == rest[1:].lower():
            continue  # Irish: na hÉireann
        if word != word.upper():
            broken += sum(letter.isupper() and not letter.isascii() for letter in rest)
    return (letters - rare / 5 - broken) / number if number else 1 - broken / 5
