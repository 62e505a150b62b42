"""The pages of docs/: each is in the index and in the site's navigation, and each link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")

#: `from_FORMAT.py` stands for any name.
PLACEHOLDER = re.compile(r"NAME|FORMAT|LIBRARY")


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub names them."""
    text = re.sub(r"^( {4}|```).*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


def test_the_index_has_every_page() -> None:
    """Or another index, which the folder of the page has."""
    pages = {page for kind in ("*.md", "*.ipynb") for page in DOCS.rglob(kind)}
    indices = [DOCS / "README.md", *DOCS.rglob("index.md")]
    links = {index.parent / link for index in indices for link in LINK.findall(index.read_text(encoding="utf-8"))}
    assert pages - links == {DOCS / "README.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_folders_that_are_named_are_there(page: Path) -> None:
    """`roofline/xla/hlo/cost.py` in a page is a file of the repository."""
    for name in re.findall(r"`((?:roofline|models|tests|docs|benchmarks|profiles)/[\w./-]+)`", page.read_text("utf-8")):
        if not PLACEHOLDER.search(name) and name.endswith((".py", ".toml", ".md", ".json", ".png", "/")):
            assert (ROOT / name).exists(), f"{page.name}: {name}"
