"""What people do to a job without meaning harm: odd values, odd functions, odd files."""

import dataclasses
import enum
import json
import os
import sys
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.mapreduce.harness import gristmill, itself, listed, run, total

import gristmill as gm
from gristmill.mapreduce.check.determinism import check_output

# --- values ---


@dataclasses.dataclass
class Point:
    x: int


Named = namedtuple("Named", "x")


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize("make", [Point, Named, lambda n: Colour.RED, lambda n: lambda: n])
def test_values_of_classes_that_only_the_script_has(tmp_path: Path, make: Any) -> None:
    def kinds(key: str, values: Iterable[Any]) -> Iterator[tuple[str, list[str]]]:
        yield key, [type(value).__name__ for value in values]

    found = run([1, 2], tmp_path, map=lambda n: [("k", make(n))], reduce=kinds).read()
    assert list(found) == [("k", [type(make(1)).__name__] * 2)]


CLASSES = """
import enum, pickle
from collections import namedtuple
from dataclasses import dataclass
import gristmill as gm


@dataclass
class Point:
    x: int


Named = namedtuple("Named", "x")
Colour = enum.Enum("Colour", "RED")


def made(n):
    assert len(pickle.dumps(Point(n))) < 100
    yield "k", (Point(n), Named(n), Colour.RED)


def same(key, values):
    for point, named, colour in values:
        yield key, (isinstance(point, Point), isinstance(named, Named), colour is Colour.RED, point)


first = gm.Job(gm.items([1, 2]), map=made, reduce=same)
job = first.then(map=lambda pair: [str(pair[1])], output=gm.text("out"))
"""


def test_values_of_classes_of_a_job_file_go_by_name(tmp_path: Path) -> None:
    """Also where the job that reads them does not name the class."""
    (tmp_path / "job.py").write_text(CLASSES)
    gristmill("run", "job.py", cwd=tmp_path)
    lines = (tmp_path / "out/part-m-00000.txt").read_text().splitlines()
    assert lines == [f"(True, True, True, Point(x={n}))" for n in (1, 2)]


def growing(_record: Any) -> Iterator[tuple[str, list[int]]]:
    seen: list[int] = []
    for n in range(3):
        seen.append(n)
        yield "k", seen


@pytest.mark.parametrize("skip_bad", [0, 1])
def test_a_list_that_goes_on_growing_after_it_was_yielded(tmp_path: Path, skip_bad: int) -> None:
    def regrown(key: str, values: Iterable[list[int]]) -> Iterator[tuple[str, list[Any]]]:
        seen: list[Any] = []
        for value in values:
            seen.append(value)
            yield key, seen

    found = run([1], tmp_path, map=growing, reduce=regrown, skip_bad=skip_bad).read()
    steps = [[0], [0, 1], [0, 1, 2]]
    assert list(found) == [("k", steps[: n + 1]) for n in range(3)]


@pytest.mark.parametrize("output", [gm.parquet, gm.arrow])
def test_a_row_that_is_filled_again(tmp_path: Path, output: Callable[..., Any]) -> None:
    def rows(_record: Any) -> Iterator[dict[str, Any]]:
        row: dict[str, Any] = {"seen": []}
        for n in range(2):
            row["n"] = n
            row["seen"].append(n)
            yield row

    found = list(run([1], tmp_path, map=rows, output=output(tmp_path / "out")).read())
    assert found == [{"seen": [0], "n": 0}, {"seen": [0, 1], "n": 1}]


def test_ordered_values_of_keys_that_begin_alike(tmp_path: Path) -> None:
    keys = ["", "\x00", "\x00a", "a", "a\x00b", b"", b"\x00", (), (None,), (None, None), None]
    pairs = [(key, n) for n in (2, 1) for key in keys]
    found = run(pairs, tmp_path, reduce=listed, sort_by=lambda key, value: value).read()
    assert sorted(map(repr, found)) == sorted(repr((key, [1, 2])) for key in keys)


def test_check_takes_equal_records_for_equal(tmp_path: Path) -> None:
    """The same text twice in a record is one object here, and two in a worker."""
    job = gm.Job(
        gm.items(list("ab")),
        map=lambda _: [("k", "constant")],
        reduce=listed,
        output=gm.kv(tmp_path / "out"),
    )
    assert check_output(job, rounds=1).deterministic


