"""Decisions: the index has all pages, a page has four headings, and the code leads to it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/decisions"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
HEADINGS = ["Context", "Choice", "Figure", "What was tried"]
_NAMED = re.compile(r"docs/decisions/([\w.-]+\.md)")


def code() -> list[Path]:
    rust = ROOT.glob("crates/*/src/**/*.rs")
    return sorted([*rust, *ROOT.glob("python/gristmill/**/*.py")])


def named_in(path: Path) -> set[str]:
    return set(_NAMED.findall(path.read_text(encoding="utf-8")))


def test_the_index_has_every_page_once() -> None:
    links = re.findall(r"\]\(([\w-]+\.md)\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert sorted(links) == [path.name for path in PAGES]
    assert len(PAGES) > 36


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_four_headings_with_text(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    for section in re.split(r"^## .*$", text, flags=re.MULTILINE)[1:]:
        assert section.strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_of_a_page_resolve(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#\s]+)", text):
        assert (FOLDER / link).is_file(), link
    for path in re.findall(r"`((?:crates|python)/[\w./-]+)`", text):
        assert (ROOT / path).is_file(), path
    for path in re.findall(r"`([\w./-]+)`", text.partition("\nCode: ")[2]):
        assert page.name in named_in(ROOT / path), f"{path} does not name {page.name}"


def test_links_from_code_resolve() -> None:
    for path in [*code(), ROOT / "ARCHITECTURE.md"]:
        for name in named_in(path):
            assert (FOLDER / name).is_file(), f"{path.relative_to(ROOT)} names {name}"


def test_code_or_the_architecture_leads_to_every_page() -> None:
    named = set[str]().union(*(named_in(path) for path in [*code(), ROOT / "ARCHITECTURE.md"]))
    assert {path.name for path in PAGES} <= named
