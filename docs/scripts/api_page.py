"""Write the page on the HTTP interface from the server's OpenAPI document.

python docs/scripts/api_page.py
"""

import re
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ldprecover.protocols import PROTOCOLS
from ldprecover_server import Settings, create_app

PAGE = Path(__file__).parents[1] / "reference" / "api.md"

HEAD = """# The HTTP interface

From the OpenAPI document that a server has at `/openapi.json`, and as a page at `/docs`. [A client
in another language](../how-to/another-language.md) shows requests and answers.

- `{round}` is a round's id, its name, or `current`, the round opened last that belongs to no form.
  `/reports`, `/frequencies` and `/recover` are the calls of that one. `{form}` is a form's id or
  name.
- Numbers are strict: `"0.5"`, `true` and `NaN` are not numbers. Unknown fields of a request are an
  error; ignore those of an answer. Optional fields may be absent or null.
- A key goes into `Authorization: Bearer KEY`, a ticket into `Authorization: Ticket TICKET`. Results
  of a round whose `read_access` is `key` take a key of scope `analyst` or `admin`. A key that is
  sent must be valid, even if none is needed.
- Every error is an RFC 9457 [Problem](#problem), whose `type` is a heading of [errors](errors.md).
- `?format=csv` returns columns, a line for each item or alarm; `item` is the label, `support` its
  reports. A label that begins with `=`, `+`, `-` or `@` gets a leading apostrophe.
- Equal requests share one analysis and its cached result while the counts of the round do not
  change. Closing the connection cancels an analysis, unless a caller with a key requested it: the
  same request again then waits for it. [Settings](settings.md#budgets) has the limits.
- Problems that are not repeated below: of every call `invalid-request`, `busy` and
  `store-unavailable`; of a round `round-not-found`; of a form `form-not-found`; of calls with a key
  `unauthorized` and `forbidden`; of calls with a body `malformed-body`, `body-timeout`,
  `body-too-large`, `unsupported-media-type`, `unsupported-transfer-encoding`,
  `invalid-parameter`; of analyses `analysis-too-large`, `analysis-failed`, `analysis-timeout`.
"""

_COMMON = set(re.findall(r"`([a-z-]+)`", HEAD.partition("not repeated below")[2]))
_ALIASES = ("/reports", "/frequencies", "/recover")
_REPORTS = {f"{protocol.title()}Reports" for protocol in PROTOCOLS}
_FORMS = "../how-to/another-language.md#the-forms-of-reports"


def api_page() -> str:
    """Return the page: the calls, then the bodies and answers that they name."""
    with tempfile.TemporaryDirectory() as folder:
        document = create_app(Settings(database_url=f"sqlite:///{folder}/api.db")).openapi()
    calls = "".join(_calls(document))
    models = "".join(_models(document["components"]["schemas"]))
    text = f"{HEAD}\n## Calls\n\n{calls}## Bodies and answers\n\n{models}"
    return f"{text.strip()}\n"


