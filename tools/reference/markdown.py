"""Markdown, as little of it as the pages need: titles, tables, code."""

import re
from collections.abc import Iterable, Sequence

__all__ = ["code", "document", "fenced", "plain", "table"]

_MADE = "<!-- Made by `make format` from the program's own tables. Do not edit. -->"


def document(title: str, *parts: str) -> str:
    """Return a page: its title, the note of where it comes from, and its parts."""
    return "\n\n".join([f"# {title}", _MADE, *(part.strip("\n") for part in parts)]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Return a table, a line a row.

    >>> print(table(["a", "b"], [["1", "x | y"]]))
    | a | b |
    |---|---|
    | 1 | x \| y |
    """
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """Return code within a line; nothing for nothing."""
    return f"`{text}`" if text else ""


def fenced(text: str, language: str = "text") -> str:
    """Return lines of code."""
    body = text.strip("\n")
    return f"```{language}\n{body}\n```"


def plain(text: str) -> str:
    r"""Return prose, in which nothing but code is marked up.

    >>> plain("reads *.txt below <dir>, see `a*b` and FILE_BYTES_READ")
    'reads \\*.txt below &lt;dir>, see `a*b` and FILE_BYTES_READ'
    """
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else _escaped(part) for part in parts)


def _escaped(text: str) -> str:
    text = re.sub(r"([*\[\]])", r"\\\1", text)
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text).replace("<", "&lt;")
