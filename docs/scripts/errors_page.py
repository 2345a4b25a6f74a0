"""Print the sections of the errors page from the classes of errors.

python docs/scripts/errors_page.py
"""

import sys
import textwrap

from ldprecover_server.errors import service_errors


def errors_sections() -> str:
    """Return a section for each problem: its heading, status and help."""
    sections = []
    for error in service_errors():
        kind = error.type
        text = f"Status {kind.status}. {error.help()}"
        text = textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)
        sections.append(f"## {kind.slug}\n\n{text}\n")
    return "\n".join(sections)


if __name__ == "__main__":
    sys.stdout.write(errors_sections())
