"""A page of the server as one HTML file that needs no server.

The file contains the server's own JavaScript modules and styles. An inline module cannot import
another by path, so an import map gives each module a bare name and its text as a data URL. The
content security policy allows the scripts of the file, by digest, and no network access.
"""

import base64
import hashlib
import json
import posixpath
import re
from html import escape
from typing import Any

from ldprecover_server import page

_STYLE = "app.css"
_IMPORT = re.compile(r"""(\bfrom\s*|\bimport\s*\(?\s*)"(\.{1,2}/[^"]+)\"""")

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{styles}</style>
</head>
<body>
<main id="main"></main>
<div id="live" class="hidden" role="status"></div>
<script type="application/json" id="data">{data}</script>
{scripts}
</body>
</html>
"""


def html_page(module: str, title: str, data: Any) -> str:
    """Return the HTML of a page that runs one of the server's modules on `data`.

    `module` is a path below the page's static files. It reads the JSON in the element `data`.
    """
    modules = _with_imports(module)
    urls = {name: _data_url(text) for name, text in modules.items()}
    scripts = [
        ("importmap", _script(json.dumps({"imports": urls}))),
        ("module", f'import "{module}";'),
    ]
    styles = _text(_STYLE)
    assert "</" not in styles
    policy = (
        "default-src 'none'; img-src blob:; base-uri 'none'; form-action 'none'; "
        f"style-src {_digest(styles)}; script-src data: "
        f"{' '.join(_digest(text) for _, text in scripts)}"
    )
    return _PAGE.format(
        policy=policy,
        title=escape(title),
        styles=styles,
        data=_json(data),
        scripts="\n".join(f'<script type="{kind}">{text}</script>' for kind, text in scripts),
    )


def _text(name: str) -> str:
    return page.files()[name].body.decode()


def _with_imports(module: str) -> dict[str, str]:
    """Return the texts of a module and of all that it imports, by name; paths become bare names."""
    texts: dict[str, str] = {}
    pending = [module]
    while pending:
        name = pending.pop()
        if name in texts:
            continue

        def bare(match: re.Match[str], folder: str = name.rpartition("/")[0]) -> str:
            imported = _resolved(folder, match[2])
            pending.append(imported)
            return f'{match[1]}"{imported}"'

        texts[name] = _IMPORT.sub(bare, _text(name))
    return texts


def _resolved(folder: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(folder, path))


def _data_url(text: str) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(text.encode()).decode()}"


def _json(data: Any) -> str:
    """Return JSON in which no label can end the script element or a line of JavaScript."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _script(text: str) -> str:
    """Return JavaScript that cannot end its script element early."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
