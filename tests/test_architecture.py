"""ARCHITECTURE.md: short, at most 40 rows of "I want to change ...", and every path is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
CRATES = ROOT / "crates"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
_CODE = re.compile(r"`([^`\n]+)`")


def rows() -> list[str]:
    part = TEXT.partition("## I want to change ...")[2].partition("\n## ")[0]
    return [line for line in part.splitlines() if line.startswith("| ")][1:]


def paths(text: str) -> list[str]:
    """What stands in backquotes and looks like a file or a folder."""
    of_runs = re.compile(r"agent:|scheme:|/proc")
    found = _CODE.findall(text)
    return [
        path
        for path in found
        if (path.endswith("/") or re.search(r"/|\.(rs|py|md)$", path)) and not of_runs.match(path)
    ]


def is_there(path: str) -> bool:
    crate, _, rest = path.partition("/")
    of = ROOT / path
    if crate not in {"crates", "python", "tests", "tools", "docs"}:
        of = CRATES / crate / "src" / rest
    return of.is_dir() if path.endswith("/") else of.is_file()


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= 170
    assert 30 <= len(rows()) <= 40


def test_every_row_leads_somewhere() -> None:
    assert [row for row in rows() if not paths(row.rpartition(" | ")[2])] == []


def test_every_path_is_there() -> None:
    named = [path for path in paths(TEXT) if path not in ("crates/", "python/")]
    assert len(named) > 80
    assert [path for path in named if not is_there(path)] == []


def test_its_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#\s]+)", TEXT)
    assert len(links) > 3
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_the_layers_are_those_that_are_watched() -> None:
    watched = (ROOT / "tests/test_layers.py").read_text(encoding="utf-8")
    part = TEXT.partition("## The layers")[2].partition("\n## ")[0]
    table = [line.split(" | ")[1] for line in part.splitlines() if line.startswith("| ")][1:]
    for name in (name for cell in table for name in _CODE.findall(cell)):
        assert f'"{name}"' in watched, name
        assert [*CRATES.glob(f"*/src/{name}"), *CRATES.glob(f"*/src/{name}.rs")], name
