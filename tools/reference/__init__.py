"""The reference: pages of docs/reference, made from the tables that the program itself reads.

    options, click's commands ─▶ commands.md      errors.rs, failures.py ─▶ errors.md
    the package's docstrings  ─▶ python.md        report.py, shapes.py   ─▶ json.md
    counters.py               ─▶ counters.md      guide/places.md        ─▶ stores.md

`python -m reference` (from tools/) writes them; `make reference` calls it. tests/test_reference.py
compares them with what is committed. tools/manual.py makes the manual pages from the same commands.
"""

from pathlib import Path

__all__ = ["FOLDER", "TOP", "made"]

TOP = Path(__file__).parents[2]
FOLDER = TOP / "docs/reference"


def made() -> dict[str, str]:
    """Return the pages by their names."""
    from reference import (
        commands,
        counters,
        environment,
        errors,
        json_output,
        overview,
        python_api,
        stores,
    )

    return {
        "commands.md": commands.page(),
        "counters.md": counters.page(),
        "environment.md": environment.page(),
        "errors.md": errors.page(),
        "index.md": overview.page(),
        "json.md": json_output.page(),
        "python.md": python_api.page(),
        "stores.md": stores.page(),
    }
