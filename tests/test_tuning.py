"""docs/tuning.md: tables that one can read, a line a row, and every note that a row names."""

import re
from pathlib import Path

TEXT = (Path(__file__).parents[1] / "docs/tuning.md").read_text(encoding="utf-8")
ROWS = [line for line in TEXT.partition("\n## Notes")[0].splitlines() if line.startswith("| ")]
TRIED = [row for row in ROWS if not row.startswith("| tried ")]


def test_a_row_is_a_line_that_one_can_read() -> None:
    assert len(TRIED) > 45
    assert [row for row in TRIED if len(row) > 160] == []


def test_a_row_says_what_it_gave_and_whether_it_stayed() -> None:
    for row in TRIED:
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        assert len(cells) == 3, row
        assert all(cells), row
        assert cells[2] in ("yes", "no", "in part"), row


def test_every_note_is_there_and_named() -> None:
    notes = re.findall(r"^(\d+)\. ", TEXT.partition("\n## Notes")[2], re.MULTILINE)
    named = {note for row in TRIED for note in re.findall(r"`\[(\d+)\]`", row)}
    assert notes == [str(number) for number in range(1, len(notes) + 1)]
    assert named == set(notes)
