"""`check_output`: functions of the input pass, in workers too; planted faults are found."""

import random
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import pytest
from tests.mapreduce.harness import total, words

import gristmill as gm
from gristmill.mapreduce.check.determinism import check_output


def split_off(line: str, context: gm.Context) -> Iterator[tuple[str, int]]:
    for word in line.split():
        if word == "be":
            context.output("be").write((word, context.offset))
        else:
            yield word, len(word)


def summed(_key: str, values: Iterable[int]) -> Iterator[int]:
    yield sum(values)


def batched(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        yield from zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True)


GOOD: dict[str, dict[str, Any]] = {
    "only a map": {"map": lambda line: [line[::-1]]},
    "a built-in": {"map": words, "reduce": gm.sum(), "parts": 3},
    "combined": {"map": words, "combine": summed, "reduce": total},
    "named outputs": {"map": split_off, "reduce": total, "outputs": {"be": gm.tsv()}},
    "sorted": {
        "map": lambda line: [(len(line) % 3, line)],
        "sort_by": lambda key, line: line,
        "reduce": lambda key, lines: [(key, line) for line in lines],
    },
    "grouped": {
        "map": lambda line: [((len(line) % 3, line), 1)],
        "group_by": lambda key: key[0],
        "reduce": total,
    },
    "ranges": {"map": words, "reduce": total, "partition_by": gm.ranges(["m"])},
    "partitioned": {
        "map": words,
        "reduce": total,
        "partition_by": lambda key, parts: len(key) % parts,
        "parts": 3,
    },
    "batches": {"map": lambda line: [(line, 1)], "reduce_batches": batched},
}


@pytest.mark.parametrize("name", GOOD)
def test_good_jobs(text: Path, tmp_path: Path, name: str) -> None:
    job = gm.Job(gm.text(text / "0.txt"), **GOOD[name], output=gm.jsonl(tmp_path / "out"))
    verdict = check_output(job, rounds=1)
    assert verdict.deterministic, verdict.differences
    assert verdict.trials[-1] == "workers"
    assert list(tmp_path.iterdir()) == [], "nothing is written"


@pytest.mark.parametrize(
    ("function", "trial"),
    [
        (lambda line: [(line, random.random())], "the same circumstances"),
        (lambda line, context: [(line, context.attempt)], "attempts killed and begun again"),
        (lambda line, context: [(line, context.record)], "splits of"),
    ],
)
def test_planted_faults_are_found(
    text: Path, tmp_path: Path, function: Callable[..., Any], trial: str
) -> None:
    job = gm.Job(
        gm.text(text / "0.txt"), map=function, reduce=gm.sum(), output=gm.kv(tmp_path / "out")
    )
    verdict = check_output(job, engine=False)
    assert any(difference.trial.startswith(trial) for difference in verdict.differences)


@pytest.mark.parametrize("seed", [None, "1", "7"])
def test_a_partitioner_that_asks_hash_is_found(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: str | None
) -> None:
    if seed is not None:
        monkeypatch.setenv("PYTHONHASHSEED", seed)
    job = gm.Job(
        gm.text(text / "0.txt"),
        map=words,
        reduce=total,
        partition_by=lambda key, parts: hash(key) % parts,
        parts=30,
        output=gm.kv(tmp_path / "out"),
    )
    (found,) = check_output(job, rounds=1).differences
    assert found.function == "partition_by <lambda>"
    assert found.trial == "another interpreter"
    assert "hash()" in found.advice


def mean(_key: str, values: Iterable[float]) -> Iterator[float]:
    known = list(values)
    yield sum(known) / len(known)


def mean_of_key(key: str, values: Iterable[float]) -> Iterator[tuple[str, float]]:
    yield from ((key, value) for value in mean(key, values))


def lengths(line: str) -> Iterator[tuple[str, int]]:
    for number, word in enumerate(line.split()):
        yield word[:1], number**3


def joined(_key: str, values: Iterable[str]) -> Iterator[str]:
    yield "".join(values)


