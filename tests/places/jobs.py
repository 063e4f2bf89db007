"""Jobs of user code, for the table: `gristmill run` loads this file.

Each function makes a job of `at`, the folder with the inputs, and of its output.
"""

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import gristmill as gm

Pairs = Iterator[tuple[Any, Any]]

# --- functions ---


def words(line: str, context: gm.Context) -> Pairs:
    for word in line.split():
        context.count("words", "first letter " + word[0])
        yield word, 1


def lengths(line: str) -> Pairs:
    for word in line.split():
        yield word[0], len(word)


def total(word: Any, counts: Iterable[int]) -> Pairs:
    yield word, sum(counts)


def subtotal(_: Any, counts: Iterable[int]) -> Iterator[int]:
    yield sum(counts)


def rows(line: str, context: gm.Context) -> Iterator[dict[str, Any]]:
    yield {"line": line, "length": len(line), "at": context.offset, "empty": not line or None}


def inverse(line: str) -> Pairs:
    yield "sum", 1 / int(line)


# --- outputs ---


def of_text(at: str, output: Any, **more: Any) -> gm.Job:
    """A job over the text whose splits are a tenth of it."""
    return gm.Job(gm.text(f"{at}/text"), output=output, split_max="10k", **more)


def map_only(at: str, output: str) -> gm.Job:
    return of_text(at, gm.text(output), map=lambda line: [line.upper()])


def to_jsonl(at: str, output: str) -> gm.Job:
    return of_text(at, gm.jsonl(output), map=rows)


def to_csv(at: str, output: str) -> gm.Job:
    return of_text(at, gm.csv(output), map=rows)


def to_parquet(at: str, output: str) -> gm.Job:
    return of_text(at, gm.parquet(output), map=rows)


def to_arrow(at: str, output: str) -> gm.Job:
    return of_text(at, gm.arrow(output), map=rows)


def to_zstd(at: str, output: str) -> gm.Job:
    return of_text(at, gm.tsv(output, codec="zstd"), map=words, reduce=gm.count(), parts=2)


def without_output(at: str, output: str) -> gm.Job:
    """One whose maps give nothing."""
    return of_text(at, gm.tsv(output), map=lambda _: None, reduce=total, parts=2)


# --- reductions ---


def function(at: str, output: str) -> gm.Job:
    return of_text(at, gm.tsv(output), map=words, reduce=total, parts=3)


def combined(at: str, output: str) -> gm.Job:
    return of_text(at, gm.kv(output), map=words, combine=subtotal, reduce=total, parts=3)


def batches(at: str, output: str) -> gm.Job:
    import pyarrow as pa
    import pyarrow.compute as pc

    def counts(batch: Any) -> Iterator[Any]:
        found = pc.value_counts(pc.list_flatten(pc.utf8_split_whitespace(batch.column("line"))))
        yield pa.table({"word": found.field(0), "n": found.field(1)})

    def sums(given: Iterable[Any]) -> Iterator[Any]:
        for batch in given:
            yield from (
                pa.table(batch).group_by("key", use_threads=False).aggregate([("value", "sum")])
            ).to_batches()

    return of_text(at, gm.parquet(output), map_batches=counts, reduce_batches=sums, parts=2)


def aggregate(at: str, output: str, name: str) -> gm.Job:
    of_name = {
        "mean": gm.mean(),
        "top": gm.top(3),
        "distinct": gm.distinct(),
        "quantiles": gm.quantiles([0.5, 0.9]),
        "first": gm.first(),
    }
    return of_text(at, gm.kv(output), map=lengths, reduce=of_name[name], parts=2)


def sorted_values(at: str, output: str) -> gm.Job:
    def first_words(line: str, context: gm.Context) -> Pairs:
        for word in line.split():
            yield word[0], (word, context.offset)

    def ranked(letter: str, found: Iterable[tuple[str, int]]) -> Pairs:
        yield letter, [word for word, _ in found]

    return of_text(
        at,
        gm.jsonl(output),
        map=first_words,
        reduce=ranked,
        sort_by=lambda _, value: (gm.desc(value[0]), value[1]),
        parts=2,
    )


def grouped(at: str, output: str) -> gm.Job:
    def placed(line: str) -> Pairs:
        for place, word in enumerate(line.split()):
            yield (word, gm.desc(place)), place

    def places(word: str, values: Iterable[int]) -> Pairs:
        yield word, list(values)

    return of_text(
        at, gm.jsonl(output), map=placed, reduce=places, group_by=lambda key: key[0], parts=2
    )


def in_ranges(at: str, output: str) -> gm.Job:
    cuts = gm.ranges(["h", "q"])
    return of_text(at, gm.kv(output), map=words, reduce=total, partition_by=cuts)


def in_sampled_ranges(at: str, output: str) -> gm.Job:
    cuts = gm.sampled_ranges()
    return of_text(at, gm.kv(output), map=words, reduce=total, partition_by=cuts, parts=3)


def by_length(at: str, output: str) -> gm.Job:
    def part(key: str, parts: int) -> int:
        return len(key) % parts

    return of_text(at, gm.kv(output), map=words, reduce=total, partition_by=part, parts=3)


# --- inputs ---