# --- functions ---


class Unsayable(Exception):
    def __str__(self) -> str:
        raise ValueError("no")


def raising(error: BaseException) -> Callable[[Any], None]:
    def fail(_record: Any) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (Unsayable(), "map fail: Unsayable: its str raises ValueError"),
        (ValueError("x" * 10**6), r"map fail: ValueError: x+ \[\.\.\.\] x+ "),
        (ValueError("a\x1b[31m\n\udcff"), r"ValueError: a\\x1b\[31m \\udcff "),
        (KeyboardInterrupt(), "map fail: KeyboardInterrupt"),
        (StopIteration(), "map fail: StopIteration"),
    ],
)
def test_what_exceptions_say(tmp_path: Path, error: BaseException, says: str) -> None:
    with pytest.raises(RuntimeError, match=says) as caught:
        run([1], tmp_path, map=raising(error), reduce=total)
    assert len(str(caught.value)) < 2000
    assert "items, offset 0" in str(caught.value)


@pytest.mark.parametrize("error", [Unsayable(), ValueError("\udcff")])
def test_what_is_left_out_whatever_it_says(tmp_path: Path, error: BaseException) -> None:
    result = run([1], tmp_path, map=raising(error), reduce=total, skip_bad=1)
    assert type(error).__name__ in next(result.output.glob("_bad-*")).read_text()


def test_counters_and_status_of_any_kind(tmp_path: Path) -> None:
    def count(n: int, context: gm.Context) -> None:
        context.count("g\udc80", ("a", n), True)
        context.status(n)  # pyright: ignore[reportArgumentType] - as people write it
        context.status("\udc80")

    result = run([1], tmp_path, map=count, output=gm.text(tmp_path / "out"))
    assert result.user_counters == {"g\\udc80": {"('a', 1)": 1}}

    def half(_n: int, context: gm.Context) -> None:
        context.count("g", "n", 0.5)  # pyright: ignore[reportArgumentType]

    with pytest.raises(RuntimeError, match=r"TypeError: 'float' object .*items, offset 0"):
        run([1], tmp_path / "2", map=half, output=gm.text(tmp_path / "half"))


def test_a_setup_that_is_a_generator(tmp_path: Path) -> None:
    def prepare(context: gm.Context) -> Iterator[None]:
        context.state.ready = True
        yield

    with pytest.raises(RuntimeError, match=r"setup prepare has a yield .* a plain function"):
        run([1], tmp_path, setup=prepare, map=itself, output=gm.text(tmp_path / "out"))


def leave(code: int) -> None:
    sys.exit(code)


@pytest.mark.parametrize(("end", "code"), [(leave, 3), (lambda n: 1 / 0, 1), (lambda n: None, 0)])
def test_a_fork_that_comes_back_is_no_worker(tmp_path: Path, end: Any, code: int) -> None:
    def forked(n: int) -> Iterator[tuple[str, int]]:
        child = os.fork()
        if child == 0:
            end(3)
            yield "never", n
            return
        yield "code", os.waitpid(child, 0)[1] >> 8

    result = run([1, 2], tmp_path, map=forked, output=gm.jsonl(tmp_path / "out"))
    assert list(result.read()) == [{"key": "code", "value": code}] * 2


def test_descriptors_that_are_closed_and_folders_that_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("spill").mkdir()
    for name in "abc":
        Path(name).write_text(f"{name}\n")
    pq.write_table(pa.table({"n": [1]}), "1.parquet")
    pq.write_table(pa.table({"n": [2]}), "2.parquet")

    def far(record: Any) -> Iterator[tuple[str, Any]]:
        os.chdir("/")
        yield "k", record

    def close(record: Any) -> Iterator[tuple[str, Any]]:
        os.closerange(0, 21)
        yield from far(record)

    def written(source: Any, out: str, function: Any = far) -> list[Any]:
        job = gm.Job(source, map=function, reduce=listed, output=gm.kv(out), split_max=1)
        return [row for _, rows in job.run(workers=1, spill_dir="spill").read() for row in rows]

    assert written(gm.text(["a", "b", "c"]), "lines") == ["a", "b", "c"]
    assert written(gm.items([1, 2]), "closed", close) == [1, 2]
    assert written(gm.text(["a", "b"], whole=True), "whole") == [("a", "a\n"), ("b", "b\n")]
    assert written(gm.parquet(["1.parquet", "2.parquet"]), "rows") == [{"n": 1}, {"n": 2}]
    assert written(gm.kv("lines"), "again") == [("k", ["a", "b", "c"])]
    assert list(Path("spill").iterdir()) == []


