"""The documentation site: it builds, its links and anchors lead somewhere, and it works from disk.

Nothing is loaded from a network: no script, style, font or picture. Links to elsewhere are links.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

TOP = Path(__file__).parents[1]

sys.path.insert(0, str(TOP / "tools"))
from site_pages import navigation  # noqa: E402 - a tool

LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
ELSEWHERE = re.compile(r"^([a-z]+:)?//|^(mailto|data):")


class Page(HTMLParser):
    """What a page loads, where it leads, and the places in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places.update(filter(None, (given.get("id"), given.get("name"))))
        if address := given.get(LOADED.get(tag, "")):
            self.loaded.append(address)
        if tag == "a" and (link := given.get("href")):
            self.links.append(link)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        capture_output=True,
        text=True,
        cwd=TOP,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_every_page_is_there(site: Path) -> None:
    for path in (TOP / "docs").rglob("*.md"):
        page = path.relative_to(TOP / "docs").with_suffix(".html")
        name = "index.html" if path.name == "README.md" else page.name
        assert (site / page).with_name(name).exists(), page


def test_every_page_is_in_the_navigation() -> None:
    named = [page for section in navigation(TOP / "docs") for page in next(iter(section.values()))]
    there = sorted(path.relative_to(TOP / "docs").as_posix() for path in TOP.glob("docs/**/*.md"))
    assert sorted(named) == there


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    assert len(pages) > 10
    for path, page in pages.items():
        for address in page.loaded:
            assert not ELSEWHERE.match(address) or address.startswith("data:"), (path, address)
    for style in site.rglob("*.css"):
        for address in re.findall(r"url\(([^)]*)\)", style.read_text(encoding="utf-8")):
            assert not re.match(r"[\"']?(https?:)?//", address), (style, address)


def test_every_link_leads_somewhere(pages: dict[Path, Page]) -> None:
    wrong = [
        f"{path.name}: {link}"
        for path, page in pages.items()
        for link in _broken(path, page, pages)
    ]
    assert wrong == []


def _broken(path: Path, page: Page, pages: dict[Path, Page]) -> Iterator[str]:
    if path.name == "404.html":  # its links are those of a server
        return
    for link in [*page.links, *page.loaded]:
        if ELSEWHERE.match(link):
            continue
        file, anchor = urldefrag(link)
        target = (path.parent / unquote(file)).resolve() if file else path
        if target.is_dir():
            target /= "index.html"
        known = pages.get(target)
        if not target.exists() or (anchor and known and unquote(anchor) not in known.places):
            yield link


def test_it_can_be_searched_from_disk(site: Path) -> None:
    index = (site / "search/search_index.js").read_text(encoding="utf-8")
    found = json.loads(index.removeprefix("var __index = "))
    texts = [entry["text"] for entry in found["docs"]]
    assert any("GRISTMILL_MEMORY" in text for text in texts)
    # Browsers start no worker from file:, so that each page brings what takes its place.
    assert "assets/iframe-worker.js" in Page(site / "index.html").loaded


def test_it_is_light_and_dark_and_fits_a_phone(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    assert '<meta name="viewport" content="width=device-width,initial-scale=1">' in text
    for scheme in ("default", "slate"):
        assert f'data-md-color-scheme="{scheme}"' in text
