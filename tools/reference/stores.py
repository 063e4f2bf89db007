"""stores.md: where data can be and what each place guarantees, as the guide has it."""

import re

from reference import TOP
from reference.markdown import document

__all__ = ["page"]

_INTRODUCTION = """\
The tables of [where data live](../guide/places.md), which says how each place is set up."""


def page() -> str:
    """Return the page."""
    guide = (TOP / "docs/guide/places.md").read_text(encoding="utf-8")
    spelling = _table_after(guide, "| spelling | meaning |")
    guarantees = _table_after(guide, "| | disk of this machine")
    options = _table_after(guide, "| key | value |")
    return document(
        "Stores",
        _INTRODUCTION,
        "## How a place is written",
        spelling,
        "## What each place guarantees",
        guarantees,
        "## Options of S3 (`--store-option KEY=VALUE`)",
        options,
    )


def _table_after(text: str, head: str) -> str:
    found = re.search(rf"(?m)^{re.escape(head)}.*(?:\n\|.*)+", text)
    assert found is not None, f"docs/guide/places.md has no table that begins with {head}"
    return found[0]
