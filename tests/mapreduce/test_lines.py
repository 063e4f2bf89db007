r"""What text and tsv files hold, against the rules written down plainly."""

import enum
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill as gm
from gristmill import _core
from gristmill.mapreduce.aggregates import Aggregate
from gristmill.mapreduce.formats.fields import fields_of

# --- the rules ---

ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def text_of(field: object) -> str:
    match field:
        case str():
            return field
        case bytes():
            return field.decode("utf-8", "surrogateescape")
        case None:
            return ""
        case _:
            return str(field)


def tsv_line(record: object) -> bytes:
    texts = [text_of(field).translate(ESCAPES) for field in fields_of(record)]
    return "\t".join(texts).encode("utf-8", "surrogateescape")


def text_line(record: object) -> bytes:
    if isinstance(record, (str, bytes)):
        return record.encode() if isinstance(record, str) else record
    if isinstance(record, tuple) and len(record) == 2:  # pyright: ignore[reportUnknownArgumentType]
        texts = map(text_of, fields_of(record))  # pyright: ignore[reportUnknownArgumentType]
        return "\t".join(texts).encode("utf-8", "surrogateescape")
    return str(record).encode()


# --- what is written ---


class Shown(str):
    """Text that is printed as other text: its content counts."""

    __slots__ = ()

    def __str__(self) -> str:
        return "SHOWN"


class Size(enum.IntEnum):
    BIG = 3


Point = namedtuple("Point", "x y")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = st.one_of(
    texts,
    st.text("ab\t\n\r\\\x00\udc80\udcff", max_size=6),
    st.binary(max_size=6),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.booleans(),
    st.none(),
    st.sampled_from([Shown("a\tb"), Size.BIG, 1j, [1, "a"], {"a": 1}, range(3)]),
)
records = st.one_of(
    scalars,
    st.recursive(scalars, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=8),
    st.tuples(scalars, scalars),
    st.builds(Point, scalars, scalars),
    st.tuples(st.permutations(["a", "b\t", "c"]), scalars).map(lambda it: dict.fromkeys(*it)),
    st.tuples(scalars, scalars, scalars).map(
        lambda it: dict(zip(["c", "a", "b\t"], it, strict=True))
    ),
)


def written(path: Path, records: list[Any], **options: Any) -> bytes:
    path.unlink(missing_ok=True)
    writer = _core.LineWriter(path, **options)
    writer.consume(records)
    assert writer.records() == len(records)
    assert writer.close() == path.stat().st_size
    return path.read_bytes()


@settings(max_examples=400)
@given(st.lists(records, max_size=5))
def test_lines_of_tsv(tmp_path_factory: pytest.TempPathFactory, records: list[Any]) -> None:
    path = tmp_path_factory.getbasetemp() / "lines.tsv"
    records = [it for it in records if not isinstance(it, dict) or len(it) == len("abc")]
    columns = next((list(it) for it in records if isinstance(it, dict)), [])
    ordered = [
        {name: it[name] for name in columns} if isinstance(it, dict) else it for it in records
    ]
    assert written(path, records, tsv=True) == b"".join(tsv_line(it) + b"\n" for it in ordered)


def test_dicts_with_other_columns_are_no_lines_of_one_file(tmp_path: Path) -> None:
    first = {"a": 1, "b": 2}
    for other in ({"a": 1}, {"a": 1, "c": 2}, {"a": 1, "b": 2, "c": 3}, {}):
        with pytest.raises(ValueError, match=r"has the columns .*, and the first one .*'a', 'b'"):
            written(tmp_path / "a", [first, other], tsv=True)


@settings(max_examples=400)
@given(st.lists(records, max_size=5))
def test_lines_of_text(tmp_path_factory: pytest.TempPathFactory, records: list[Any]) -> None:
    path = tmp_path_factory.getbasetemp() / "lines.txt"
    try:
        expected = b"".join(text_line(it) + b"\n" for it in records)
    except UnicodeEncodeError:  # text that is none, and is no field
        with pytest.raises(UnicodeEncodeError):
            written(path, records)
        return
    assert written(path, records) == expected


def test_a_record_that_has_no_line_leaves_none_of_it(tmp_path: Path) -> None:
    class Unprintable:
        def __str__(self) -> str:
            raise ZeroDivisionError

    writer = _core.LineWriter(tmp_path / "a", tsv=True)
    writer.write(("good", 1))
    with pytest.raises(ZeroDivisionError):
        writer.write(("begun", Unprintable()))
    writer.write(("more", 2))
    assert writer.records() == 2
    writer.close()
    assert (tmp_path / "a").read_bytes() == b"good\t1\nmore\t2\n"


def test_tuples_without_end_are_an_error(tmp_path: Path) -> None:
    deep: Any = ()
    for _ in range(100_000):
        deep = (deep, 1)
    writer = _core.LineWriter(tmp_path / "a", tsv=True)
    with pytest.raises(RecursionError, match="more than 1000 deep"):
        writer.write(deep)


def test_lines_that_a_function_makes(tmp_path: Path) -> None:
    made = written(tmp_path / "a", ["x", "y"], line_of=lambda it: it * 2)
    assert made == b"xx\nyy\n"
    made = written(tmp_path / "a", ["x"], line_of=lambda it: it.encode("utf-16-le"))
    assert made == b"x\x00\n"
    with pytest.raises(TypeError):
        written(tmp_path / "a", ["x"], line_of=len)


def test_more_than_a_piece(tmp_path: Path) -> None:
    lines = [f"{number:>50}" for number in range(20_000)]
    assert written(tmp_path / "a", lines) == "".join(f"{it}\n" for it in lines).encode()


# --- aggregates, which never become objects ---

keys = st.one_of(
    st.text("ab\t\n\\ä\x00", max_size=3),
    st.binary(max_size=2),
    st.integers(-3, 3),
    st.integers(2**63 - 2, 2**64 + 2),
    st.sampled_from([0.5, -0.0, float("inf")]),
    st.booleans(),
    st.none(),
    st.tuples(st.text("a\t", max_size=1), st.integers(0, 2)),
)
values = st.one_of(st.integers(), st.floats(-1e9, 1e9))


def itself(record: Any) -> Iterator[Any]:
    yield record


@settings(max_examples=15)
@given(
    st.lists(st.tuples(keys, values), max_size=40),
    st.sampled_from(
        [gm.sum(), gm.mean(), gm.max(), gm.count(), gm.top(2), gm.collect(), gm.distinct()]
    ),
)
def test_aggregates_as_lines_are_those_of_their_objects(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[Any], aggregate: Aggregate
) -> None:
    folder = tmp_path_factory.getbasetemp()

    def run(output: Any) -> Any:
        job = gm.Job(gm.items(pairs), map=itself, reduce=aggregate, output=output, parts=1)
        return job.run(workers=1, overwrite=True, no_sync=True)

    found = list(run(gm.kv(folder / "kv")).read())
    for output, line in ((gm.tsv(folder / "tsv"), tsv_line), (gm.text(folder / "t"), text_line)):
        result = run(output)
        (part,) = result.files()
        assert part.read_bytes() == b"".join(line(pair) + b"\n" for pair in found)
        assert result.counters["REDUCE_OUTPUT_RECORDS"] == len(found)
