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
