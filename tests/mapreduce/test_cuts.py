"""Records are those of one split, wherever the splits of a file are cut."""

import csv
import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import gristmill as gm
from gristmill.mapreduce.formats.format import BadRecord, Input
from gristmill.mapreduce.formats.plan import NO_MAX

few = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


def itself(record: Any) -> Iterator[Any]:
    yield record


def parts(source: Input, split_max: int) -> list[list[Any]]:
    """The records of each split."""
    return [list(source.open(split.what)) for split in source.plan(0, split_max).splits]


def records(source: Input, split_max: int) -> list[Any]:
    return [record for split in parts(source, split_max) for record in split]


def cut_at(source: Input, at: int) -> list[Any]:
    """The records of a file that is cut at one byte."""
    (split,) = source.plan(0, NO_MAX).splits
    (piece,) = split.what["pieces"]
    halves = [{**piece, "bytes": at}, {**piece, "start": at, "bytes": piece["bytes"] - at}]
    return [record for half in halves for record in source.open({"pieces": [half]})]


def one_by_one(source: Input, split_max: int) -> list[Any]:
    """Records, and what is wrong with those that are bad."""

    def found(what: dict[str, Any]) -> Iterator[Any]:
        reader = iter(source.open(what, tolerant=True))
        while True:
            try:
                yield next(reader)
            except StopIteration:
                return
            except BadRecord as error:
                yield str(error)

    splits = source.plan(0, split_max).splits
    return [record for split in splits for record in found(split.what)]


FORMATS: dict[str, Callable[[Path], Input]] = {
    "text": lambda path: gm.text(path, encoding=None),
    "with_cr": lambda path: gm.text(path, encoding=None, strip_cr=False),
    "delimited": lambda path: gm.delimited(path, separator=b"a"),
    "csv": lambda path: gm.csv(path, header=False, multiline=False, encoding="latin-1"),
}


@pytest.mark.parametrize("name", FORMATS)
@few
@seed(34)
@given(st.lists(st.sampled_from([b"a", b"b", b",", b"\n", b"\r\n", b"\xef\xbb\xbf"]), max_size=20))
def test_a_cut_at_any_byte(name: str, tmp_path: Path, pieces: list[bytes]) -> None:
    data = b"".join(pieces) + b"\n"
    path = tmp_path / "a"
    path.write_bytes(data)
    source = FORMATS[name](path)
    whole = cut_at(source, len(data))
    for at in range(1, len(data)):
        assert cut_at(source, at) == whole, at


@few
@seed(34)
@given(
    st.lists(
        st.lists(st.sampled_from(["", "@a", "+\r", "long " * 4]), max_size=12).map(tuple),
        min_size=1,
        max_size=3,
    ),
    st.integers(2, 5),
    st.sampled_from(["", "\n"]),
)
def test_several_lines(
    tmp_path: Path, files: list[tuple[str, ...]], lines: int, ended: str
) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    want: list[list[str]] = []
    for number, texts in enumerate(files):
        text = "\n".join(texts) + ended
        (tmp_path / f"{number}").write_text(text, newline="")
        found = text.split("\n")
        if not found[-1]:
            found.pop()
        want += [found[at : at + lines] for at in range(0, len(found), lines)]
    source = gm.text(tmp_path, lines=lines, strip_cr=False)
    for split_max in (*range(1, 40), NO_MAX):
        assert records(source, split_max) == want, split_max


def test_records_of_fastq_begin_with_their_sign(tmp_path: Path) -> None:
    reads = [["@" + "r" * (n % 7), "ACGT" * (n % 5), "+", "@+FF" * (n % 5)] for n in range(2000)]
    (tmp_path / "x.fq").write_text("".join("\n".join(read) + "\n" for read in reads))
    source = gm.text(tmp_path / "x.fq", lines=4)
    splits = parts(source, 1000)
    assert len(splits) > 20
    assert [read for split in splits for read in split] == reads


@few
@seed(34)
@given(st.lists(st.lists(st.text("ab\n\r,\"' ", max_size=5), min_size=2, max_size=2), max_size=8))
def test_quoted_newlines_are_rows_or_errors(tmp_path: Path, rows: list[list[str]]) -> None:
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    path = tmp_path / "a.csv"
    path.write_text(buffer.getvalue(), newline="")
    assert records(gm.csv(path, header=False), 3) == list(map(tuple, rows))
    source = gm.csv(path, header=False, multiline=False)
    whole = one_by_one(source, NO_MAX)
    for split_max in range(1, 30):
        assert one_by_one(source, split_max) == whole, split_max
    if any("\n" in field for row in rows for field in row):
        assert any("multiline=False" in record for record in whole)
    else:
        assert whole == list(map(tuple, rows))


