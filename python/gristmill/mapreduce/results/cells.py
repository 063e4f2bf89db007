"""Places in the code of a notebook, as its user knows them.

    (/tmp/ipykernel_18874/3139071171.py, line 2)            ──▶ (Cell In[7], line 2)
    File "/tmp/ipykernel_18874/3139071171.py", line 2, in f ──▶ Cell In[7], line 2, in f
                                                                  return 1 / n

A worker knows only the name that a cell's code has. The notebook knows the cell, and its lines.
"""

import linecache
import re
import sys
from typing import Any

__all__ = ["in_cells", "named_by_cells"]

_PLACE = re.compile(
    r'(?:File )?(?P<quote>"?)(?P<file>[/<][^\n"()]+?)(?P=quote), line (?P<line>\d+)'
)
_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+).*$', re.MULTILINE)


def named_by_cells(error: BaseException) -> None:
    """Name the cells of a notebook in an exception's paragraph."""
    error.args = tuple(in_cells(one) if isinstance(one, str) else one for one in error.args)


def in_cells(text: str) -> str:
    """Return a text with cells in the place of the names that their code has.

    Outside of IPython it stays as it is.

    Example:
        >>> in_cells("map bad: ZeroDivisionError: division by zero (/home/job.py, line 2)")
        'map bad: ZeroDivisionError: division by zero (/home/job.py, line 2)'
    """
    compiled = _compiler()
    if compiled is None:
        return text

    def with_source(found: re.Match[str]) -> str:
        source = linecache.getline(found["file"], int(found["line"])).strip()
        known = compiled.format_code_name(found["file"]) is not None
        beside = text[found.end() :].startswith("\n    ")
        return f"{found[0]}\n    {source}" if known and source and not beside else found[0]

    def named(found: re.Match[str]) -> str:
        cell = compiled.format_code_name(found["file"])
        return found[0] if cell is None else f"{' '.join(cell)}, line {found['line']}"

    return _PLACE.sub(named, _FRAME.sub(with_source, text))


def _compiler() -> Any:  # noqa: ANN401 - IPython's, which need not be there
    """What knows the cells of this process, if it is a notebook's."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return None if shell is None else shell.compile
