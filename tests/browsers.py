"""The browser that tests start."""

import contextlib
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), None)
"""The system's Chromium; without a window's parts, where they are left out, it takes a third less
processor time."""
# Without a sandbox, which root may not have; only pages of this project are opened.
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]


@contextlib.contextmanager
def launched() -> Iterator["Browser"]:
    """Run Chromium, headless; without it, skip the test.

    While its driver lives, no event loop can run in this thread, which other tests need.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed; tests/tools.sh says how")
    with (
        playwright.sync_playwright() as driver,
        driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS) as browser,
    ):
        yield browser