def _calls(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield a section for each call, but those of the current round."""
    for path, methods in sorted(document["paths"].items()):
        for method, call in methods.items() if path not in _ALIASES else ():
            described = [
                (each["name"], {"description": each.get("description", ""), **each["schema"]})
                for each in call.get("parameters", ())
                if each["name"] not in ("round", "form", "series", "format")
            ]
            yield f"### {method.upper()} {path}\n\n{_fill(call.get('description', ''))}\n"
            yield f"{_fill(_sentences(call))}\n{_fields('Parameters', dict(described))}"


def _sentences(call: Mapping[str, Any]) -> str:
    """Return who may call, the body, the answer and the problems."""
    security = call.get("security", [{}])
    sentences = [] if {} in security else ["Needs a key."]
    body = call.get("requestBody", {}).get("content", {})
    if body:
        sentences.append(f"Body: {', '.join(_media(kind, each) for kind, each in body.items())}.")
    problems: list[str] = []
    for status, response in call["responses"].items():
        if int(status) >= 400:
            slugs = re.split(r",\s*", response["description"])
            problems += [f"[{each}](errors.md#{each})" for each in slugs if each not in _COMMON]
        else:
            content = response.get("content", {}).items()
            answer = [_media(kind, each) for kind, each in content] or [status]
            sentences.append(f"Answers {', '.join(answer)}.")
    if problems:
        sentences.append(f"Problems: {', '.join(problems)}.")
    return " ".join(sentences)


def _media(kind: str, content: Mapping[str, Any]) -> str:
    named = _type(content.get("schema", {}))
    return named if kind == "application/json" and "[" in named else f"`{kind}`"


def _models(schemas: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields that several objects describe alike, then a section for each object.

    An enumeration stands where it is used, and the reports of each protocol on another page.
    """
    objects = {
        name: schema["properties"]
        for name, schema in sorted(schemas.items())
        if "properties" in schema and name not in _REPORTS
    }
    described = defaultdict[tuple[str, str], list[Mapping[str, Any]]](list)
    for fields in objects.values():
        for field, schema in fields.items():
            described[field, _meaning(schema)].append(schema)
    repeated = {key: len(alike) for key, alike in described.items() if len(alike) > 1}
    # The most frequent meaning of a name; the longest type has the range of a request.
    common = {
        field: max(described[field, meaning], key=lambda schema: len(_type(schema)))
        for field, meaning in sorted(repeated, key=repeated.__getitem__)
        if meaning
    }
    yield "Several objects have these fields, and only name them below:\n\n"
    yield _fields("Fields", dict(sorted(common.items())))
    for name, fields in objects.items():
        yield f"### {name}\n\n{_fill(schemas[name].get('description', ''))}"
        yield f"\n{_fields('Fields', fields, common)}"


def _fields(
    kind: str,
    fields: Mapping[str, Mapping[str, Any]],
    common: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> str:
    """Return a list of the fields with a meaning, below the names and types of the others.

    Fields of one meaning share a line. A field that means what it does in `common` is only named.
    """
    plain: list[str] = []
    rows: dict[str, list[str]] = {}
    for name, schema in fields.items():
        meaning = _meaning(schema)
        if name in common and _meaning(common[name]) == meaning:
            plain.append(_code(name))
        else:
            names = rows.setdefault(meaning, []) if meaning else plain
            names.append(f"{_code(name)} ({_type(schema)}{_default(schema)})")
    parts = [_fill(f"{kind}: {', '.join(plain)}.")] if plain else []
    if rows:
        parts.append("".join(_fill(f"- {', '.join(rows[text])}: {text}", "  ") for text in rows))
    return "\n".join(parts) + "\n" if fields else ""


def _fill(text: str, indent: str = "") -> str:
    """Return lines of at most 100 characters."""
    options: Any = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(" ".join(text.split()), 100, subsequent_indent=indent, **options) + "\n"


def _meaning(schema: Mapping[str, Any]) -> str:
    """Return what a field means."""
    return " ".join(schema.get("description", "").split())


def _default(schema: Mapping[str, Any]) -> str:
    """Return the default of a field, if it says something that the meaning does not."""
    default = _code(schema.get("default"))
    says_nothing = not schema.get("default") or default in _meaning(schema)
    return "" if says_nothing else f", default {default}"


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type of a schema in a few words, with a link for an object."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[reports]({_FORMS})" if name in _REPORTS else f"[{name}](#{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            kinds = [_type(each) for each in schema[several]]
            return " or ".join(each for each in dict.fromkeys(kinds) if each != "null")
    if "enum" in schema or "const" in schema:
        return ", ".join(_code(each) for each in schema.get("enum", [schema.get("const")]))
    kind: str = schema.get("type", "").replace("string", "text")
    if kind == "array":
        each = _type(schema.get("items", {}))
        return f"{each}s" if each in ("text", "integer", "number") else f"list of {each}"
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if low is not None and high is not None and high < 2**32:
        return f"{low:g} to {high:g}"
    return kind


def _code(value: Any) -> str:
    return f"`{value}`"


if __name__ == "__main__":
    PAGE.write_text(api_page(), encoding="utf-8")
