"""`check_output`: functions of the input pass, in workers too; planted faults are found."""

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.mapreduce.harness import total, words

import gristmill as gm
from gristmill.mapreduce.checking import check_output


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
