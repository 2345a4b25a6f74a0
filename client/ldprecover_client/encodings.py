# ruff: noqa: RUF001, SIM905  letters of all scripts, in lists that are read as words
"""Encodings of text: how likely each is, and labels that were read in a wrong one."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from string import printable

from ldprecover.items import quoted
from ldprecover_client.errors import DatasetError

_CODECS = (
    "utf-8 cp1252 cp1250 cp1251 gb18030 shift_jis euc-kr big5 cp1254 cp1255 cp1256 cp1253 cp1257 "
    "iso-8859-2 koi8-r mac-roman cp850 cp437 cp852 cp866 cp857 mac-cyrillic euc-jp cp874 "
    "iso-8859-5 iso-8859-6 cp737 cp1258"
).split()
"""What is tried, the likelier one first."""
_WRONG = "cp1251 cp850 mac-roman latin-1 cp1252"
"""Encodings in which programs read a text by mistake before they write it as UTF-8, the likeliest
last."""
LINES = 200
"""From how many lines an encoding is guessed."""
_MARGIN = 0.5  # by which another reading of one label must fit better
_LIST_MARGIN = 0.15  # by which one of a list must
_UTF_8 = 0.55  # what valid UTF-8 adds to a fit: no longer text has it by chance

_FREQUENT = (
    "的一是不了人我在有他這这中大來来上國国個个到說说們们為为子和你地出道也時时年得就那要下以生會会自著着去之過过家學学"
    "對对可她里后小么心多天而能好都然沒没日于起還还發发成事只作當当想看文無无開开手十用主行方又如前所本見见經经頭头面公同"
    "三已老從从動动兩两長长知民樣样現现分將将外但身些與与高意進进把法此實实回二理美點点月明其種种聲声全工己話话兒儿者向"
    "情部正名定女問问力機机給给等幾几很業业最間间新什打便位因重被走電电四第門门相次東东政海口使教西再平真聽听世氣气信北少"
    "關关並并內内加化由卻却代軍军產产入先山五太水萬万市非常確确滿满贊赞反沉男茶酒肉菜魚鱼牛奶羊米飯饭果油豆汁咖啡啤可樂乐"
    "紅红綠绿青白黑黃黄糖鹽盐雞鸡蛋湯汤州安陽阳城河寧宁龍龙津京金石湖林清豐丰興兴泉台福德泰慶庆沙田雲云連连春谷武義义川廣广"
    "永南江島岛井村町區区崎岡橋桥佐久野原千葉叶紅思否性県府店駅食飲料理車车書书店買买貴贵否較较任何度服務务質质量品牌手未曾"
    "이다는에의을가지고하로기를리도은사자해시인어대정아나서한주스전그부일수상보구제라마만장원게과들니여적으동성면조경공국안있회세"
    "되관유비소트개선신방연우모단위화업문중내용계생식물무미치요음오양천르진호산남김드레타파카바코크체러분급당람영학교실명민간재현"
    "행발반맥녹홍차커피술빵밥떡못없않매약렇통별강북광울월년저더때말등것거될할든며예및쓰외외질집점료품류견입습않모름느"
)
"""Ideographs and syllables that are frequent in Chinese, Japanese and Korean."""
_RARE = re.compile(f"(?![{_FREQUENT}])[一-鿿가-힣]|[ъыьэющшчфцхйΰψϊξχϋζฃฅฆฌฎฏฐฑฒฤฦฬฯฺๆํ๎๏๐-๙]")
_LETTERS = (
    "[äöüß] [éèêàçôîïâûëùœæÿ] [áéíóúñü] [àèéíïòóúüç] [àèéìòù] [ãáéçíóâêôúà]|õ(?=e) [åäöüé] "
    "[éèëïöüáóê] [æøåéö] [áéíóúýðþæö] [ąćęłńóśźż] [áčďéěíňóřšťúůýž] [áäčďéíľňóôŕšťúýž] "
    "[áéíóöőúüű] [ăâîşţșț] [čćđšž] [çğıöşüâî] [äçžňöşüý] [äëéêîôûè] [ąčęėįšųūž] "
    "[āčēģīķļņšūž] [äõöüšž] [áàãéèẽíìóòõúùŋƒɖɛɣɩɔʋ] [ăâđêôơưạ-ỹáàãéèíìóòõúùý] [а-яё] "
    "[абвгґдеєжзиіїйклмнопрстуфхцчшщьюя] [абвгдђежзијклљмнњопрстћуфхцчџш] [ΐά-ώ] "
    "[\u05b0-\u05c7\u05d0-\u05f4] [\u060c-\u06d3] [\u0e01-\u0e59] [ぁ-ヿ一-鿿] [가-힣]"
).split()
"""The letters beyond ASCII of a language or script; a text has one of them."""
_PUNCTUATION = re.compile(
    r"[‘’´ʻʼ“”„‚–—…«»‹›·•№°€£¥µΩ¿¡ªº\xa0\xad\u0307ﬁﬂ、。・「」\uff01-\uff1f]|[©®™½¼¾²³¹±×§†‡](?![^\W\d_])"
)
_OTHER = "(?![Ωμπ])[Ͱ-\u0e7fぁ-ヿ一-鿿가-힣]"  # letters
_UPPER = "À-ÖØ-ÞĀĂĄĆČĎĐĒĖĘĚĞĢĪĮİĶĹĻĽŁŃŅŇŌŐŒŔŘŚŞŠŢŤŪŮŰŲŸŹŻŽΆ-ΏΑ-ΫЀ-ЯҐ"
_LOWER = rf"[^\W\d_A-Z{_UPPER}]"
_BROKEN = re.compile(
    # a symbol within a word or on its wrong side, two scripts in one
    r"[^\W\d_](?![’'‘´–.·ʻʼ\xad-])(?![\0-\x7f\u0300-\u0e7f\u3000-\u303f\uff00-\uff65])[^\w\s][^\W\d_]"
    rf"|[^\W\d_][„‚‹¿¡£†‡¼½¾©]|[£€ªº][a-z]|(?m:^»[^«\n]+$)|[a-zA-Z]{_OTHER}|{_OTHER}[a-zA-Z]"
    # controls, a run of accented letters, signs without their letter, and final ones before others
    r"|[\x80-\x9f\ufffd\ue000-\uf8ff]|[À-ɏ]{4,}|[\u0e47-\u0e4e]{2}|[\u0e40-\u0e45]{2}"
    r"|\b[\u05b0-\u05c7\u064b-\u0655]|[ךםןףץ][א-ת]|[ةى][ء-ي]"
    # capitals within a word, but for na hÉireann and McÉvoy
    rf"|(?!Mc)[^\W\d_]{_LOWER}[{_UPPER}]|{_LOWER}[{_UPPER}]{{2,}}|[A-Z{_UPPER}][{_UPPER}]{_LOWER}"
)


def codec_of(encoding: str) -> str:
    """Return Python's name of an encoding: UTF-16, or one that has ASCII. Raises DatasetError."""
    with suppress(LookupError, ValueError):
        # As browsers do: Windows writes quotes and dashes where ISO 8859-1 has controls.
        codec = re.sub("^iso8859-1$", "cp1252", codecs.lookup(encoding).name)
        is_text = not re.search("idna|escape", codec)
        if codec == "utf-16" or (is_text and printable.encode().decode(codec) == printable):
            return codec
    raise DatasetError(
        "encoding must be utf-16, or one of Python's that has ASCII, such as cp1252, cp1251 or "
        f"shift_jis, not {encoding!r:.40}"
    )


