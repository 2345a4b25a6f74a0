"""Take the pictures of the pages from a real poisoned round, by the system's Chromium.

python docs/scripts/pictures.py
"""

import shutil
import sys
import threading
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

import ldprecover
from ldprecover_client import Client
from ldprecover_experiments import Demo, DemoSettings
from ldprecover_experiments.demo import no_progress
from ldprecover_experiments.drill.server import drill_server
from ldprecover_experiments.local_server import LocalServer, local_server

PICTURES = Path(__file__).parent.parent / "pictures"
SIZE = {"width": 1280, "height": 800}


def draw_five_lines() -> None:
    """Draw the figure of the five lines that the first page shows."""
    round_ = ldprecover.simulate("cities", protocol="oue", epsilon=1).attack("mga", targets=3)
    axes = round_.recover().plot()
    axes.figure.savefig(PICTURES / "five-lines.png", dpi=100)


def main() -> None:
    """Play the demo's round with OUE, and look at it, at the planner, and at a drill."""
    draw_five_lines()
    demo = Demo(DemoSettings(protocol="oue"))
    with local_server() as server, sync_playwright() as driver:
        demo.on(server.url, server.key, no_progress, name="cities")
        with Client(server.url, key=server.key) as client:
            client.close_round("cities")
        chromium = shutil.which("chromium") or sys.exit("Chromium is not installed")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.goto(f"{server.url}/#/rounds/cities")
        page.get_by_text("Near certain attack:").first.wait_for(timeout=120_000)
        page.locator("button[aria-label^=CSV]:enabled").wait_for()
        page.screenshot(path=PICTURES / "round.png")
        page.goto(f"{server.url}/#/plan")
        page.locator("canvas").first.wait_for()
        page.screenshot(path=PICTURES / "plan.png", full_page=True)
        take_drill(page, server)
        browser.close()


def take_drill(page: Page, server: LocalServer) -> None:
    """Run a drill with its defaults on the server, and look at the result."""
    settings = DemoSettings()
    with drill_server(server.url, server.key, settings, host="127.0.0.1", port=0) as drill:
        thread = threading.Thread(target=drill.run, args=([drill.listener],))
        thread.start()
        page.set_viewport_size({"width": 1280, "height": 1300})
        page.goto(drill.address)
        page.get_by_role("button", name="Run the drill").click()
        page.get_by_role("region", name="Verdict").wait_for(timeout=120_000)
        page.screenshot(path=PICTURES / "drill.png")
        drill.should_exit = True
        thread.join()


if __name__ == "__main__":
    main()