def test_samples_write_to_named_outputs_and_leave_out_bad_records(tmp_path: Path) -> None:
    def invert(n: int, context: gm.Context) -> Iterator[tuple[int, float]]:
        context.output("seen").write(n)
        yield n, 1 / (n - 3)

    result = run(
        list(range(6)), tmp_path, map=invert, reduce=total, parts=3,
        partition_by=gm.sampled_ranges(), outputs={"seen": gm.jsonl()}, skip_bad=1,
    )  # fmt: skip
    assert [key for key, _ in result.read()] == [0, 1, 2, 4, 5]
    assert list(result.read("seen")) == [0, 1, 2, 4, 5]


def test_a_listed_job_at_the_far_end_of_a_chain(tmp_path: Path) -> None:
    first = gm.Job(gm.items([("a", 1)]), reduce=total, output=gm.kv(tmp_path / "first"))
    last = first.then(map=itself, reduce=total).then(map=itself, output=gm.kv(tmp_path / "last"))
    assert [list(result.read()) for result in gm.run_all([last, first])] == [[("a", 1)]] * 2


# --- files ---


def test_csv_as_it_comes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"

    def read(**options: Any) -> list[Any]:
        job = gm.Job(gm.csv(path), map=itself, output=gm.jsonl(tmp_path / "out"), **options)
        return list(job.run(overwrite=True, workers=1).read())

    path.write_bytes(b"n,t\n\n1," + b"x" * 200_000 + b"\n")
    assert [len(row["t"]) for row in read()] == [200_000]
    path.write_bytes(b"n,t\n1,a\n\xff,b\n2,c\n3,d\n")
    assert [row["n"] for row in read(skip_bad=1)] == ["1", "2", "3"]
    path.write_bytes(b"n,n\n1,2\n")
    with pytest.raises(ValueError, match=r"two columns are named 'n'.* header=False"):
        read()
    path.write_bytes(b"\nn,m\n1,2\n")
    with pytest.raises(ValueError, match="the first line is empty"):
        read()
    path.write_bytes(b"\xff,n\n1,2\n")
    with pytest.raises(ValueError, match="the first row names no columns"):
        read(skip_bad=3)
    result = run([1], tmp_path, map=lambda _: [(b"k", 1)], output=gm.csv(tmp_path / "bytes"))
    assert list(result.read()) == [{"key": "k", "value": "1"}]


