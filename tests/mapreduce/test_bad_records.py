"""Bad records: how many the job allows, what of them counts, and what they cost."""

from pathlib import Path

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
