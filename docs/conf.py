"""How Sphinx makes a site of these pages: `make docs`."""

import re
from importlib.metadata import version as version_of
from itertools import pairwise
from pathlib import Path

from docutils import nodes
from pydantic import BaseModel
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.inspect import TypeAliasForwardRef

import ldprecover
import ldprecover_server  # noqa: F401 (Pydantic fails where autodoc is the first to import FastAPI)
from ldprecover import types

_IS_LIST = re.compile(r"\s*([-*:]|\.\. )")
HERE = Path(__file__).parent
ROOT = HERE.parent

project = "LDPRecover"
author = "the LDPRecover authors"
project_copyright = author
version = release = version_of("ldprecover")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build", "scripts"]
# The pages link to each other's headings by these anchors in the repository as well.
myst_heading_anchors = 4

nb_execution_mode = "force"  # a notebook that fails fails the build
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_type_aliases = {
    name: name for name in ("ArrayLike", "Rng", "RoundData", *vars(types)) if name[0].isupper()
}
TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # it is printed as it is in a union
default_role = "code"  # docstrings write code in single backticks

smartquotes_action = "qe"  # two hyphens begin an option, and are no dash

html_theme = "furo"
html_title = project
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_favicon = "_static/icon.svg"

# Copies the commands of a block without its prompts, and no output.
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"
copybutton_here_doc_delimiter = "END"
copybutton_selector = "div:not(.highlight-text):not(.cell_output) > div.highlight > pre"


def unlink_repository_files(app: Sphinx, doctree: nodes.document) -> None:
    """Replace links to files of the repository outside the site by their text.

    A link to a file that does not exist stays: it is a warning, and the build fails.
    """
    for link in [link for link in doctree.findall(pending_xref) if link["reftype"] == "myst"]:
        path = (Path(doctree["source"]).parent / link["reftarget"]).resolve()
        files = [path, path.with_name(path.name + ".md")]
        if not path.is_relative_to(HERE) and any(map(Path.exists, files)):
            link.replace_self(link.children)


def set_docstring(
    app: Sphinx, kind: str, name: str, object: object, options: object, lines: list[str]
) -> None:
    """Mark indented paragraphs as code, and escape bars, so that |a| is no substitution."""
    text, in_code = list[str](), False
    for before, line in pairwise(["", *lines]):
        starts = line.startswith("    ") and not before and not in_code
        if starts and not _IS_LIST.match(next(filter(None, reversed(text)), "")):
            text += [".. code-block:: python", ""]
            in_code = True
        in_code = in_code and (not line or line.startswith("    "))
        text.append(line if in_code else line.replace("|", "\\|"))
    lines[:] = text
    if isinstance(object, type) and issubclass(object, BaseModel):  # their rules are no types
        app.env.current_document.autodoc_annotations.pop(name, None)


def skip_shown_elsewhere(
    app: Sphinx, kind: str, name: str, object: object, skip: bool, options: object
) -> bool | None:
    """Skip a name that the page of `ldprecover` has, on the page of the module that defines it."""
    shown = name in ldprecover.__all__ and getattr(ldprecover, name) is object
    elsewhere = shown and app.env.docname != "reference/python/ldprecover"
    return elsewhere or name == "model_config" or None


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", set_docstring)
    app.connect("autodoc-skip-member", skip_shown_elsewhere)
    app.connect("doctree-read", unlink_repository_files)