def test_the_header_of_a_file_that_is_cut(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfn,t\r\n\r\n1,a\r\n2,b\r\n")
    source = gm.csv(tmp_path / "a.csv", multiline=False)
    found = run(source, tmp_path, map=itself, split_max=5, output=gm.jsonl(tmp_path / "out"))
    assert list(found.read()) == [{"n": "1", "t": "a"}, {"n": "2", "t": "b"}]
    (tmp_path / "a.csv").write_bytes(b"n,n\n1,2\n3,4\n")
    with pytest.raises(ValueError, match=r"a\.csv: two columns are named 'n'"):
        source.plan(0, 4)


def test_json_that_is_too_deep_or_half_a_pair(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("[]\n" + "[" * 100_000 + '\n"\\ud800"\n')
    job = gm.Job(gm.jsonl(tmp_path / "a"), map=itself, output=gm.jsonl(tmp_path / "out"))
    with pytest.raises(ValueError, match=r"the line is not JSON: maximum recursion .*offset 3"):
        job.run()
    assert list(dataclasses.replace(job, skip_bad=1).run().read()) == [[], "\ud800"]


@pytest.mark.parametrize("form", [gm.tsv, gm.delimited])
def test_lines_of_another_encoding_than_the_format_reads(tmp_path: Path, form: Any) -> None:
    (tmp_path / "a").write_bytes(b"a\tb\ncaf\xe9\tb\n")
    with pytest.raises(ValueError, match=r"the line is not UTF-8: .* byte 3 .*line 2") as failed:
        run(form(tmp_path / "a"), tmp_path, map=itself)
    assert "What to do: convert the file, for example with iconv" in str(failed.value)
    assert "encoding=" not in str(failed.value)


@pytest.mark.parametrize("value", [[{"a": 1}, {"a": 2}], {"a": 1, "b": [2]}])
@pytest.mark.parametrize("split_max", [None, 1])
def test_json_over_several_lines(tmp_path: Path, value: Any, split_max: int | None) -> None:
    (tmp_path / "a").write_text(json.dumps(value, indent=1))
    says = "looks like a part of one JSON document over several lines.* What to do: .* jq -c '"
    with pytest.raises(ValueError, match=says) as failed:
        run(gm.jsonl(tmp_path / "a"), tmp_path, map=itself, split_max=split_max)
    assert "skip_bad" not in str(failed.value)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("ends", ["", "\n"])
def test_json_in_another_encoding(tmp_path: Path, encoding: str, ends: str) -> None:
    (tmp_path / "a").write_bytes(f'{{"a": "é"}}{ends}'.encode(encoding))
    names = {"latin-1": "latin1", "utf-16-le": "utf-16le", "utf-16-be": "utf-16be"}
    named = names.get(encoding, encoding)
    says = f"line 1.* What to do: convert the file, for example with iconv -f {named} -t utf-8"
    with pytest.raises(ValueError, match=says) as failed:
        run(gm.jsonl(tmp_path / "a"), tmp_path, map=lambda row: [("k", row)])
    assert "skip_bad" not in str(failed.value)


def test_a_mark_before_json_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes('{"a": 1}\n'.encode("utf-8-sig"))
    assert list(run(gm.jsonl(tmp_path / "a"), tmp_path, output=gm.jsonl(tmp_path / "b"))) == [
        {"a": 1}
    ]


@pytest.mark.parametrize(
    "form", [gm.text, gm.tsv, gm.csv, gm.jsonl, lambda path: gm.delimited(path, ",")]
)
def test_lines_that_end_with_cr_alone(tmp_path: Path, form: Any) -> None:
    (tmp_path / "a").write_bytes(b"id,v\r1,a\r2,b\r")
    says = r"the lines of .*/a end with CR alone.* convert it: tr '\\r' '\\n'"
    with pytest.raises(ValueError, match=says):
        run(form(tmp_path / "a"), tmp_path, map=itself)


def test_one_line_with_several_crs(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"10%\r20%\r30%")
    source = gm.text(tmp_path / "a", strip_cr=False)
    result = run(source, tmp_path, output=gm.jsonl(tmp_path / "out"))
    assert list(result) == ["10%\r20%\r30%"]


@pytest.mark.parametrize("key", [1, -20, 1.5, 1e300, True, False, None])
@pytest.mark.parametrize("wrap", [lambda row: row, lambda row: ("k", [{"in": (row,)}])])
def test_keys_that_are_one_in_json(tmp_path: Path, key: Any, wrap: Any) -> None:
    text = next(iter(json.loads(json.dumps({key: 0}))))
    jsonl_line(tmp_path, wrap({key: 0, text + "0": 1}))
    with pytest.raises(ValueError, match="has no JSON: two keys of a dict are one there"):
        jsonl_line(tmp_path, wrap({key: 0, text: 1}))


def jsonl_line(folder: Path, record: Any) -> None:
    writer = gm.jsonl().writer(str(folder / str(len(list(folder.iterdir())))))
    writer.write(record)


def test_long_lines_of_a_log_are_cut(tmp_path: Path) -> None:
    def shout(_record: Any) -> None:
        print("x" * 1_000_000)
        raise ValueError("no")

    with pytest.raises(RuntimeError) as caught:
        run([1], tmp_path, map=shout, output=gm.text(tmp_path / "out"))
    assert all(len(note) < 1000 for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: gm.Job(gm.items([]), map=itself, output=gm.fixed("o", 3)), "is an input only"),
        (lambda: gm.Job(gm.csv("a"), map_batches=itself), "map_batches takes lines of text"),
        (lambda: gm.Job(gm.text("a", whole=True), map_batches=itself), "map_batches takes"),
        (lambda: gm.Job(gm.Job(gm.items([]), map=itself), map_batches=itself), "map_batches takes"),
        (lambda: gm.Job(gm.items([]), reduce=total, parts="4"), "parts is '4'"),
        (lambda: gm.Job(gm.items([]), reduce=total, skip_bad=1.5), "skip_bad is 1.5"),
        (
            lambda: gm.Job(gm.items([]), reduce=total, partition_by=gm.ranges("qh")),
            "the cut 'h' of gm.ranges does not come after",
        ),
        (
            lambda: gm.Job(gm.items([]), reduce=total, partition_by=gm.ranges([[1]])),
            r"a cut of gm.ranges is not a key: [^?]*\.",
        ),
        (lambda: gm.text("a", encoding="rot13"), "there is no text encoding 'rot13'"),
        (lambda: gm.csv("a", quotechar=None), "quotechar is None"),
        (lambda: gm.csv("a", delimiter="\n"), "delimiter and quotechar are not two that"),
        (lambda: gm.csv("a", delimiter='"'), "delimiter and quotechar are not two that"),
        (lambda: gm.parquet("a", schema=["n"]), r"of gm.parquet, schema is \['n'\]"),
        (lambda: gm.arrow("a", schema="n"), "of gm.arrow, schema is 'n'"),
        (
            lambda: gm.Job(gm.items([]), map=itself, outputs={"odd": gm.tsv("odd/")}),
            r"the output odd is gm.tsv\('odd/'\), and named outputs are files odd-\* of output=\.",
        ),
        (lambda: gm.csv("a", delimiter=";;"), "a 1-character string"),
        (lambda: gm.parquet("a", codec="bzip2"), "gm.parquet has no codec 'bzip2'"),
        (lambda: gm.arrow("a", codec="gzip"), "gm.arrow has no codec 'gzip'"),
    ],
)
def test_what_is_refused_before_it_runs(make: Callable[[], Any], says: str) -> None:
    with pytest.raises((ValueError, TypeError), match=rf"^cannot .*{says}.* What to do: "):
        make()


