"""Bad records: how many the job allows, what of them counts, and what they cost."""

from pathlib import Path
from typing import Any

import pytest

import gristmill as gm
from gristmill.mapreduce.context import Context
from gristmill.mapreduce.worker.skipping import Skipping, TooManyBad
from gristmill.mapreduce.worker.task_files import TaskFiles


def _files(folder: Path) -> TaskFiles:
    return TaskFiles(str(folder), "m-00000", gm.text("out"), {})


def _counts(line: str, context: Context) -> list[tuple[str, int]]:
    context.count("lines", "all")
    if line.endswith("7"):
        raise ValueError("it ends with 7")
    return [(line[-1], 1)]


def _reduces(key: str, values: list[int], context: Context) -> list[tuple[str, int]]:
    context.count("keys", "all")
    if key == "3":
        raise ValueError("it is 3")
    return [(key, sum(values))]


def test_nothing_of_a_bad_record_counts(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("".join(f"{number}\n" for number in range(1000)))
    job = gm.Job(
        gm.text(tmp_path / "in"),
        map=_counts,
        reduce=_reduces,
        output=gm.kv(tmp_path / "out"),
        skip_bad=1000,
    )
    result = job.run(workers=1)
    assert result.skipped == 101
    assert result.user_counters == {"lines": {"all": 900}, "keys": {"all": 8}}


def test_named_outputs_get_nothing_of_a_bad_record(tmp_path: Path) -> None:
    def setup(context: Context) -> None:
        context.state.seen = context.output("seen")  # of a handle that is kept, too

    def maps(number: int, context: Context) -> list[tuple[str, int]]:
        written = ["mapped", number]
        context.state.seen.write(written)
        written[0] = "changed"
        if number % 5 == 0:
            raise ValueError(number)
        return [(str(number), number)]

    def reduces(key: str, values: list[int], context: Context) -> list[tuple[str, int]]:
        context.output("seen").write(["reduced", int(key)])
        if key == "3":
            raise ValueError(key)
        return [(key, sum(values))]

    def teardown(context: Context) -> None:
        context.output("seen").write([f"end of a {context.kind}", 0])

    job = gm.Job(
        gm.items(list(range(12))),
        setup=setup,
        map=maps,
        reduce=reduces,
        teardown=teardown,
        outputs={"seen": gm.jsonl()},
        output=gm.kv(tmp_path / "out"),
        skip_bad=10,
        split_min="1M",
        parts=1,
    )
    result = job.run(workers=1)
    assert result.skipped == 4
    good = [number for number in range(12) if number % 5]
    mapped = [["mapped", number] for number in good]
    reduced = [["reduced", number] for number in good if number != 3]
    ends = [["end of a map", 0], ["end of a reduce", 0]]
    assert sorted(result.read("seen")) == sorted(mapped + reduced + ends)


def _least(key: str, values: list[int]) -> list[tuple[str, int]]:
    return [(key, min(values))]


@pytest.mark.parametrize(
    "more",
    [
        {"sort_by": lambda _key, value: 1 // (value - 3)},
        {"sort_by": lambda _key, value: object() if value == 3 else value},
        {"group_by": lambda key: key[0] if key != "k3" else {}},
        {"partition_by": lambda key, parts: parts if key == "k3" else 0},
        {"partition_by": lambda key, _parts: {"k3": 1 / 2}.get(key, 0)},
    ],
)
def test_functions_of_keys_make_a_record_bad_too(more: dict[str, Any], tmp_path: Path) -> None:
    pairs = [(f"k{number}", number) for number in range(6)]
    job = gm.Job(
        gm.items(pairs), reduce=_least, output=gm.kv(tmp_path / "out"), skip_bad=1, parts=2, **more
    )
    result = job.run(workers=1)
    assert result.skipped == 1
    values = {value for _, value in result}
    assert 3 not in values
    assert values == ({0} if "group_by" in more else {0, 1, 2, 4, 5})


def test_what_the_output_cannot_take_is_left_out(tmp_path: Path) -> None:
    job = gm.Job(
        gm.items([1, {2}, 3]),
        map=lambda record: [record],
        output=gm.jsonl(tmp_path / "mapped"),
        skip_bad=1,
    )
    assert list(job.run(workers=1)) == [1, 3]
    pairs = [("a", 1), ("b", 2)]
    reduced = gm.Job(
        gm.items(pairs),
        reduce=lambda key, _values: [{"a"} if key == "a" else key],
        output=gm.jsonl(tmp_path / "reduced"),
        skip_bad=1,
    )
    assert list(reduced.run(workers=1)) == ["b"]


def test_of_several_records_of_one_some_may_be_written(tmp_path: Path) -> None:
    """So they are not left out, and the error says which key it was."""
    job = gm.Job(
        gm.items([("a", 1)]),
        reduce=lambda _key, _values: [1, {2}],
        output=gm.jsonl(tmp_path / "out"),
        skip_bad=1,
    )
    with pytest.raises(ValueError, match="key 'a'"):
        job.run(workers=1)


@pytest.mark.parametrize("allowed", [1, 63, 64, 1000])
def test_the_first_record_beyond_the_limit_ends_a_task_alone(tmp_path: Path, allowed: int) -> None:
    skipping = Skipping(allowed, str(tmp_path), 0, _files(tmp_path))
    for _ in range(allowed):
        skipping.leave_out(None, b"x", ValueError("bad"))
    skipping.end()
    with pytest.raises(TooManyBad, match=f"skip_bad allows {allowed}"):
        skipping.leave_out(None, b"x", ValueError("bad"))


@pytest.mark.parametrize("turns", [1, 7, 300])
def test_tasks_together_leave_out_no_more_than_the_job_allows(tmp_path: Path, turns: int) -> None:
    """However tasks take turns: if there are too many, one of them says so, at its end at last."""
    for bad, fails in ((1000, False), (1001, True)):
        folder = tmp_path / str(bad)
        tasks = [Skipping(1000, str(folder), number, _files(tmp_path)) for number in range(3)]
        done = [0, 0, 0]
        quota = [300, 300, bad - 600]
        try:
            while done != quota:
                for number, task in enumerate(tasks):
                    for _ in range(min(turns, quota[number] - done[number])):
                        task.leave_out(None, b"x", ValueError("bad"))
                        done[number] += 1
            for task in tasks:
                task.end()
            failed = False
        except TooManyBad:
            failed = True
        assert failed == fails


def test_a_bad_record_does_not_cost_a_look_at_all_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    listed = Path.iterdir

    def iterdir(self: Path) -> object:
        nonlocal looks
        looks += self.name == "skipped"
        return listed(self)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    skipping = Skipping(100_000, str(tmp_path), 0, _files(tmp_path))
    for _ in range(10_000):
        skipping.leave_out(None, b"x", ValueError("bad"))
    assert 0 < looks < 20
