"""How Sphinx makes a site of these pages: `make docs`."""

import subprocess
import sys
from importlib.metadata import version as version_of
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

HERE = Path(__file__).parent
ROOT = HERE.parent

project = "LDPRecover"
author = "the LDPRecover authors"
project_copyright = author
version = release = version_of("ldprecover")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "scripts"]
myst_heading_anchors = (
    4  # by which the pages link to each other's headings in the repository as well
)

nb_execution_mode = "force"  # a notebook that fails fails the build
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "description"
default_role = "code"  # docstrings write code in single backticks

html_theme = "furo"
html_title = project
html_copy_source = False
html_show_sourcelink = False


def write_commands(app: Sphinx) -> None:
    """Write the page of all commands and options, which Typer makes from the commands
    themselves.
    """
    command = [
        sys.executable,
        "-m",
        "typer",
        "ldprecover_cli.app",
        "utils",
        "docs",
        "--name",
        "ldprecover",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    (HERE / "reference" / "commands.md").write_text(result.stdout)


def unlink_repository_files(app: Sphinx, doctree: nodes.document) -> None:
    """Replace links to files of the repository outside the site by their text.

    A link to a file that does not exist stays: it is a warning, and the build fails.
    """
    for link in [link for link in doctree.findall(pending_xref) if link["reftype"] == "myst"]:
        path = (Path(doctree["source"]).parent / link["reftarget"]).resolve()
        files = [path, path.with_name(path.name + ".md")]
        if not path.is_relative_to(HERE) and any(map(Path.exists, files)):
            link.replace_self(link.children)


def keep_bars(
    app: Sphinx, kind: str, name: str, object: object, options: object, lines: list[str]
) -> None:
    """Escape bars, so that |a| is not read as a substitution."""
    lines[:] = [line.replace("|", "\\|") for line in lines]


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", write_commands)
    app.connect("autodoc-process-docstring", keep_bars)
    app.connect("doctree-read", unlink_repository_files)
