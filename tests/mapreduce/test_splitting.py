"""How an input is shared among workers: by records where these are what costs; idle workers."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gristmill as gm
from gristmill.mapreduce.formats.format import Input
from gristmill.mapreduce.formats.plan import NO_MAX


def slow(item: int) -> Iterator[tuple[int, int]]:
    time.sleep(0.1)
    yield item % 3, item


def itself(record: Any) -> Iterator[Any]:
    yield record


def by_path(record: tuple[str, str]) -> Iterator[tuple[str, str]]:
    yield Path(record[0]).name, record[1]


def records_of(source: Input, split_min: int, split_max: int) -> list[list[Any]]:
    return [list(source.open(split.what)) for split in source.plan(split_min, split_max).splits]


def test_forty_slow_items_are_shared_by_four_workers(tmp_path: Path) -> None:
    began = time.monotonic()
    job = gm.Job(gm.items(range(40)), map=slow, reduce=gm.sum(), output=gm.kv(tmp_path / "out"))
    result = job.run(workers=4, no_sync=True)
    assert time.monotonic() - began < 4  # what they take one after another, at least
    assert dict(result.read()) == {0: 273, 1: 247, 2: 260}
    assert result.counters["LAUNCHED_MAPS"] == 40


@pytest.mark.parametrize("count", [0, 1, 2, 127, 128, 129, 300, 5000])
def test_items_are_split_by_their_number(count: int) -> None:
    found = records_of(gm.items(range(count)), 0, NO_MAX)
    assert [item for split in found for item in split] == list(range(count))
    assert len(found) <= 128
    assert count == 0 or len(found) >= min(count, 64)


@given(
    st.lists(st.binary(max_size=400) | st.integers(), max_size=700),
    st.integers(0, 2000),
    st.integers(1, 3000),
)
def test_items_keep_to_the_bytes_of_a_split(data: list[Any], least: int, most: int) -> None:
    splits = gm.items(data).plan(least, most).splits
    places = [gm.items([]).open(split.what) for split in splits]
    assert [item for reader in places for item in reader] == data
    firsts = [split.what["first"] for split in splits]
    lengths = [reader.records_read() for reader in places]
    assert firsts == [sum(lengths[:at]) for at in range(len(lengths))]
    for split, length in zip(splits, lengths, strict=True):
        assert length == 1 or split.bytes <= max(most, 2 * least) + 500
    assert all(split.bytes >= least for split in splits[:-1])


def test_one_item_a_split_on_request() -> None:
    assert len(gm.items(range(1000)).plan(0, 1).splits) == 1000
    assert len(gm.items(range(1000)).plan(1 << 20, NO_MAX).splits) == 1


def test_whole_files_are_split_by_their_number(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(300):
        (folder / f"{number:03}.txt").write_text(f"{number}")
    source = gm.text(folder, whole=True)
    found = records_of(source, 0, NO_MAX)
    assert [len(split) for split in found] == [3] * 100
    assert [content for split in found for _, content in split] == [str(n) for n in range(300)]
    assert len(source.plan(1 << 20, NO_MAX).splits) == 1
    assert len(gm.text(folder).plan(0, NO_MAX).splits) == 1  # lines are cheap
    out = gm.kv(tmp_path / "out")
    result = gm.Job(source, map=by_path, reduce=gm.first(), output=out).run(no_sync=True)
    assert sorted(result.read()) == [(f"{n:03}.txt", str(n)) for n in range(300)]


def test_the_output_does_not_depend_on_workers(tmp_path: Path) -> None:
    source = gm.items(range(1000))
    made: list[dict[str, bytes]] = []
    for workers in (1, 3):
        out = tmp_path / f"out{workers}"
        gm.Job(source, map=itself, output=gm.jsonl(out)).run(workers=workers, no_sync=True)
        made.append({file.name: file.read_bytes() for file in out.glob("part-*")})
    assert made[0] == made[1]
    assert b"".join(made[0][name] for name in sorted(made[0])).split() == [
        b"%d" % n for n in range(1000)
    ]


def test_idle_workers_are_told_at_the_end(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").write_text("a\nb\n")

    def slow_line(line: str) -> Iterator[tuple[str, int]]:
        time.sleep(1.1)
        yield line, 1

    for progress, told in ((None, 1), (False, 0)):
        job = gm.Job(
            gm.text(tmp_path / "in"), map=slow_line, reduce=gm.sum(), output=gm.kv(tmp_path / "out")
        )
        result = job.run(workers=2, no_sync=True, overwrite=True, progress=progress)
        (warning,) = result.report.warnings
        (stage,) = (phase for phase in result.report.phases if phase.name == "map")
        assert stage.wall_s >= 2.2
        assert warning.startswith(f"1 of 2 workers were idle for the {stage.wall_s:.1f} s of")
        assert warning.endswith("split_max=1.")
        assert capfd.readouterr().err.count(warning) == told
    job = gm.Job(
        gm.text(tmp_path / "in"),
        map=slow_line,
        reduce=gm.sum(),
        output=gm.kv(tmp_path / "out"),
        split_max=1,
    )
    assert not job.run(workers=2, no_sync=True, overwrite=True).report.warnings
