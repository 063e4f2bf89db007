"""The first job: words counted, against `collections.Counter`, however it is run."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.mapreduce.harness import CODECS, total, words

import gristmill as gm


@pytest.fixture(scope="module")
def counts(lines: list[str]) -> Counter[str]:
    return Counter(word for line in lines for word in line.split())


@pytest.mark.parametrize("memory", ["64M", "300M"])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("parts", [1, 3])
def test_words(
    text: Path, counts: Counter[str], tmp_path: Path, parts: int, workers: int, memory: str
) -> None:
    job = gm.Job(
        gm.text(f"{text}/**/*.txt*"),
        map=words,
        reduce=gm.sum(),
        parts=parts,
        split_max=50_000,
        output=gm.tsv(tmp_path / "counts"),
    )
    result = job.run(memory=memory, workers=workers)
    assert {key: int(value) for key, value in result.read()} == counts
    assert len(result.files()) == parts
    assert (result.output / "_SUCCESS").exists()
    for file in result.files():
        keys = [line.split("\t")[0] for line in file.read_text().splitlines()]
        assert keys == sorted(keys), "keys come in order"
    assert result.counters["MAP_OUTPUT_RECORDS"] == sum(counts.values())
    assert result.counters["REDUCE_OUTPUT_RECORDS"] == len(counts)
    assert result.report.records == len(counts)


def totals_of(values: Iterable[int]) -> Iterator[int]:
    yield sum(values)


def combine(_key: str, values: Iterable[int]) -> Iterator[int]:
    yield sum(values)


def returned(line: str) -> list[tuple[str, int]] | None:
    return [(word, 1) for word in line.split()] or None


def table_of_words(batch: Any) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.list_flatten(pc.utf8_split_whitespace(batch.column("line")))
    found = found.filter(pc.not_equal(found, ""))
    counted = pc.value_counts(found)
    yield pa.table({"word": counted.field(0), "n": counted.field(1)})


def pairs_of_batches(batch: Any) -> Iterator[tuple[str, int]]:
    for line in batch.column("line").to_pylist():
        yield from words(line)


def total_of_batches(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        yield batch.group_by("key").aggregate([("value", "sum")]).rename_columns(["key", "value"])


def total_by_rows(batches: Iterable[Any]) -> Iterator[tuple[str, int]]:
    counts: Counter[str] = Counter()
    for batch in batches:
        for row in batch.to_pylist():
            counts[row["key"]] += row["value"]
    yield from counts.items()


@pytest.mark.parametrize(
    "functions",
    [
        {"map": words, "reduce": total},
        {"map": words, "reduce": total, "combine": combine},
        {"map": returned, "reduce": gm.count()},
        {"map_batches": pairs_of_batches, "reduce": gm.sum()},
        {"map_batches": table_of_words, "reduce": gm.sum()},
        {"map_batches": table_of_words, "reduce": total},
        {"map": words, "reduce_batches": total_by_rows},
    ],
    ids=" ".join,
)
def test_ways_to_write_it(
    text: Path, counts: Counter[str], tmp_path: Path, functions: dict[str, Callable[..., Any]]
) -> None:
    job = gm.Job(
        gm.text(text), **functions, parts=2, split_max=100_000, output=gm.kv(tmp_path / "counts")
    )
    assert dict(job.run(workers=2).read()) == counts


def test_batches_to_a_table(text: Path, counts: Counter[str], tmp_path: Path) -> None:
    job = gm.Job(
        gm.text(text),
        map=words,
        reduce_batches=total_by_rows,
        output=gm.parquet(tmp_path / "counts"),
    )
    table = job.run().to_arrow()
    found = dict(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))
    assert found == counts


@pytest.mark.parametrize("codec", CODECS)
def test_compressed(text: Path, counts: Counter[str], tmp_path: Path, codec: str) -> None:
    suffix, write = CODECS[codec]
    for path in text.glob("[!_]*.txt"):
        write(tmp_path / (path.name + suffix), path.read_bytes())
    job = gm.Job(
        gm.text(tmp_path / "*.txt*"), map=words, reduce=gm.sum(), output=gm.kv(tmp_path / "out")
    )
    result = job.run(workers=2)
    assert dict(result.read()) == counts
    files = list(tmp_path.glob("*.txt*"))
    assert result.report.input_bytes == sum(path.stat().st_size for path in files)


@pytest.mark.parametrize("codec", ["gzip", "bzip2", "zstd", "lz4", "xz", "snappy"])
def test_compressed_output(text: Path, counts: Counter[str], tmp_path: Path, codec: str) -> None:
    output = gm.tsv(tmp_path / "out", codec=codec)
    result = gm.Job(gm.text(text), map=words, reduce=gm.sum(), output=output).run()
    (file,) = result.files()
    assert file.name == f"part-r-00000{output.suffix}"
    assert {key: int(value) for key, value in result.read()} == counts


def test_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    job = gm.Job(
        gm.text(tmp_path / "empty"), map=words, reduce=gm.sum(), output=gm.tsv(tmp_path / "out")
    )
    result = job.run()
    assert list(result.read()) == []
    assert [file.name for file in result.files()] == ["part-r-00000.tsv"]


def test_frames(text: Path, counts: Counter[str], tmp_path: Path) -> None:
    """As `pandas.value_counts` has it."""
    import pandas as pd

    job = gm.Job(gm.text(text), map=words, reduce=gm.sum(), output=gm.kv(tmp_path / "out"))
    result = job.run()
    frame = result.to_pandas().set_index("key")["value"]
    expected = pd.Series([word for word, n in counts.items() for _ in range(n)]).value_counts()
    assert frame.sort_index().to_dict() == expected.to_dict()
    assert dict(result.to_polars().rows()) == counts
    assert result.to_arrow().num_rows == len(counts)


def test_items(tmp_path: Path) -> None:
    job = gm.Job(
        gm.items(range(10_000)),
        map=lambda n: [(n % 7, n)],
        reduce=gm.sum(),
        split_max=5_000,
        output=gm.kv(tmp_path / "out"),
    )
    expected = {rest: sum(range(rest, 10_000, 7)) for rest in range(7)}
    assert dict(job.run().read()) == expected