ODD_CSV = [b"a", b",", b'"', b'""', b'"b\n', b"\n", b"\r\n", b"\r", b"\xff", b"\xc3\xa9", b";"]


@pytest.mark.parametrize("options", [{}, {"delimiter": ";", "encoding": "latin-1"}], ids=str)
@settings(few, max_examples=100)
@seed(34)
@given(st.lists(st.sampled_from(ODD_CSV), max_size=24))
def test_rows_are_those_of_one_split(
    tmp_path: Path, options: dict[str, Any], pieces: list[bytes]
) -> None:
    """Good rows, and the errors of bad ones, whatever quotes, CR and wrong bytes do."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"".join([*pieces, b"\n1,2\n"]))
    source = gm.csv(path, header=False, **options)
    whole = one_by_one(source, NO_MAX)
    for split_max in range(1, 40):
        assert one_by_one(source, split_max) == whole, split_max


def test_a_large_file_of_rows_is_cut_where_they_begin(tmp_path: Path) -> None:
    rows = [{"n": str(n), "t": 'a "b",\n' * (n % 5)} for n in range(100_000)]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["n", "t"])
        writer.writeheader()
        writer.writerows(rows)
    (tmp_path / "a.gbk.csv").write_bytes((tmp_path / "a.csv").read_bytes())
    source = gm.csv(tmp_path / "a.csv")
    found = parts(source, 1 << 16)
    assert len(found) > 20
    assert [row for part in found for row in part] == rows
    (split,) = gm.csv(tmp_path / "a.gbk.csv", encoding="gbk").plan(0, 1 << 16).splits
    assert list(source.open(split.what)) == rows


def test_a_header_of_many_lines(tmp_path: Path) -> None:
    name = "long\n" * 20_000
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [["n", name], *([n, "x"] for n in range(100))]
        )
    found = parts(gm.csv(tmp_path / "a.csv"), 1 << 10)
    assert len([part for part in found if part]) == 1  # the rows are shorter than a split
    found = parts(gm.csv(tmp_path / "a.csv"), 100)
    assert len(found) > 2
    assert [row for part in found for row in part] == [{"n": str(n), name: "x"} for n in range(100)]


def test_an_output_is_read_without_a_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"n": str(n), "t": "x" * 40} for n in range(60_000)]
    job = gm.Job(gm.items(rows), map=itself, output=gm.csv(tmp_path / "out"), split_min="1G")
    result = job.run()
    (part,) = result.files()
    assert len(gm.csv(part).plan(0, NO_MAX).splits) > 1
    planned: list[int] = []
    plan = type(gm.csv(part)).plan

    def seen(*given: Any) -> Any:
        planned.append(len(plan(*given).splits))
        return plan(*given)

    monkeypatch.setattr("gristmill.mapreduce.formats.table_csv.Csv.plan", seen)
    assert list(result.read()) == rows
    assert planned == [1]


def test_a_job_that_is_planned_slowly_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from gristmill.mapreduce.submit import planning_told

    monkeypatch.setattr(planning_told, "AFTER_S", 0.01)
    monkeypatch.setattr(planning_told, "_on_terminal", lambda: True)
    for progress, told in ((None, True), (True, True), (False, False)):
        with planning_told.told_if_slow(progress):
            time.sleep(0.3)
        assert ("planning the job" in capsys.readouterr().err) == told


def test_a_row_that_is_not_text_is_bad_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'n,t\n1,"x\n\xff,y\nz"\n2,w\n')
    source = gm.csv(tmp_path / "a.csv")
    job = gm.Job(source, map=itself, output=gm.jsonl(tmp_path / "out"), skip_bad=1)
    assert list(job.run()) == [{"n": "2", "t": "w"}]


@pytest.mark.parametrize("split_max", [5, None])
@pytest.mark.parametrize("header", [True, False])
def test_the_error_of_a_quoted_newline(
    tmp_path: Path, split_max: int | None, *, header: bool
) -> None:
    path = tmp_path / "a.csv"
    path.write_text('n,t\n1,x\n2,"y\nz"\n3,w\n')
    source = gm.csv(path, header=header, multiline=False)
    job = gm.Job(source, map=itself, output=gm.jsonl(tmp_path / "out"), split_max=split_max)
    with pytest.raises(ValueError, match=r"offset (8|13).*leave multiline=False out"):
        job.run()
