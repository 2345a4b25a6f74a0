"""Gives a package index the README with absolute links, as hatchling's hook for metadata."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class IndexReadme(MetadataHookInterface):
    """Sets `readme`: its links and pictures are those of the version's tag in the repository."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the text of README.md to the metadata of the project."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        base, tag = metadata["urls"]["Repository"], f"v{metadata['version']}"
        text = re.sub(r"(!\[[^]]*\]\()(?!https:)", rf"\1{base}/raw/{tag}/", text)
        text = re.sub(r"((?<!!)\[[^]]*\]\()(?!https:)", rf"\1{base}/blob/{tag}/", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
