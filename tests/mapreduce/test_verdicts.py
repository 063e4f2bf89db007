"""The verdicts of `gristmill check`: ten jobs and more that are right, and ten that are wrong.

What is promised is no fault: values come in the order of the input, those of several inputs in the
order of the list. Of a chain each job has its verdict.
"""

import os
import random
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.mapreduce.harness import gristmill, total, words

import gristmill as gm
from gristmill.history import job_folders
from gristmill.mapreduce.check.determinism import check_output

LINES = [f"{word} {other}" for word in ["to", "be", "or", "not"] for other in ("that", "is", "be")]
USERS = [(1, "ada"), (2, "ben"), (3, "cid")]
SALES = [(1, 30), (2, 5), (1, 12), (4, 7)]

Make = Callable[[Path], gm.Job]


def items(out: Path, **options: Any) -> gm.Job:
    return gm.Job(gm.items(LINES), **{"output": gm.jsonl(out), "split_max": 1, **options})


def lines(out: Path, **options: Any) -> gm.Job:
    out.with_suffix(".txt").write_text("".join(f"{line}\n" for line in LINES))
    return gm.Job(gm.text(out.with_suffix(".txt")), output=gm.jsonl(out), **options)


def joined(out: Path, reduce: Callable[..., Any], **options: Any) -> gm.Job:
    sides = [gm.items(USERS, tag="users"), gm.items(SALES, tag="sales")]

    def by_user(row: Any, context: gm.Context) -> Iterator[Any]:
        yield row[0], (context.tag, row[1])

    return gm.Job(sides, map=by_user, reduce=reduce, output=gm.jsonl(out), **options)


def inner(_user: int, values: Iterator[Any]) -> Iterator[Any]:
    tag, name = next(values)
    if tag == "users":
        yield name, sum(amount for _, amount in values)


def strict(_user: int, values: Iterator[Any]) -> Iterator[Any]:
    tag, name = next(values)
    if tag == "users":
        others = list(values)
        assert all(tag == "sales" for tag, _ in others)
        yield name, len(others)


def left(user: int, values: Iterator[Any]) -> Iterator[Any]:
    sides: dict[str, list[Any]] = {"users": [], "sales": []}
    for tag, value in values:
        sides[tag].append(value)
    yield from ((user, name, amount) for name in sides["users"] for amount in sides["sales"] or [0])


def newest(key: str, values: Iterator[Any]) -> Iterator[Any]:
    yield key, next(values)


def counted(out: Path) -> gm.Job:
    return gm.Job(gm.items(LINES), map=words, reduce=gm.sum(), output=gm.kv(out / "first"))


RIGHT: dict[str, Make] = {
    "only a map": lambda out: items(out, map=lambda line: [line.upper()]),
    "a native reduction": lambda out: items(out, map=words, reduce=gm.mean()),
    "combined": lambda out: items(out, map=words, combine=lambda k, v: [sum(v)], reduce=total),
    "an inner join": lambda out: joined(out, inner),
    "a join that checks its sides": lambda out: joined(out, strict, parts=3),
    "the names of a left join": lambda out: joined(
        out, lambda user, values: [(user, sorted(values)[0])]
    ),
    "newest": lambda out: items(
        out, map=lambda line: [(line[0], line)], sort_by=lambda k, v: v, reduce=newest
    ),
    "max_by": lambda out: items(
        out, map=lambda line: [(line[0], line)], reduce=gm.max_by(lambda line: line)
    ),
    "a set that is sorted": lambda out: items(out, map=lambda line: sorted(set(line.split()))),
    "a chain": lambda out: items(out, map=words, reduce=gm.sum(), output=None).then(
        map=lambda pair: [(-pair[1], pair[0])], reduce=gm.collect(), output=gm.kv(out)
    ),
    "a chain of files": lambda out: counted(out).then(
        map=lambda pair: [(pair[1], 1)], reduce=total, output=gm.tsv(out / "last")
    ),
}

