"""The tables: every row names a test that there is, and the page follows from them."""

import re
from pathlib import Path

import pytest

from gristmill.streaming.options import OPTIONS
from gristmill.streaming.page import page
from gristmill.streaming.properties import PROPERTIES

from .cases import CASES

HERE = Path(__file__).parent
NAMES = {case.name for case in CASES}


def test_no_name_stands_for_two_things() -> None:
    names = [option.name for option in OPTIONS]
    assert len(names) == len(set(names))
    properties = [name for known in PROPERTIES for name in (known.name, *known.old)]
    assert len(properties) == len(set(properties))
    assert len(CASES) == len(NAMES)


@pytest.mark.parametrize("row", [*OPTIONS, *PROPERTIES], ids=lambda row: row.name)
def test_every_row_names_its_test(row: object) -> None:
    test: str = row.test  # type: ignore[attr-defined]
    if test.startswith("case:"):
        assert test.removeprefix("case:") in NAMES
        return
    file, name = test.split("::")
    assert re.search(rf"^def {name}\(", (HERE / file).read_text(encoding="utf-8"), re.MULTILINE), (
        test
    )


def test_the_page_is_up_to_date() -> None:
    kept = HERE.parent.parent / "docs" / "streaming.md"
    assert kept.read_text(encoding="utf-8") == page(), (
        "run python -m gristmill.streaming.page > docs/streaming.md"
    )
