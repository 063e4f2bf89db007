"""A result as a notebook shows it: a few records as a table, and its counters folded.

No more records are read than are shown. What cannot be read is said in the place of the table: a
notebook shows a result also when its output is gone.
"""

from collections.abc import Callable, Iterator, Mapping
from html import escape
from itertools import islice
from typing import Any

from gristmill.mapreduce.formats.table_writer import to_rows
from gristmill.mapreduce.shown import shown, text_of

__all__ = ["html_of"]

_ROWS = 10
_COLUMNS = 20


def html_of(
    title: str, read: Callable[[], Iterator[Any]], counters: Mapping[str, int], report: str
) -> str:
    """Return the page.

    Args:
        title: What the result is.
        read: Gives its records, of which a few are read.
        counters: By their names.
        report: How to get the report; empty if there is none.

    Example:
        >>> html_of("<Result>", lambda: iter([("a", 1)]), {"READ": 2}, "").count("<td>")
        4
    """
    parts = [f"<p>{escape(title)}</p>"]
    try:
        parts += _table([to_rows(record) for record in islice(read(), _ROWS)])
    except Exception as error:  # noqa: BLE001 - of a file, a store, or a value of the user's
        parts.append(f"<p>{escape(text_of(error))}</p>")
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{n:,}</td></tr>" for name, n in counters.items()
    )
    if rows:
        parts.append(f"<details><summary>Counters</summary><table>{rows}</table></details>")
    if report:
        parts.append(f"<p>Report: <code>{escape(report)}</code></p>")
    return f"<div>{''.join(parts)}</div>"


def _table(rows: list[dict[str, Any]]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return []
    more = "<th>...</th>" if len(names) > _COLUMNS else ""
    del names[_COLUMNS:]
    head = "".join(f"<th>{escape(str(name))}</th>" for name in names)
    lines = [
        "".join(f"<td>{_cell(row[name]) if name in row else ''}</td>" for name in names)
        for row in rows
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return [f"<table><thead><tr>{head}{more}</tr></thead><tbody>{body}</tbody></table>"]


def _cell(value: object) -> str:
    return escape(value if isinstance(value, str) and len(value) <= 80 else shown(value))
