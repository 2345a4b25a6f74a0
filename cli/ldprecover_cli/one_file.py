"""A page in one HTML file that needs no server: the page's own modules and styles, and what it is
to show.

The modules are those that the server serves. A module of one file cannot name another by a path, so
each is given a bare name, which an import map leads to its text as a data URL. The file asks nobody
for anything: its policy allows the scripts that are in it, by their digests, and nothing else.
"""

import base64
import hashlib
import json
import re
from html import escape
from typing import Any

from ldprecover_server import page

_STYLES = ("vendor/uPlot.min.css", "app.css")
_LIBRARY = "vendor/uPlot.iife.min.js"
_IMPORT = re.compile(r"""(\bfrom\s*|\bimport\s*\(?\s*)"(\.{1,2}/[^"]+)\"""")


def one_file(module: str, title: str, data: Any) -> str:
    """Return the HTML of a page that runs a module of the page on some data.

    `module` is its path below the page's files; it finds the data, as JSON, in the element `data`.
    """
    modules = _modules_of(module)
    names = {name: _data_url(text) for name, text in modules.items()}
    scripts = [
        ("importmap", _script(json.dumps({"imports": names}))),
        ("text/javascript", _script(_text(_LIBRARY))),
        ("module", f'import "{module}";'),
    ]
    styles = "\n".join(_text(name) for name in _STYLES)
    assert "</" not in styles
    policy = (
        "default-src 'none'; img-src blob:; base-uri 'none'; form-action 'none'; "
        f"style-src {_digest(styles)}; script-src data: "
        f"{' '.join(_digest(text) for _, text in scripts)}"
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title>",
            f"<style>{styles}</style>",
            "</head>",
            "<body>",
            '<main id="main"></main>',
            '<div id="live" class="hidden" role="status"></div>',
            f'<script type="application/json" id="data">{_json(data)}</script>',
            *(f'<script type="{kind}">{text}</script>' for kind, text in scripts),
            "</body>",
            "</html>",
            "",
        ]
    )


def _text(name: str) -> str:
    return page.files()[name].body.decode()


def _modules_of(module: str) -> dict[str, str]:
    """Return a module and all that it imports, by name, each with bare names in place of paths."""
    found: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue

        def bare(match: re.Match[str], folder: str = name.rpartition("/")[0]) -> str:
            wanted = _resolved(folder, match[2])
            waiting.append(wanted)
            return f'{match[1]}"{wanted}"'

        found[name] = _IMPORT.sub(bare, _text(name))
    return found


def _resolved(folder: str, path: str) -> str:
    parts = folder.split("/") if folder else []
    for part in path.split("/"):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _data_url(text: str) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(text.encode()).decode()}"


def _json(data: Any) -> str:
    """Return JSON that no label in it can end: neither the element nor, where it is read as a
    script, a line.
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _script(text: str) -> str:
    """Return a script that ends where its element does."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
