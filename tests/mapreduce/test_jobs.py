"""Whole jobs: contexts, named outputs, side files, bad records, chains, several at once."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.mapreduce.harness import total, words

import gristmill as gm


def itself(record: Any) -> Iterator[Any]:
    yield record


# --- only a map ---


def test_only_a_map(text: Path, lines: list[str], tmp_path: Path) -> None:
    job = gm.Job(
        gm.text(text),
        map=lambda line: [line.upper()] if "be" in line else None,
        split_max=30_000,
        output=gm.text(tmp_path / "out"),
    )
    result = job.run(workers=2)
    assert list(result.read()) == [line.upper() for line in lines if "be" in line]
    assert [file.name for file in result.files()][:2] == ["part-m-00000.txt", "part-m-00001.txt"]
    assert result.counters["MAP_INPUT_RECORDS"] == len(lines)


# --- the context ---


def prepare(context: gm.Context) -> None:
    context.state.stop = set(context.file("stop.txt").read_text().split())
    context.state.seen = 0


def without_stops(line: str, context: gm.Context) -> Iterator[tuple[str, int]]:
    context.state.seen += 1
    context.status(f"{context.state.seen} lines")
    for word in line.split():
        if word in context.state.stop:
            context.count("words", "left out")
            context.output("stops").write((word, context.offset))
        else:
            yield word, 1


def last_words(context: gm.Context) -> Iterator[tuple[str, int]]:
    context.counters["tasks"][context.kind] += 1
    if context.kind == "map":
        yield f"seen in {Path(context.input_file).name}", context.state.seen


def total_with_context(
    key: str, values: Iterable[int], context: gm.Context
) -> Iterator[tuple[str, int]]:
    assert context.kind == "reduce"
    assert context.partition == context.task
    context.count("words", "different")
    yield key, sum(values)


def test_contexts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("to be or\nnot to be\n")
    (tmp_path / "stop.txt").write_text("to or")
    job = gm.Job(
        gm.text(tmp_path / "a.txt"),
        setup=prepare,
        map=without_stops,
        teardown=last_words,
        reduce=total_with_context,
        files=[tmp_path / "stop.txt"],
        outputs={"stops": gm.jsonl()},
        parts=2,
        output=gm.kv(tmp_path / "out"),
    )
    result = job.run()
    assert dict(result.read()) == {"be": 2, "not": 1, "seen in a.txt": 2}
    assert result.user_counters == {
        "words": {"left out": 3, "different": 3},
        "tasks": {"map": 1, "reduce": 2},
    }
    stops = [{"key": word, "value": at} for word, at in [("to", 0), ("or", 0), ("to", 9)]]
    assert list(result.read("stops")) == stops
    assert result.to_arrow("stops").num_rows == 3


def test_what_a_job_does_not_have(tmp_path: Path) -> None:
    for function in (
        lambda record, context: [context.file("none")],
        lambda record, context: [context.output("none")],
    ):
        job = gm.Job(gm.items([1]), map=function, output=gm.jsonl(tmp_path / "out"))
        with pytest.raises(RuntimeError, match=r"the job has no (side file|output) 'none'"):
            job.run()


def test_state_of_a_reduce(tmp_path: Path) -> None:
    """Named outputs of a reduce are files of their own."""

    def split(key: str, values: Iterable[int], context: gm.Context) -> Iterator[Any]:
        found = sum(values)
        if found > 1:
            context.output("many").write((key, found))
        else:
            yield key, found

    job = gm.Job(
        gm.items(["a b a", "c"]),
        map=words,
        reduce=split,
        outputs={"many": gm.tsv()},
        output=gm.kv(tmp_path / "out"),
    )
    result = job.run()
    assert list(result.read()) == [("b", 1), ("c", 1)]
    assert list(result.read("many")) == [("a", "2")]
    assert sorted(path.name for path in result.output.iterdir()) == [
        "_SUCCESS", "many-r-00000.tsv", "part-r-00000.kv",
    ]  # fmt: skip


# --- bad records ---


def invert(line: str) -> Iterator[tuple[str, float]]:
    yield "before", 0.0  # of a bad record, nothing counts
    yield line, 1 / int(line)


def test_bad_records_are_put_aside(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\n0\n2\nx\n\xff\n4\n")
    job = gm.Job(
        gm.text(tmp_path / "a"),
        map=invert,
        reduce=gm.sum(),
        skip_bad=3,
        output=gm.kv(tmp_path / "o"),
    )
    result = job.run()
    assert dict(result.read()) == {"before": 0.0, "1": 1.0, "2": 0.5, "4": 0.25}
    assert result.counters["MAP_SKIPPED_RECORDS"] == 3
    (file,) = (tmp_path / "o").glob("_bad-*")
    bad = [json.loads(line) for line in file.read_text().splitlines()]
    assert [record["offset"] for record in bad] == [2, 6, 8]
    assert bad[0] == {
        "file": str(tmp_path / "a"), "offset": 2, "record": 1, "line": 2,
        "error": "ZeroDivisionError: division by zero", "data": "0",
    }  # fmt: skip


@pytest.mark.parametrize("split_max", [4, None])
def test_one_bad_record_more_than_allowed(tmp_path: Path, split_max: int | None) -> None:
    (tmp_path / "a").write_text("1\n0\n2\n0\n4\n0\n")
    job = gm.Job(
        gm.text(tmp_path / "a"),
        map=invert,
        reduce=gm.sum(),
        skip_bad=2,
        split_max=split_max,
        output=gm.kv(tmp_path / "o"),
    )
    with pytest.raises(RuntimeError, match=r"ZeroDivisionError.*skip_bad allows 2"):
        job.run()
    assert not (tmp_path / "o").exists()


def test_bad_groups(tmp_path: Path) -> None:
    def fail_at_b(key: str, values: Iterable[int]) -> Iterator[tuple[str, int]]:
        yield key, 1 // ("abc".index(key) - 1) * sum(values)

    job = gm.Job(
        gm.items(list("abc")),
        map=lambda key: [(key, 1)],
        reduce=fail_at_b,
        skip_bad=1,
        output=gm.kv(tmp_path / "o"),
    )
    result = job.run()
    assert list(result.read()) == [("a", -1), ("c", 1)]
    assert result.counters["REDUCE_SKIPPED_GROUPS"] == 1


@pytest.mark.parametrize(
    ("source", "content"),
    [(gm.jsonl, '{"v": 1}\n{"v": \n{"v": 4}\n'), (gm.csv, "v\n1\n2,3\n4\n")],
)
def test_what_is_no_record(tmp_path: Path, source: Any, content: str) -> None:
    (tmp_path / "a").write_text(content)
    job = gm.Job(
        source(tmp_path / "a"),
        map=lambda record: [int(record["v"])],
        skip_bad=1,
        output=gm.jsonl(tmp_path / "o"),
    )
    assert list(job.run().read()) == [1, 4]


# --- chains, and jobs side by side ---


def test_named_outputs_of_a_chain_need_an_output_that_stays(tmp_path: Path) -> None:
    first = gm.Job(gm.items([("a", 1)]), map=itself, outputs={"x": gm.jsonl(), "y": gm.tsv()})
    job = first.then(map=itself, output=gm.kv(tmp_path / "out"))
    with pytest.raises(ValueError, match=r"its named outputs \(x, y\) are files of that"):
        job.run(workers=1)


def by_count(pair: tuple[str, int]) -> Iterator[tuple[int, str]]:
    yield pair[1], pair[0]


def test_a_chain(text: Path, lines: list[str], tmp_path: Path) -> None:
    counts = gm.Job(gm.text(text), map=words, reduce=gm.sum(), parts=2)
    ranked = counts.then(map=by_count, reduce=gm.collect(), output=gm.kv(tmp_path / "ranked"))
    found = list(ranked.run().read())
    expected = Counter(word for line in lines for word in line.split())
    assert {word: n for n, of_n in found for word in of_n} == expected
    assert [n for n, _ in found] == sorted(expected.values())
    assert [path.name for path in tmp_path.iterdir()] == ["ranked"]


def test_counters_of_a_chain_are_those_of_all_its_jobs(tmp_path: Path) -> None:
    def first(key: str, context: gm.Context) -> Iterator[tuple[str, int]]:
        context.count("seen", "letters")
        context.count("seen", key)
        yield key, 1

    def second(pair: tuple[str, int], context: gm.Context) -> Iterator[tuple[str, int]]:
        context.count("seen", "letters", 10)
        context.count("pairs", "all")
        yield pair

    counts = gm.Job(gm.items(list("aab")), map=first, reduce=gm.sum())
    result = counts.then(map=second, output=gm.kv(tmp_path / "out")).run(workers=1)
    assert result.user_counters == {"pairs": {"all": 2}, "seen": {"a": 2, "b": 1, "letters": 23}}
    assert result.counters["MAP_INPUT_RECORDS"] == 2  # of the last job


def test_the_last_job_of_a_chain_keeps_a_history_if_another_does(tmp_path: Path) -> None:
    def says(key: str) -> Iterator[tuple[str, int]]:
        print(key)  # so that the history of a short job is kept
        yield key, 1

    def run(first: Any, name: str) -> gm.Result:
        job = gm.Job(gm.items(list("ab")), map=first, reduce=gm.sum())
        return job.then(map=itself, output=gm.kv(tmp_path / name)).run(workers=1)

    assert run(says, "kept").history is not None
    assert run(lambda key: [(key, 1)], "short").history is None


def test_a_job_that_reads_what_another_wrote(tmp_path: Path) -> None:
    first = gm.Job(
        gm.items(list("aab")),
        map=lambda key: [(key, 1)],
        reduce=gm.sum(),
        output=gm.tsv(tmp_path / "1"),
    )
    second = gm.Job(first, map=lambda row: [(row[1], row[0])], output=gm.tsv(tmp_path / "2"))
    assert list(second.run().read()) == [("2", "a"), ("1", "b")]
    assert (tmp_path / "1/_SUCCESS").exists()


def test_all_outputs_of_a_chain_are_looked_at_before_the_first_job_runs(tmp_path: Path) -> None:
    def note(key: str) -> Iterator[tuple[str, int]]:
        (tmp_path / "ran").touch()
        yield key, 1

    def chain(last: str, middle: Any = None) -> gm.Job:
        first = gm.Job(gm.items(list("aab")), map=note, reduce=gm.sum(), output=middle)
        return first.then(map=itself, output=gm.kv(tmp_path / last))

    (tmp_path / "there").mkdir()
    for run in (lambda job: job.run(), lambda job: gm.run_all([job])):
        with pytest.raises(FileExistsError, match=r"the output exists .*there.*overwrite=True"):
            run(chain("there"))
        with pytest.raises(FileExistsError, match="there"):
            run(chain("new", gm.kv(tmp_path / "there")))
        with pytest.raises(ValueError, match=r"the output .*/new/sub is in the output .*/new"):
            run(chain("new/sub", gm.kv(tmp_path / "new")))
        with pytest.raises(ValueError, match="two jobs write to"):
            run(chain("twice", gm.kv(tmp_path / "twice")))
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert dict(chain("there").run(overwrite=True).read()) == {"a": 2, "b": 1}


def test_side_by_side(tmp_path: Path) -> None:
    def job(name: str, source: Any) -> gm.Job:
        return gm.Job(source, map=itself, reduce=total, output=gm.kv(tmp_path / name))

    first = job("first", gm.items([("a", 1), ("a", 2)]))
    after = job("after", first)
    others = [job(f"other{n}", gm.items([("b", n)] * 3)) for n in range(4)]
    results = gm.run_all([after, *others, first], workers=2, memory="400M")
    assert [dict(result.read()) for result in results] == [
        {"a": 3}, {"b": 0}, {"b": 3}, {"b": 6}, {"b": 9}, {"a": 3},
    ]  # fmt: skip
    assert {result.report.workers for result in results} == {1}
    assert {result.report.memory_bytes for result in results} == {200_000_000}


def test_one_of_several_fails(tmp_path: Path) -> None:
    good = gm.Job(gm.items([1]), map=itself, output=gm.jsonl(tmp_path / "good"))
    bad = gm.Job(gm.items([0]), map=lambda n: [1 / n], output=gm.jsonl(tmp_path / "bad"))
    with pytest.raises(RuntimeError, match="division by zero"):
        gm.run_all([good, bad])
    assert not (tmp_path / "bad").exists()
    with pytest.raises(ValueError, match="two jobs write to"):
        gm.run_all([good, good.with_output(tmp_path / "good")])


# --- what is said before and after ---


def test_explain(text: Path, tmp_path: Path) -> None:
    job = gm.Job(
        gm.text(text), map=words, reduce=gm.sum(), split_max=50_000, output=gm.tsv(tmp_path / "o")
    )
    page = job.explain(memory="100M", workers=2)
    assert "words, gm.sum()" in page
    assert "100 MB for 2 workers" in page
    assert "1 reduce task" in page
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"map": words, "map_batches": words}, ValueError, "exclude each other"),
        (
            {"map": words, "reduce": total, "reduce_batches": list},
            ValueError,
            "exclude each other",
        ),
        ({"reduce": gm.sum}, TypeError, "gm.sum"),
        ({"map": 3}, TypeError, "map is 3"),
        ({"map": words, "combine": total}, ValueError, "combine= is for jobs that reduce"),
        ({"map": words, "parts": 3}, ValueError, "parts= is for jobs that reduce"),
        ({"map": words, "reduce": gm.sum(), "sort_by": total}, ValueError, "the engine's own"),
        (
            {"map": words, "reduce": total, "sort_by": total, "combine": total},
            ValueError,
            "exclude each other",
        ),
        ({"map": words, "reduce": gm.sum(), "parts": 0}, ValueError, "parts is 0"),
        (
            {"map": words, "reduce": total, "partition_by": gm.ranges("ab"), "parts": 2},
            ValueError,
            "2 cuts make 3 parts",
        ),
        ({"map": words, "partition_by": "alphabet", "reduce": total}, TypeError, "partition_by"),
        ({"map": words, "output": "out/"}, TypeError, "output is 'out/'"),
        ({"map": words, "outputs": {"a-b": gm.text()}}, ValueError, "named 'a-b'"),
        ({"map": words, "files": ["a/x", "b/x"]}, ValueError, "have the name x"),
        ({"map": words, "skip_bad": -1}, ValueError, "skip_bad is -1"),
        ({"map": words, "split_max": "much"}, ValueError, "split_max is 'much'"),
        ({"reduce": gm.sum()}, ValueError, "without a map"),
    ],
)
def test_jobs_that_make_no_sense(options: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says) as caught:
        gm.Job(gm.text("a"), **options)
    assert str(caught.value).startswith("cannot ")
    assert "What to do: " in str(caught.value)


def test_no_output(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it has no output"):
        gm.Job(gm.items([]), map=itself).run()
    with pytest.raises(ValueError, match="one directory"):
        gm.Job(gm.items([]), map=itself, output=gm.text([])).run()
    (tmp_path / "out").mkdir()
    job = gm.Job(gm.items([]), map=itself, output=gm.text(tmp_path / "out"))
    with pytest.raises(FileExistsError):
        job.run()
    job.run(overwrite=True)
    assert (tmp_path / "out/_SUCCESS").exists()


@pytest.mark.parametrize(
    "make",
    [
        lambda: gm.text("a", lines=0),
        lambda: gm.text("a", lines=2, whole=True),
        lambda: gm.text("a", encoding="utf-16"),
        lambda: gm.text("a", encoding="klingon"),
        lambda: gm.fixed("a", 0),
        lambda: gm.delimited("a", ""),
        lambda: gm.tsv("a", codec="zip"),
        lambda: gm.top(0),
        lambda: gm.quantiles([]),
        lambda: gm.quantiles([1.5]),
        lambda: gm.sampled_ranges(0),
    ],
)
def test_options_that_make_no_sense(make: Any) -> None:
    with pytest.raises(ValueError, match=r"^cannot .* What to do: "):
        make()


@pytest.mark.parametrize(
    ("library", "extra", "use"),
    [
        ("pyarrow", "arrow", lambda result: result.to_arrow()),
        ("pandas", "pandas", lambda result: result.to_pandas()),
        ("polars", "polars", lambda result: result.to_polars()),
    ],
)
def test_a_library_that_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, extra: str, use: Any
) -> None:
    result = gm.Job(gm.items([(1, 2)]), map=itself, output=gm.kv(tmp_path / "out")).run()
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf'pip install "gristmill\[{extra}\]"; from a clone: '):
        use(result)


def test_a_bar_for_long_jobs(tmp_path: Path) -> None:
    """After two seconds, on a terminal; tests/cli/test_progress.py shows that it is there only."""
    from tests.cli.test_progress import on_a_terminal

    (tmp_path / "job.py").write_text(
        "import time, gristmill as gm\n"
        "job = gm.Job(gm.items(range(1000)), map=lambda n: time.sleep(n / 1000 * 0.0055),"
        f" split_max=500, output=gm.text({str(tmp_path / 'out')!r}))\n"
    )
    shown = on_a_terminal("run", tmp_path / "job.py", "--workers", "1")
    assert "map" in shown
    (tmp_path / "fast.py").write_text(
        "import gristmill as gm\n"
        f"job = gm.Job(gm.items([1]), output=gm.jsonl({str(tmp_path / 'fast')!r}))\n"
    )
    assert on_a_terminal("run", tmp_path / "fast.py") == ""


def test_memory_that_is_too_small_for_each_of_several_jobs(tmp_path: Path) -> None:
    jobs = [
        gm.Job(gm.items([("a", 1)]), reduce=gm.sum(), output=gm.kv(tmp_path / name))
        for name in "abc"
    ]
    with pytest.raises(MemoryError, match="What to do: give memory=") as caught:
        gm.run_all(jobs, workers=3, memory="12M")
    assert caught.value.__notes__ == [
        "3 jobs run at once, and share what gm.run_all is given: give it memory= for 3 such jobs,"
        " or fewer workers=."
    ]
