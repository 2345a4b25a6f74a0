"""Print the sections of the errors page, made from the refusals themselves.

python docs/scripts/errors_page.py
"""

import sys
import textwrap

from ldprecover_server.errors import every_refusal


def errors_sections() -> str:
    """Return a section for each problem: its heading, status, title, and what its sender can do."""
    found = []
    for refusal in every_refusal():
        text = textwrap.fill(refusal.help, 100, break_long_words=False, break_on_hyphens=False)
        found.append(f"## {refusal.slug}\n\nStatus {refusal.status}: {refusal.title}.\n\n{text}\n")
    return "\n".join(found)


if __name__ == "__main__":
    sys.stdout.write(errors_sections())