def join(at: str, output: str) -> gm.Job:
    def by_user(row: dict[str, Any], context: gm.Context) -> Pairs:
        context.count("rows", context.tag)
        if context.tag == "users":
            yield int(row["id"]), ("name", row["name"])
        else:
            yield row["user"], ("amount", row["amount"])

    def bought(_: int, values: Iterable[tuple[str, Any]]) -> Pairs:
        known = list(values)
        yield known[0][1], sum(amount for kind, amount in known if kind == "amount")

    inputs = [gm.csv(f"{at}/users.csv", tag="users"), gm.jsonl(f"{at}/sales.jsonl", tag="sales")]
    return gm.Job(inputs, map=by_user, reduce=bought, output=gm.tsv(output), parts=2)


def packed(at: str, output: str) -> gm.Job:
    return gm.Job(
        gm.text(f"{at}/packed"), map=words, reduce=gm.sum(), output=gm.tsv(output), parts=2
    )


def fixed(at: str, output: str) -> gm.Job:
    def keyed(record: bytes) -> Pairs:
        yield record[:1], record[10:]

    source = gm.fixed(f"{at}/tera", 100)
    return gm.Job(source, map=keyed, reduce=gm.count(), output=gm.kv(output), split_max="100k")


def delimited(at: str, output: str) -> gm.Job:
    return gm.Job(gm.delimited(f"{at}/rows.tsv"), reduce=gm.first(), output=gm.tsv(output), parts=2)


def tables(at: str, output: str) -> gm.Job:
    """Rows of a Parquet file, some of its columns."""

    def keyed(row: dict[str, Any]) -> Pairs:
        yield row["word"], row["n"]

    source = gm.parquet(f"{at}/rows.parquet", columns=["n", "word"])
    return gm.Job(source, map=keyed, reduce=gm.max(), output=gm.csv(output), parts=2)


def whole(at: str, output: str) -> gm.Job:
    def sizes(file: tuple[str, str]) -> Pairs:
        yield len(file[1]), file[1][:20]

    source = gm.text(f"{at}/text", whole=True)
    return gm.Job(source, map=sizes, reduce=gm.collect(), output=gm.jsonl(output))


def several_lines(at: str, output: str) -> gm.Job:
    source = gm.text(f"{at}/text", lines=7)
    return gm.Job(source, map=lambda lines: [len(lines)], output=gm.text(output), split_max="10k")


def items(at: str, output: str) -> gm.Job:  # noqa: ARG001 - it has no files
    data = [f"{number % 100} of {number % 7}" for number in range(3000)]
    return gm.Job(gm.items(data), map=words, reduce=total, output=gm.tsv(output), parts=3)


def chain(at: str, output: str) -> gm.Job:
    first = gm.Job(gm.text(f"{at}/text"), map=words, reduce=total, parts=2)
    return first.then(
        map=lambda pair: [(-pair[1], pair[0])], reduce=gm.collect(), output=gm.jsonl(output)
    )


# --- around a task ---


def side_files(at: str, output: str, files: str) -> gm.Job:
    def prepare(context: gm.Context) -> None:
        context.state.left_out = set(context.file("stop.txt").read_text().split())
        context.state.seen = Counter()

    def kept(line: str, context: gm.Context) -> Pairs:
        for word in line.split():
            if word in context.state.left_out:
                context.count("words", "left out")
                context.output("stops").write((word, context.offset))
            else:
                yield word, 1

    def seen(context: gm.Context) -> Pairs:
        context.count("tasks", context.kind)
        yield from ()

    return of_text(
        at,
        gm.kv(output),
        setup=prepare,
        map=kept,
        teardown=seen,
        reduce=gm.sum(),
        files=[f"{files}/stop.txt"],
        outputs={"stops": gm.tsv()},
        parts=2,
    )


# --- failures ---


def skipped(at: str, output: str, most: str = "3") -> gm.Job:
    """Three lines of these are no numbers that can be inverted."""
    source = gm.text(f"{at}/numbers.txt")
    return gm.Job(source, map=inverse, reduce=gm.sum(), output=gm.tsv(output), skip_bad=int(most))


def bad_map(at: str, output: str) -> gm.Job:
    source = gm.text(f"{at}/numbers.txt")
    return gm.Job(source, map=inverse, reduce=gm.sum(), output=gm.tsv(output))


def bad_reduce(at: str, output: str) -> gm.Job:
    def refused(word: str, _: Iterable[int]) -> Pairs:
        if word.startswith("q"):
            raise ValueError("no " + word)
        yield word, 1

    return of_text(at, gm.tsv(output), map=words, reduce=refused, parts=2)


def crash(at: str, output: str) -> gm.Job:
    """The process is gone, without a word."""

    def gone(line: str) -> Pairs:
        if line == "2":
            os._exit(3)
        yield line, 1

    source = gm.text(f"{at}/numbers.txt", encoding=None)
    return gm.Job(source, map=lambda line: gone(line.decode("latin-1")), output=gm.kv(output))


def again(at: str, output: str, gate: str) -> gm.Job:
    """The first attempt at a task fails, the next one does not."""

    def once(line: str, context: gm.Context) -> Pairs:
        if context.task == 1 and not Path(gate).exists():
            Path(gate).touch()
            raise OSError("the first attempt")
        yield len(line), 1

    return of_text(at, gm.tsv(output), map=once, reduce=total)


def stays(at: str, output: str, gate: str) -> gm.Job:
    """One map stands still until there is a gate."""

    def waits(line: str, context: gm.Context) -> Pairs:
        while context.task == 1 and not Path(gate).exists():
            time.sleep(0.01)
        yield len(line), 1

    return of_text(at, gm.tsv(output), map=waits, reduce=total, parts=2)
