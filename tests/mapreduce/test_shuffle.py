"""Keys, order, partitions: what goes where, and in which order it comes."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mapreduce.harness import total, words

import gristmill as gm
from gristmill.mapreduce.aggregates import Aggregate
from gristmill.mapreduce.check.naive import run_naively
from gristmill.mapreduce.check.plain_aggregates import aggregated
from gristmill.mapreduce.submit.sampling import cuts_of


def itself(record: Any) -> Iterator[Any]:
    yield record


def listed(key: Any, values: Iterable[Any]) -> Iterator[tuple[Any, list[Any]]]:
    yield key, list(values)


def run(pairs: Iterable[Any], folder: Path, **options: Any) -> list[Any]:
    options.setdefault("map", itself)
    options.setdefault("reduce", listed)
    job = gm.Job(gm.items(pairs), output=gm.kv(folder / "out"), **options)
    return list(job.run(workers=2, overwrite=True, no_sync=True).read())


# --- keys ---


def test_one_as_int_float_and_bool_is_three_keys(tmp_path: Path) -> None:
    found = run([(1, "int"), (1.0, "float"), (True, "bool"), (1, "again")], tmp_path)
    assert found == [(1, ["int", "again"]), (1.0, ["float"]), (True, ["bool"])]
    assert [type(key) for key, _ in found] == [int, float, bool]


def test_keys_come_in_order(tmp_path: Path) -> None:
    keys = [None, b"", b"\x00", b"a", "", "Z", "a", "ä", (), (None, "b"), ("a",), ("a", 1)]
    keys += [-(2**70), -3, 0, 2, 10**30, -math.inf, -1.5, 0.0, 2.5, math.inf, False, True]
    found = [key for key, _ in run([(key, 1) for key in reversed(keys)], tmp_path)]
    assert found == keys
    assert [type(key) for key in found] == [type(key) for key in keys]


@pytest.mark.parametrize("key", [[1], {"a": 1}, object, {1}, (1, [2]), 1j])
def test_other_keys_are_refused_with_their_record(tmp_path: Path, key: object) -> None:
    job = gm.Job(
        gm.items([("good", 1), (key, 2)]), map=itself, reduce=gm.sum(), output=gm.kv(tmp_path / "o")
    )
    with pytest.raises(RuntimeError, match=r"a key must be str, bytes, int.*items, offset 1"):
        job.run()


values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=5)
)
keys = st.one_of(values, st.tuples(values, values), st.tuples(st.tuples(values)))


@settings(max_examples=40)
@given(pairs=st.lists(st.tuples(keys, st.one_of(values, st.lists(values), keys)), max_size=30))
def test_pairs_come_back_as_they_were(
    pairs: list[tuple[Any, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = run(pairs, tmp_path_factory.mktemp("any"), split_max=100)
    expected: defaultdict[str, list[Any]] = defaultdict(list)
    for key, value in pairs:
        expected[repr(key)].append(value)
    assert {repr(key): repr(of_key) for key, of_key in found} == {
        key: repr(of_key) for key, of_key in expected.items()
    }


# --- built-in reductions ---

AGGREGATES = [
    gm.sum(), gm.count(), gm.min(), gm.max(), gm.mean(), gm.first(), gm.last(), gm.top(3),
    gm.distinct(), gm.approx_distinct(), gm.collect(), gm.quantiles([0.0, 0.5, 0.9, 1.0]),
]  # fmt: skip
numbers = st.one_of(
    st.integers(-(2**70), 2**70), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)
)


@pytest.mark.parametrize("reduce", AGGREGATES, ids=lambda reduce: reduce.name)
@settings(max_examples=12)
@given(data=st.data())
def test_aggregates(
    reduce: Aggregate, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pairs = data.draw(st.lists(st.tuples(st.sampled_from("abc"), numbers), max_size=40))
    folder = tmp_path_factory.mktemp("aggregate")
    found = dict(run(pairs, folder, reduce=reduce, split_max=60, parts=2))
    expected: defaultdict[str, list[Any]] = defaultdict(list)
    for key, value in pairs:
        expected[key].append(value)
    wanted = {key: aggregated(reduce.spec, of_key) for key, of_key in expected.items()}
    assert repr(sorted(found.items())) == repr(sorted(wanted.items()))


def test_sums_of_floats_are_exact(tmp_path: Path) -> None:
    pairs = [("k", value) for value in (1e100, 1.0, -1e100, 0.1) * 100]
    for split_max in (100, 5_000):
        assert run(pairs, tmp_path, reduce=gm.sum(), split_max=split_max) == [("k", 110.0)]


@pytest.mark.parametrize("by", [None, gm.ranges(["k2", "k5"])], ids=["hash", "ranges"])
@pytest.mark.parametrize("reduce", [gm.sum(), gm.count()], ids=lambda reduce: reduce.name)
def test_keys_that_wait_to_be_looked_for_are_not_lost(
    reduce: Aggregate, by: Any, tmp_path: Path
) -> None:
    """Integers wait, floats and what has more than 64 bits do not, and long keys only a little."""
    values = [1, 2.5, 2**70, -(2**63), True, 7]
    pairs = [(f"k{n % 7}" + "x" * (5_000 * (n % 11 == 0)), values[n * n % 6]) for n in range(1_000)]
    more = {"partition_by": by} if by else {"parts": 2}
    found = dict(run(pairs, tmp_path, reduce=reduce, split_max=9_000, **more))
    wanted: defaultdict[str, list[Any]] = defaultdict(list)
    for key, value in pairs:
        wanted[key].append(value)
    assert found == {key: aggregated(reduce.spec, of_key) for key, of_key in wanted.items()}


def test_what_was_given_before_a_record_that_is_skipped_counts(tmp_path: Path) -> None:
    def gives(n: int) -> Iterator[tuple[Any, int]]:
        yield "before", 1
        yield ([n] if n % 10 == 3 else "key"), 1

    found = run(range(300), tmp_path, map=gives, reduce=gm.sum(), skip_bad=100)
    assert dict(found)["key"] == 270


def test_what_cannot_be_added_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"sum.*items, offset 1"):
        run([("k", 1), ("k", "two")], tmp_path, reduce=gm.sum())


# --- order within a key ---


def test_values_come_in_input_order(tmp_path: Path) -> None:
    pairs = [(n % 3, n) for n in range(5000)]
    found = run(pairs, tmp_path, split_max=3_000)
    assert found == [(rest, list(range(rest, 5000, 3))) for rest in range(3)]


@pytest.mark.parametrize("split_max", [200, None])
def test_secondary_sort(tmp_path: Path, split_max: int | None) -> None:
    pairs = [(f"k{n % 3}", ((n * 7919) % 100, n)) for n in range(300)]
    found = run(pairs, tmp_path, sort_by=lambda key, value: -value[0], split_max=split_max)
    for key, of_key in found:
        mine = [value for other, value in pairs if other == key]
        assert of_key == sorted(mine, key=lambda value: -value[0])  # stable, as sorted is


def test_group_by(tmp_path: Path) -> None:
    """Readings by station and day: those of a station together, in the order of days."""
    pairs = [((f"s{n % 4}", (n * 37) % 100), n) for n in range(200)]
    found = run(pairs, tmp_path, group_by=lambda key: key[0], parts=3)
    assert sorted(key for key, _ in found) == ["s0", "s1", "s2", "s3"]
    for station, of_station in found:
        mine = [pair for pair in pairs if pair[0][0] == station]
        assert of_station == [value for _, value in sorted(mine, key=lambda pair: pair[0])]


# --- partitions ---


def parts_of(folder: Path) -> list[list[str]]:
    files = sorted((folder / "out").glob("part-r-*"))
    return [[key for key, _ in gm.kv(file).open_file(str(file))] for file in files]


def test_hash(tmp_path: Path) -> None:
    run([(str(n), n) for n in range(400)], tmp_path, parts=4)
    parts = parts_of(tmp_path)
    assert sorted(key for part in parts for key in part) == sorted(map(str, range(400)))
    assert all(50 < len(part) < 150 for part in parts)
    run([(str(n), n) for n in range(400)], tmp_path, parts=4, split_max=100)
    assert parts_of(tmp_path) == parts


def test_ranges(tmp_path: Path) -> None:
    run([(letter, 1) for letter in "zymhga"], tmp_path, partition_by=gm.ranges(["h", "q"]))
    assert parts_of(tmp_path) == [["a", "g"], ["h", "m"], ["y", "z"]]


def test_sampled_ranges(tmp_path: Path) -> None:
    pairs = [(f"{(n * 7919) % 1000:04}", n) for n in range(1000)]
    run(pairs, tmp_path, partition_by=gm.sampled_ranges(500), parts=4, split_max=2_000)
    parts = parts_of(tmp_path)
    assert len(parts) == 4
    assert [key for part in parts for key in part] == sorted(key for key, _ in pairs)
    assert all(100 < len(part) < 400 for part in parts)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(("hot", "place"), [("", 0), ("0500", 3), ("z", 7)])
def test_a_hot_key_has_a_part_of_its_own(tmp_path: Path, hot: str, place: int) -> None:
    pairs = [(hot, n) for n in range(18_000)] + [(f"{n:04}", n) for n in range(1000)] * 2
    Random(1).shuffle(pairs)
    job = gm.Job(
        gm.items(pairs),
        reduce=lambda key, values: [(key, sum(1 for _ in values))],
        partition_by=gm.sampled_ranges(),
        parts=8,
        output=gm.kv(tmp_path / "out"),
    )
    result = job.run(workers=2, no_sync=True, progress=False)
    found = [list(gm.kv().open_file(str(file))) for file in result.files()]
    assert [len(part) for part in found if hot in dict(part)] == [1]
    assert [hot in dict(part) for part in found].index(True) == pytest.approx(place, abs=1)
    pairs_of = [sum(count for _, count in part) for part in found]
    assert len(pairs_of) == 8
    rest = sorted(pairs_of)[:-1]
    assert max(rest) < 2 * sum(rest) / len(rest), pairs_of
    (warning,) = result.report.warnings
    assert (
        f"pairs, 7.2 times the mean of 8 parts: 18{'000' if hot != '0500' else '002'} of them"
        in warning
    )
    assert f"are of the key {hot!r}" in warning


@given(st.lists(st.integers(1, 40), max_size=12), st.integers(1, 9))
def test_cuts_of_a_sample(counts: list[int], parts: int) -> None:
    keys = [key for key, count in enumerate(counts) for _ in range(count)]
    cuts = cuts_of(keys, parts)
    assert len(cuts) < parts
    assert list(cuts) == sorted(set(cuts))
    assert {type(cut) for cut in cuts} <= {int}
    ends = [0, *cuts, len(counts)]
    held = [counts[begin:end] for begin, end in pairwise(ends)]
    assert all(held) or not counts, "no part is empty"
    share = sum(counts) / parts
    hot = [count for count in counts if count > share]
    if 2 * len(hot) < parts:
        assert all(len(part) == 1 for part in held for count in part if count > share)
    if len(counts) >= parts:
        assert len(held) >= min(parts, len(counts)) // 2


def test_a_function(tmp_path: Path) -> None:
    run([(n, n) for n in range(9)], tmp_path, partition_by=lambda key, n: (key + 1) % n, parts=3)
    assert parts_of(tmp_path) == [[2, 5, 8], [0, 3, 6], [1, 4, 7]]


@pytest.mark.parametrize("given_back", [3, -1, "a", None])
def test_a_function_that_gives_no_partition(tmp_path: Path, given_back: object) -> None:
    with pytest.raises((RuntimeError, ValueError), match="partition"):
        run([(1, 1)], tmp_path, partition_by=lambda _key, _n: given_back, parts=3)


def test_the_default_number_of_parts_is_a_function_of_the_input() -> None:
    from gristmill.mapreduce.formats.plan import PARTITION_BYTES, Plan, Split
    from gristmill.mapreduce.submit.preparing import partitions_of

    job = gm.Job(gm.items([]), map=itself, reduce=gm.sum())
    for size, parts in ((0, 1), (PARTITION_BYTES, 1), (PARTITION_BYTES + 1, 2)):
        assert partitions_of(job, Plan([Split(size, {})], [], [])) == parts


def test_user_code_reduces_more_parts() -> None:
    from gristmill.mapreduce.formats.plan import PARTITION_BYTES, Plan, Split
    from gristmill.mapreduce.submit.preparing import partitions_of

    of_user = {"reduce": listed}, {"reduce_batches": list}, {"reduce": gm.max_by(str)}
    sorted_first: dict[str, Any] = {"reduce": gm.first(), "sort_by": lambda _, value: value}
    for options in (*of_user, sorted_first):
        job = gm.Job(gm.items([]), map=itself, output=gm.kv("o"), **options)
        sizes = (0, 1), (1 << 20, 1), ((1 << 20) + 1, 2), (PARTITION_BYTES, 32)
        for size, parts in (*sizes, (40 * PARTITION_BYTES, 40)):
            plan = Plan([Split(size, {})], [], [])
            assert partitions_of(job, plan) == parts
            assert partitions_of(replace(job, parts=3), plan) == 3


# --- whole jobs against the naive one ---

words_of = st.lists(st.sampled_from(["a", "b", "cc", "ddd", "é"]), max_size=6).map(" ".join)


@settings(max_examples=30)
@given(data=st.data())
def test_a_job_equals_the_naive_one(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("naive")
    for number in range(data.draw(st.integers(1, 3))):
        text = "\n".join(data.draw(st.lists(words_of, max_size=20)))
        (folder / f"{number}.txt").write_text(text)
    job = gm.Job(
        gm.text(folder / "*.txt"),
        map=words,
        reduce=data.draw(st.sampled_from([total, listed, gm.sum(), gm.collect()])),
        parts=data.draw(st.integers(1, 4)),
        split_max=data.draw(st.sampled_from([3, 20, None])),
        output=gm.kv(folder / "out"),
    )
    memory, workers = data.draw(st.sampled_from(["40M", "200M"])), data.draw(st.integers(1, 3))
    found = list(job.run(memory=memory, workers=workers, no_sync=True).read())
    expected = [record for part in run_naively(job).parts for record in part]
    assert sorted(found) == sorted(expected)


def test_more_pairs_than_memory(tmp_path: Path) -> None:
    """Runs are spilled and merged, and the output is the same."""
    lines = "".join(f"{'x' * 200}{n % 5000}\n" for n in range(60_000))
    (tmp_path / "a").write_text(lines)
    outputs: list[list[Any]] = []
    for memory in ("32M", "500M"):
        job = gm.Job(
            gm.text(tmp_path / "a"),
            map=lambda line: [(line, len(line))],
            reduce=total,
            split_max="4M",
            output=gm.kv(tmp_path / memory),
        )
        result = job.run(memory=memory, workers=2)
        outputs.append(list(result.read()))
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == 5000