def readings(raw: bytes, tried: Sequence[str] = _CODECS) -> list[tuple[float, str, str]]:
    """Return the likely readings of bytes, with fit and encoding, the likeliest first."""
    texts: dict[str, str] = {}
    for codec in tried:
        with suppress(UnicodeError):
            texts.setdefault(raw.decode(codec), codec)
    fits = (
        (_fit(text) + _UTF_8 * (codec == "utf-8" and len(raw) > 2), text, codec)
        for text, codec in texts.items()
    )
    likely = sorted(fits, key=lambda reading: -round(reading[0], 1))
    return [reading for reading in likely if reading[0] > likely[0][0] - _MARGIN]


def differing(likely: Sequence[tuple[float, str, str]]) -> tuple[int, dict[str, str]]:
    """Return the line on which the likeliest readings differ most, and their encodings by how they
    read it.
    """
    lines = [*zip(*(text.split("\n") for _, text, _ in likely), strict=True)]
    number = max(range(len(lines)), key=lambda i: [len({*lines[i][:n]}) for n in (2, 3)])
    shown: dict[str, str] = {}
    for text, (*_, codec) in zip(lines[number], likely, strict=True):
        shown.setdefault(text, codec)
    return number, shown


def garbled(labels: Sequence[str], codec: str) -> dict[str, str]:
    """Return how labels read in the encodings that their bytes fit better, by label.

    A file has one encoding, so all its labels decide together. Single ones may have been read in a
    wrong one before, in a file in UTF-8 too.
    """
    beyond = [label for label in labels if not label.isascii()]
    groups = [([label], _MARGIN) for label in beyond]
    is_utf = codec.startswith("utf")
    if not is_utf:
        groups.append((beyond[:LINES], _LIST_MARGIN))
    findings: dict[str, str] = {}
    for group, margin in groups:
        text = "\n".join(group)
        for wrong in (_WRONG if is_utf else codec).split():
            with suppress(UnicodeError):
                raw, least = text.encode(wrong), _fit(text) + margin
                # Where the labels fit, UTF-8 alone can fit better by the margin.
                likely = readings(raw, _CODECS[: None if least < 1 else 1])
                better = [reading for reading in likely if reading[0] > least]
                if better:
                    number, shown = differing([(0.0, text, wrong), *better])
                    shown.pop(group[number])
                    findings[group[number]] = f"may be {alternatives(shown, '{} in {}')}"
    return findings


def alternatives(shown: Mapping[str, str], form: str) -> str:
    """Return how a line reads, and in which encoding, for the first three as text."""
    texts = (form.format(quoted(text), codec) for text, codec in shown.items())
    return ", or ".join(islice(texts, 3))


@lru_cache
def _fit(text: str) -> float:
    """Return the share of letters beyond ASCII that one language has, less what no word has."""
    lower = _PUNCTUATION.sub("", text.lower())
    number = len(re.findall(r"[^\0-\x7f]", lower))
    letters = max(len(re.findall(each, lower)) for each in _LETTERS)
    rare = len(_RARE.findall(lower)) / 5
    broken = sum(len(match) for match in _BROKEN.findall(text) if not match.isascii())
    return (letters - rare - broken) / number if number else 1 - broken
