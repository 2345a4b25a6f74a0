"""Take the pictures of the pages from a real poisoned round, by the system's Chromium.

python docs/scripts/pictures.py
"""

import shutil
import sys
from contextlib import closing
from pathlib import Path

from playwright.sync_api import sync_playwright

import ldprecover
from ldprecover_cli.practice.plays import Plays
from ldprecover_cli.practice.server import practice_server
from ldprecover_experiments import Demo, DemoSettings

PICTURES = Path(__file__).parent.parent / "pictures"
SIZE = {"width": 1280, "height": 800}


def draw_five_lines() -> None:
    """Draw the figure of the five lines that the first page shows."""
    round_ = ldprecover.simulate("cities", protocol="oue", epsilon=1).attack("mga", targets=3)
    axes = round_.recover().plot()
    axes.figure.savefig(PICTURES / "five-lines.png", dpi=100)


def main() -> None:
    """Play the demo's round with OUE, and look at it, at the planner and at the lesson."""
    draw_five_lines()
    demo = Demo(DemoSettings(protocol="oue"))
    with (
        practice_server("demo") as server,
        closing(Plays(server, demo.settings)) as plays,
        sync_playwright() as driver,
    ):
        plays.finish("cities", demo.on(server.url, server.key, name="cities"))
        chromium = shutil.which("chromium") or sys.exit("Chromium is not installed")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.goto(f"{server.url}/#/rounds/cities")
        page.get_by_text("Near certain attack:").first.wait_for(timeout=120_000)
        page.locator("button[aria-label^=CSV]:enabled").wait_for()
        page.screenshot(path=PICTURES / "round.png")
        page.goto(f"{server.url}/#/plan")
        page.get_by_text("Protocols, the one to take first").wait_for()
        page.screenshot(path=PICTURES / "plan.png", full_page=True)
        page.goto(server.link.replace("/rounds/demo", "/rounds/cities"))
        page.get_by_role("region", name="The lesson").screenshot(path=PICTURES / "lesson.png")
        browser.close()


if __name__ == "__main__":
    main()