ORDERED: dict[str, Make] = {
    "a left join": lambda out: joined(out, left),
    "values in a list": lambda out: items(
        out, map=lambda line: [(line[0], line)], reduce=lambda key, values: [list(values)]
    ),
    "the first value": lambda out: items(out, map=lambda line: [(line[0], line)], reduce=newest),
    "values that sort_by calls equal": lambda out: items(
        out, map=lambda line: [("k", line)], sort_by=lambda _, v: v[0], reduce=newest
    ),
    "an order that it asserts": lambda out: items(
        out, map=lambda line: [("k", line)], reduce=lambda _, v: [1 // (list(v) == LINES)]
    ),
}

SEEN: set[str] = set()
NUMBERS = count()


def unseen(line: str) -> Iterator[tuple[str, int]]:
    for word in line.split():
        if word not in SEEN:
            SEEN.add(word)
            yield word, 1


def mean(_key: str, values: Iterable[float]) -> Iterator[float]:
    known = list(values)
    yield sum(known) / len(known)


def forgetful(key: str, values: Iterable[int]) -> Iterator[tuple[str, int]]:
    yield key, sum(values) + next(NUMBERS)


def lengths(line: str) -> Iterator[tuple[str, int]]:
    for number, word in enumerate(line.split()):
        yield word[:1], number**3


WRONG: dict[str, tuple[Make, str]] = {
    "random": (lambda out: items(out, map=lambda line: [random.random()]), "map <lambda>"),
    "time": (lambda out: items(out, map=lambda line: [time.time_ns()]), "map <lambda>"),
    "a set in a global": (lambda out: items(out, map=unseen, reduce=gm.sum()), "map unseen"),
    "the number of the task": (
        lambda out: lines(out, map=lambda line, context: [(line, context.task)]),
        "map <lambda>",
    ),
    "the attempt": (
        lambda out: items(out, map=lambda line, context: [context.attempt]),
        "map <lambda>",
    ),
    "the process": (lambda out: items(out, map=lambda line: [os.getpid()]), "the job"),
    "a mean of means": (
        lambda out: items(out, map=lengths, combine=mean, reduce=mean),
        "combine mean",
    ),
    "a counter in the reduction": (
        lambda out: items(out, map=words, reduce=forgetful),
        "reduce forgetful",
    ),
    "a join with a random side": (
        lambda out: joined(out, lambda user, values: [(user, random.random())]),
        "reduce <lambda>",
    ),
    "the first job of a chain": (
        lambda out: items(out, map=unseen, reduce=gm.sum(), output=None).then(
            map=lambda pair: [pair], reduce=total, output=gm.kv(out)
        ),
        "map unseen (job 1 of 2, unseen, gm.sum())",
    ),
    "the second job of a chain": (
        lambda out: items(out, map=words, reduce=gm.sum(), output=None).then(
            map=lambda pair: [(random.random(), 1)], reduce=total, output=gm.kv(out)
        ),
        "map <lambda> (job 2 of 2, <lambda>, total)",
    ),
}


IN_WORKERS = ("the job",)
"""Faults that show in workers alone; of others these say again that the job differs."""


@pytest.mark.parametrize("name", RIGHT)
def test_right(tmp_path: Path, name: str) -> None:
    before = job_folders()
    verdict = check_output(RIGHT[name](tmp_path / "out"), rounds=2)
    assert (verdict.differences, verdict.notes) == ([], [])
    jobs = 2 if "chain" in name else 1
    assert [trial.partition(" (")[0] for trial in verdict.trials].count("workers") == jobs
    assert list(tmp_path.iterdir()) == [], "nothing is written"
    assert job_folders() == before, "no list of jobs has its trials"


@pytest.mark.parametrize("name", ORDERED)
def test_an_order_that_is_promised_is_noted(tmp_path: Path, name: str) -> None:
    verdict = check_output(ORDERED[name](tmp_path / "out"), rounds=2)
    assert verdict.deterministic
    (note,) = verdict.notes
    assert "depends on the order of a key's values. That is the order of the input" in note
    assert ("raises ZeroDivisionError" in note) == (name == "an order that it asserts")
    assert ("those that sort_by calls equal" in note) == ("sort_by" in name)


@pytest.mark.parametrize("name", WRONG)
def test_wrong(tmp_path: Path, name: str) -> None:
    make, blamed = WRONG[name]
    SEEN.clear()
    verdict = check_output(make(tmp_path / "out"), rounds=2, engine=blamed in IN_WORKERS)
    assert not verdict.deterministic
    assert {found.function for found in verdict.differences} == {blamed}


@pytest.mark.parametrize(
    ("functions", "blamed"),
    [
        ({"map": lambda line: None}, "map <lambda>"),
        ({"map": words, "reduce": lambda key, values: None}, "reduce <lambda>"),
    ],
)
def test_an_empty_output_is_noted(tmp_path: Path, functions: dict[str, Any], blamed: str) -> None:
    verdict = check_output(items(tmp_path / "out", **functions), rounds=1)
    assert verdict.notes == [
        f"the output is empty: {blamed} put out nothing. Does it lack a yield or a return?"
    ]


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(
        "import gristmill as gm\n"
        "first = gm.Job(gm.items(['a b']), map=lambda line: [(w, 1) for w in line.split()],"
        " reduce=gm.sum())\n"
        "job = first.then(map=lambda pair: [('k', pair)], reduce=lambda k, v: [list(v)],"
        " output=gm.jsonl('out'))\n"
    )
    shown = gristmill("check", "job.py", "--rounds", "1", "--no-workers", cwd=tmp_path)
    assert shown.stdout.startswith("deterministic: 7 trials gave the same output\n")
    assert "  the same circumstances (job 1 of 2, <lambda>, gm.sum())\n" in shown.stdout
    assert "  the same circumstances (job 2 of 2, <lambda>, <lambda>)\n" in shown.stdout
    assert "note: reduce <lambda> depends on the order" in shown.stdout


def test_a_slow_job_has_one_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gristmill.mapreduce.check import determinism

    def splits() -> int:
        verdict = check_output(RIGHT["combined"](tmp_path / "out"), engine=False)
        return sum(trial.startswith("splits") for trial in verdict.trials)

    assert splits() == 3
    monkeypatch.setattr(determinism, "_SLOW_S", 0.0)
    assert splits() == 1
