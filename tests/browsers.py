"""The browser that tests start."""

import shutil

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), None)
"""The system's Chromium; without a window's parts, where they are left out, it takes a third less
processor time."""
# Without a sandbox, which root may not have; only pages of this project are opened.
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
