"""Links between pages, and to places within them, lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The places that headings make, as GitHub names them."""
    headings = re.findall(r"^#+ (.*)$", _FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    for link in _LINK.findall(text):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, place = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{link} is not there"
        if place:
            assert place in anchors(target.read_text(encoding="utf-8")), f"{link}: no such heading"
