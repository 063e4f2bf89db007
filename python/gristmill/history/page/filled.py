"""Fills a page with its data, its scripts and its style: one file, which fetches nothing."""

import html
import json
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from gristmill.names import show_texts

__all__ = ["filled", "palette"]


def palette() -> str:
    """Return the colours of all pages, as style.

    Example:
        >>> palette().count("--ink:")
        2
    """
    return (files("gristmill.history.page") / "palette.css").read_text()


def filled(template: str, title: str, data: dict[str, Any], scripts: Iterable[str]) -> str:
    """Return the page: `data` as JSON that no text in it can leave.

    Example:
        >>> page = filled("pair.html", "<b>", {"name": "</script><i>"}, [])
        >>> "<b>" in page, "<i>" in page
        (False, False)
    """
    ours = files("gristmill.history.page")
    vendor = ours / "vendor"
    told = json.dumps(show_texts(data), ensure_ascii=True, separators=(",", ":"))
    parts = {
        "title": html.escape(title),
        "css": (vendor / "uPlot.min.css").read_text() + palette() + (ours / "page.css").read_text(),
        "uplot": (vendor / "uPlot.iife.min.js").read_text(),
        "js": "".join((ours / script).read_text() for script in scripts),
        "data": told.replace("<", "\\u003c"),  # no end of a script, no comment inside it
    }
    head, *rest = (ours / template).read_text().split("@@")
    page = [head]
    for name, text in zip(rest[::2], rest[1::2], strict=True):
        page += [parts[name], text]
    return "".join(page)
