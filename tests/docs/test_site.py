"""The documentation as a site (mkdocs.yml): built anew, whole, and read from a disk without fetching anything."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import roofline
from roofline import callbacks, errors, plugins

pytest.importorskip("mkdocs")
pytest.importorskip("material")
yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
#: `python -m mkdocs` that looks for no garbage, which takes it a quarter of its time.
MKDOCS = "import gc; gc.disable(); from mkdocs.__main__ import cli; cli()"


def build(configuration: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MKDOCS, "build", "--strict", "-f", str(configuration), "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make docs` makes."""
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stderr
    return folder


def text(page: Path) -> str:
    """What a page says, without its tags."""
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def test_every_page_is_there(site: Path) -> None:
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    built = {page.relative_to(site) for page in site.rglob("*.html")}
    assert {Path("index.html") if page.name == "README.html" else page for page in pages} <= built
    assert {Path(f"project/{name}.html") for name in ("readme", "contributing", "changelog")} <= built
    assert (site / "tutorial" / "notebook.ipynb").is_file()
    assert "193 calls" in " ".join(text(site / "tutorial" / "notebook.html").split())


def test_the_command_line_has_every_verb_and_option(site: Path) -> None:
    import typer

    from roofline import cli

    page = text(site / "reference" / "cli.html")
    group: Any = typer.main.get_command(cli.build())
    assert set(group.commands) == set(plugins.names("roofline.cli"))
    for verb, command in group.commands.items():
        assert f"roofline {verb}" in page
        given = [one for parameter in command.params for one in parameter.opts if one not in ("--help", parameter.name)]
        assert [one for one in given if one not in page] == [], verb


def test_the_python_reference_has_every_public_name(site: Path) -> None:
    page = (site / "reference" / "api.html").read_text(encoding="utf-8")
    anchors = set(re.findall(r'id="roofline\.([\w.]+)"', page))
    assert set(roofline.__all__) - {"__version__"} <= anchors
    assert {f"callbacks.{name}" for name in callbacks.__all__} <= anchors
    kinds = {kind.__name__ for kind in (errors.RooflineError, *errors.RooflineError.__subclasses__())}
    assert {f"errors.{name}" for name in kinds} <= anchors
    assert "Profile a step in this process" in text(site / "reference" / "api.html")


def test_every_link_leads_somewhere(site: Path) -> None:
    """Those of the site itself, in any page: MkDocs looks at Markdown, and not at what hooks and plugins make."""
    pages = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    names = {page: set(re.findall(r'\bid="([^"]+)"', content)) for page, content in pages.items()}
    gone = []
    for page, content in pages.items():
        if page.name == "404.html":
            continue  # served from anywhere, with links from the root
        for link in set(re.findall(r'(?:href|src)="([^"]+)"', content)):
            path, _, anchor = html.unescape(link).partition("#")
            if re.match(r"\w+:", path):
                continue
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and target in names and anchor not in names[target]):
                gone.append((page.relative_to(site).as_posix(), link))
    assert gone == []


@pytest.mark.parametrize("broken", [True, False])
def test_a_broken_link_fails_the_build(broken: bool, tmp_path: Path) -> None:
    """With what mkdocs.yml says of links, on a page alone."""
    said = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert said["strict"]
    links = "[gone](nowhere.md), [gone](#nowhere)" if broken else "[here](#page)"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Page\n\n{links}\n", encoding="utf-8")
    alone = {"site_name": "one", "theme": "mkdocs", "plugins": [], "validation": said["validation"]}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(alone), encoding="utf-8")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert (done.returncode != 0) == broken, done.stderr
    assert ("nowhere.md" in done.stderr) == broken
    assert ("no such anchor" in done.stderr) == broken


# ------------------------------------------------------------------------------------------------ in a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--disable-gpu", "--no-sandbox"])
        yield started
        started.close()


def test_it_is_read_and_searched_from_a_disk(site: Path, browser: Any) -> None:
    """At a telephone's width no page goes sideways; nothing is fetched from anywhere, and nothing complains."""
    page = browser.new_page(viewport={"width": 360, "height": 740})
    fetched: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda asked: fetched.append(asked.url))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    for name in ("guides/continuous-integration", "reference/other-tools", "tutorial/notebook"):
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    page.set_viewport_size({"width": 1280, "height": 900})
    page.keyboard.press("/")
    page.keyboard.type("ridge point")
    page.locator(".md-search-result__item a").first.wait_for()
    assert "matching documents" in page.locator(".md-search-result__meta").inner_text()
    assert [url for url in fetched if not url.startswith(("file:", "data:", "blob:"))] == []
    assert complaints == []
    page.close()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_axe_finds_no_serious_fault(site: Path, browser: Any, scheme: str) -> None:
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page.goto((site / "tutorial" / "notebook.html").as_uri())
    page.evaluate(axe)
    found = page.evaluate("axe.run()")["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
    page.close()
