"""Records are those of one split, also of delimiters and marks that overlap themselves."""

import re
from pathlib import Path

import pytest

from .conftest import Run


def records(streaming: Run, folder: Path, text: str, maps: int, *options: str) -> list[str]:
    """The lines of the records of a text, sorted."""
    (folder / "in").write_text(text)
    done = streaming(
        *("-D", f"mapreduce.job.maps={maps}", "-D", "mapreduce.job.reduces=0", *options),
        *("-input", folder / "in", "-output", folder / f"out{maps}", "-mapper", "cat"),
    )
    assert done.returncode == 0, done.stderr
    parts = (path.read_text() for path in (folder / f"out{maps}").glob("part-*"))
    return sorted(line.removesuffix("\t") for part in parts for line in part.splitlines())


@pytest.mark.parametrize(
    ("delimiter", "text"),
    [("\n\n", "abc\n\n\nefgh"), ("||", "a|||b||||c|||||d"), ("aa", "axxxxaxxaaaxaaaax")],
)
def test_a_delimiter_overlaps_itself(
    streaming: Run, tmp_path: Path, delimiter: str, text: str
) -> None:
    option = ("-D", f"textinputformat.record.delimiter={delimiter}")
    expected = sorted("\n".join(text.split(delimiter)).split("\n"))
    for maps in (1, 2, len(text)):
        assert records(streaming, tmp_path, text, maps, *option) == expected, maps
    combined = (*option, "-inputformat", "CombineTextInputFormat")  # its keys are offsets
    found = records(streaming, tmp_path, text, 3, *combined)
    assert sorted(re.sub(r"^\d+(\t|$)", "", line) for line in found) == expected


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ("begin=<a>,end=</a>", ["<a>x</a>", "<a>y<</a>", "<a>z</a>"]),
        ("begin=<b>,end=</b>", ["<b>x</b>", "<b>y</b>"]),
        ("begin=<!--,end=-->", ["<!--x--->", "<!--y-->"]),
    ],
)
def test_a_mark_comes_behind_its_own_first_byte(
    streaming: Run, tmp_path: Path, marks: str, expected: list[str]
) -> None:
    text = f"<<{'<'.join(expected)}\n"
    for maps in (1, 2, len(text)):
        options = ("-inputreader", f"StreamXmlRecord,{marks}")
        assert records(streaming, tmp_path, text, maps, *options) == expected, maps


def test_a_begin_mark_begins_within_an_end_mark(streaming: Run, tmp_path: Path) -> None:
    text = "--><a><b-->c><d-->--><e-->\n"
    options = ("-inputreader", "StreamXmlRecord,begin=><,end=-->")
    for maps in (1, 2, len(text)):
        found = records(streaming, tmp_path, text, maps, *options)
        assert found == ["><a><b-->", "><d-->", "><e-->"], maps
