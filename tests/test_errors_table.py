"""The table of all errors is current, and its texts are in one voice."""

import re
import sys
from pathlib import Path

TOP = Path(__file__).parents[1]

sys.path.insert(0, str(TOP / "tools"))
from errors import FILE, made  # noqa: E402 - a tool


def lines() -> list[str]:
    text = FILE.read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.startswith("  ")]


def test_the_table_is_current() -> None:
    assert FILE.read_text(encoding="utf-8") == made(), "run `make format`, and read what changed"


def test_the_texts_are_in_one_voice() -> None:
    assert len(lines()) > 300
    for line in lines():
        assert not re.search(r"\b(please|sorry|invalid|illegal|unable to|failed to)\b", line), line
        assert not re.search(r"\w\.\.( |$)|\?\.", line), line


def test_advice_is_an_order() -> None:
    for line in lines():
        advice = line.partition(" What to do: ")[2]
        if advice and not advice.startswith("{"):
            assert re.match(r"[a-z-]+\b", advice), line
            assert not advice.startswith(("you ", "the ", "it ")), line