@pytest.mark.parametrize("value", ["4", None, 1.5, 0, -1])
def test_what_is_no_number_of_lines_or_bytes(value: Any) -> None:
    says = f"must be a whole number of 1 or more, not {value!r}. What to do: "
    for make in (lambda: gm.text("a", lines=value), lambda: gm.fixed("a", value)):
        with pytest.raises((ValueError, TypeError), match=says):
            make()


def test_one_side_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    assert gm.Job(gm.items([]), map=itself, files=tmp_path / "a.txt").files == (
        str(tmp_path / "a.txt"),
    )


def test_a_line_of_more_than_64_mb_is_refused_with_other_ways(tmp_path: Path) -> None:
    with (tmp_path / "zeros").open("wb") as file:
        file.truncate((64 << 20) + 2)
    with pytest.raises(ValueError, match="a line is longer than 67108864 bytes") as failed:
        run(gm.text(tmp_path / "zeros"), tmp_path, map=itself)
    assert "gm.text(paths, whole=True)" in str(failed.value)


# --- files that say that they are empty ---

SAYS_EMPTY = Path("/proc/version")


@pytest.mark.skipif(not SAYS_EMPTY.exists(), reason="there is no such file but on Linux")
@pytest.mark.parametrize("form", [gm.text, gm.jsonl, gm.csv, gm.tsv, gm.delimited])
def test_a_file_that_says_that_it_is_empty_and_is_not(tmp_path: Path, form: Any) -> None:
    assert SAYS_EMPTY.stat().st_size == 0
    with pytest.raises(
        ValueError, match=r"it says that it is empty, and it is not.*What to do: copy"
    ):
        run(form(SAYS_EMPTY), tmp_path, map=itself)
    (tmp_path / "empty").touch()
    assert not list(run(gm.text(tmp_path / "empty"), tmp_path, map=itself).read())
