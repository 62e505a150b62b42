"""How large `roofline report`'s page is, how long it takes to be made and to be ready, and how fast it answers.

`python benchmarks/report.py`: two profiles of about 500 ops each, and one of 5,000 ops. Times are the median of five,
in one process that has imported everything; those of the browser need Playwright and a Chromium.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace
from scale import MEASURED, repeated

from roofline.core.schema import Profile, load
from roofline.renderers.report import report

ROOT = Path(__file__).resolve().parents[1]
OTHER = MEASURED.with_name("bert-jax-buffers-on-train-b32-tf32.json")
TIMES = 5
#: What is done on the page, and what it is called; E is the event of a control that was moved.
ANSWERS = {
    "filter by name": "const i = document.querySelector('[data-search=op]'); i.value = 'mm'; i.dispatchEvent(E)",
    "sort": "document.querySelector('[data-sort=work]').click()",
    "slider": "const i = document.querySelector('[data-slider]'); i.value = 50; i.dispatchEvent(E)",
    "memory level": "const i = document.querySelector('[data-choose=level]'); i.selectedIndex = 1; i.dispatchEvent(E)",
}
#: Until the browser has drawn what an action changed [ms].
DRAWN = """async () => {
  const E = new Event('input', {bubbles: true});
  document.getElementById('%s').scrollIntoView();  // what is not seen is not laid out
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  const start = performance.now();
  %s;
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - start;
}"""


def median(action: Callable[[], float]) -> float:
    """The median of what five calls return."""
    return statistics.median(action() for _ in range(TIMES))


def taken(profiles: list[Profile], clock: Callable[[], float]) -> float:
    """Seconds that a page takes to be made, from profiles of which nothing is known yet."""
    profiles = [replace(profile) for profile in profiles]
    start = clock()
    report(profiles)
    return clock() - start


def main() -> None:
    """Print a line for each size."""
    print(f"load {os.getloadavg()[0]:.2f}, Python {sys.version.split()[0]}")
    pages = {
        "two profiles of 500 ops": [repeated(load(MEASURED), 500), repeated(load(OTHER), 500)],
        "one profile of 5,000 ops": [repeated(load(MEASURED), 5000)],
    }
    with tempfile.TemporaryDirectory() as folder:
        for number, (what, profiles) in enumerate(pages.items()):
            file = Path(folder) / f"{number}.html"
            file.write_text(report(profiles), encoding="utf-8")
            wall, cpu = (
                median(lambda profiles=profiles, clock=clock: taken(profiles, clock))
                for clock in (time.perf_counter, time.process_time)
            )
            size = file.stat().st_size / 1e6
            print(f"{what}: {size:.2f} MB, made in {wall:.2f} s ({cpu:.2f} s of CPU)", flush=True)
            in_browser(file)


def in_browser(file: Path) -> None:
    """How soon the page is ready, and how long it takes to answer; why not, where there is no browser."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        print("  no Chromium or no Playwright here: nothing is known of the browser")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--disable-gpu"])
        page = browser.new_page()

        def ready() -> float:
            page.goto(file.as_uri())
            return float(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))

        print(f"  ready after {median(ready):.0f} ms")
        for what, action in ANSWERS.items():
            script = DRAWN % ("ops" if what in ("filter by name", "sort") else "roofline", action)
            print(f"  {what}: drawn after {median(lambda script=script: float(page.evaluate(script))):.0f} ms")
        browser.close()


if __name__ == "__main__":
    main()