def of_joined(key: str, values: Iterable[str]) -> Iterator[tuple[str, str]]:
    yield key, "".join(sorted("".join(values)))


def first(_key: str, values: Iterable[int]) -> Iterator[int]:
    yield next(iter(values))


def biggest(key: str, values: Iterable[int]) -> Iterator[tuple[str, int]]:
    yield key, max(values)


SEEN: list[str] = []


def numbered(line: str) -> Iterator[tuple[str, int]]:
    SEEN.append(line)
    yield line[:1], len(SEEN)


def forgetful(key: str, values: Iterable[int]) -> Iterator[tuple[str, int]]:
    SEEN.append(key)
    yield key, sum(values) + len(SEEN)


FAULTY: dict[str, tuple[dict[str, Any], str]] = {
    "mean of means": ({"map": lengths, "combine": mean, "reduce": mean_of_key}, "combine mean"),
    "first of the values": (
        {"map": lengths, "combine": first, "reduce": biggest},
        "combine first",
    ),
    "random combine": (
        {"map": lengths, "combine": lambda k, v: [random.random()], "reduce": mean_of_key},
        "combine <lambda>",
    ),
    "order, combined in order": (
        {
            "map": lambda line: [("k", line)],
            "combine": joined,
            "reduce": lambda key, values: [(key, "".join(values))],
        },
        "reduce <lambda>",
    ),
    "state in the map": ({"map": numbered, "reduce": gm.sum()}, "map numbered"),
    "state in the map, combined": (
        {"map": numbered, "combine": summed, "reduce": total},
        "map numbered",
    ),
    "state in the reduce": ({"map": words, "reduce": forgetful}, "reduce forgetful"),
    "random reduce": (
        {"map": words, "reduce": lambda key, values: [(key, random.random())]},
        "reduce <lambda>",
    ),
    "random partitions": (
        {
            "map": words,
            "reduce": total,
            "parts": 4,
            "partition_by": lambda key, parts: random.randrange(parts),
        },
        "partition_by <lambda>",
    ),
    "random order": (
        {
            "map": lambda line: [("k", line)],
            "sort_by": lambda key, line: random.random(),
            "reduce": lambda key, lines: [list(lines)],
        },
        "sort_by <lambda>",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTY)
@pytest.mark.parametrize("seed", range(3))
def test_the_function_to_blame_is_named(text: Path, tmp_path: Path, name: str, seed: int) -> None:
    functions, blamed = FAULTY[name]
    job = gm.Job(gm.text(text / "0.txt"), **functions, output=gm.jsonl(tmp_path / "out"))
    verdict = check_output(job, rounds=1, seed=seed, engine=False)
    assert {difference.function for difference in verdict.differences} == {blamed}
    assert str(verdict.differences[0]).startswith(f"{blamed}: the output differs with ")


def test_a_mean_of_means_of_one_split_is_found_in_one_round(tmp_path: Path) -> None:
    """Each key has the same number of values in each split, and all are in one."""
    data = [(key, value) for value in (1, 2, 9) for key in "abc"]
    functions: dict[str, Any] = {"combine": mean, "reduce": mean_of_key}
    job = gm.Job(gm.items(data), map=lambda pair: [pair], **functions, output=gm.kv(tmp_path / "o"))
    for seed in range(20):
        verdict = check_output(job, rounds=1, seed=seed, engine=False)
        assert not verdict.deterministic, seed
        assert "not associative" in verdict.differences[0].advice


def test_last_digits_of_floats_are_said_to_be_that(tmp_path: Path) -> None:
    data = [("k", 10.0 ** (n % 17) / 3) for n in range(50)]

    def added(_key: str, values: Iterable[float]) -> Iterator[float]:
        yield reduce(add, values)  # sum() would round less

    functions: dict[str, Any] = {"combine": added, "reduce": added}
    job = gm.Job(
        gm.items(data), map=lambda pair: [pair], **functions, output=gm.jsonl(tmp_path / "o")
    )
    verdict = check_output(job, rounds=2, engine=False)
    assert verdict.differences
    assert all("last digits of floats" in found.advice for found in verdict.differences)
