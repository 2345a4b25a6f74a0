"""Print the tables of the server's settings and metrics.

python docs/scripts/reference_tables.py
"""

import sys

from pydantic import SecretStr

from ldprecover_server.metrics import Metrics
from ldprecover_server.settings import Settings


def settings_table() -> str:
    """Return every setting: its environment variable, its default and what it says."""
    rows = ["| setting | default | what it says |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        text = " ".join((field.description or "").split())
        none = field.default in (None, ()) or isinstance(field.default, SecretStr)
        default = "none" if none else f"`{field.default}`"
        rows.append(f"| `LDPRECOVER_{name.upper()}` | {default} | {text} |")
    return "\n".join(rows) + "\n"


def metrics_table() -> str:
    """Return every metric: its name, kind, labels and what it says."""
    rows = ["| metric | kind | labels | what it says |", "|---|---|---|---|"]
    for metric in Metrics().manifest:
        labels = ", ".join(metric.labels) or "none"
        rows.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(f"{settings_table()}\n{metrics_table()}")
