"""Links that leave docs/: to README, CONTRIBUTING and CHANGELOG, which become pages, and to files of the source.

A file of the source that a page links to is in the site as text; the name of a folder is no link there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

#: Files above docs/ that are pages of the site -> what they are there.
PAGES = {
    "README.md": "project/readme.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
}
_LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<link>[^)\s]+)\)"
    r"|^```.*?^```|^ {4,}.*?$|`[^`\n]+`",  # code, in which a link is none
    re.MULTILINE | re.DOTALL,
)


def on_files(files: Files, config: Any) -> Files:
    """The pages from above docs/, and every file outside of the site that a page links to."""
    for name, place in PAGES.items():
        files.append(File.generated(config, place, content=(ROOT / name).read_text(encoding="utf-8")))
    for file in list(files.documentation_pages()):
        for link in _LINK.finditer(file.content_string):
            target = _target(file.src_uri, link["link"]) if link["link"] else None
            if target is None or not target.is_file() or _place(target, files) is not None:
                continue
            files.append(File.generated(config, _as_text(target), content=target.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """The page with links to where things are in the site."""
    return rewritten(markdown, lambda link: _link(page.file.src_uri, link, files))


def rewritten(markdown: str, place: Callable[[str], str | None]) -> str:
    """The text with each link as `place` has it; None leaves the text of the link alone. Code stays as it is."""

    def replaced(link: re.Match[str]) -> str:
        if not link["link"]:
            return link[0]
        new = place(link["link"])
        return link["text"] if new is None else f"{link['image']}[{link['text']}]({new})"

    return _LINK.sub(replaced, markdown)


def _link(page: str, link: str, files: Files) -> str | None:
    """Where `link` of the page at `page` leads in the site; None for a folder."""
    target = _target(page, link)
    if target is None:
        return link
    if target.is_dir():
        return None
    place = _place(target, files) or _as_text(target)
    anchor = link.partition("#")[2]
    return os.path.relpath(place, os.path.dirname(page) or ".") + (f"#{anchor}" if anchor else "")


def _target(page: str, link: str) -> Path | None:
    """The file that a link of the page at `page` means; None where it leads to the page itself or out into the web."""
    path = link.partition("#")[0]
    if not path or "://" in link or link.startswith("mailto:"):
        return None
    above = {place: name for name, place in PAGES.items()}
    folder = ROOT if page in above else (DOCS / page).parent
    return Path(os.path.normpath(folder / path))


def _place(target: Path, files: Files) -> str | None:
    """Where a file of the repository is in the site, by the name that MkDocs has for it; None if it is not."""
    if target.parent == ROOT and target.name in PAGES:
        return PAGES[target.name]
    if not target.is_relative_to(DOCS):
        return None
    name = target.relative_to(DOCS).as_posix()
    if name.endswith(".ipynb"):
        name = name.removesuffix(".ipynb") + ".md"  # docs/hooks/notebooks.py makes a page of it
    found = files.get_file_from_path(name)
    return name if found is not None and found.inclusion.is_included() else None


def _as_text(target: Path) -> str:
    """The place of a file of the source: browsers show text and would save Python."""
    name = target.relative_to(ROOT).as_posix()
    return f"source/{name}" if target.suffix in (".json", ".txt") else f"source/{name}.txt"
