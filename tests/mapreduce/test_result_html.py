"""What a notebook shows of a result."""

from collections.abc import Iterator
from itertools import count

from gristmill.mapreduce.results.result_html import html_of


def test_few_records_are_read_and_everything_is_escaped() -> None:
    read = list[int]()

    def records() -> Iterator[object]:
        for number in count():
            read.append(number)
            yield {"<script>": "<i>", "n": number}

    page = html_of("<Result: <u>>", records, {"<b>": 1234}, "report <job>")
    assert read == list(range(10))
    for mark in ("<script>", "<i>", "<u>", "<b>", "<job>"):
        assert mark not in page
    assert page.count("&lt;i&gt;") == 10
    assert "<td>1,234</td>" in page


def test_what_cannot_be_read_is_said() -> None:
    def gone() -> Iterator[object]:
        raise FileNotFoundError("cannot read <it>")
        yield

    page = html_of("<Result>", gone, {}, "")
    assert "cannot read &lt;it&gt;" in page
