"""Skip mode: records and groups that a script fails at are found, left out, counted and kept.

Hadoop's local runner tries a task once and its MapReduce on YARN has lost skip mode, so there is
nothing to compare with; the model is naive: a script that fails at bad records alone has to give
what it gives without them.
"""

import json
import random
import sys
from pathlib import Path

import pytest

from .conftest import Run
from .test_hadoop import sequence

MAPPER = """
import os, sys
assert os.environ["mapreduce_job_skiprecords"] == os.environ["mapred_skip_on"]
with open(os.environ["LOG"], "a") as log:
    log.write(os.environ["mapreduce_job_skiprecords"] + "\\n")
for line in sys.stdin:
    if "bad" in line:
        sys.exit("cannot take " + line)
    print(len(line) % 7, line.strip(), sep="\\t", flush=True)
    if os.environ.get("REPORT"):
        for text in ("SkippingTaskCounters,MapProcessedRecords,1", "own,lines,1"):
            print("reporter:counter:" + text, file=sys.stderr, flush=True)
print("reporter:counter:own,ends,1", file=sys.stderr)
"""

REDUCER = """
import os, sys
last = None
for line in sys.stdin:
    key = line.partition("\\t")[0]
    if key in os.environ["BAD"].split(","):
        sys.exit("cannot take " + key)
    if os.environ.get("REPORT") and last not in (None, key):
        text = "reporter:counter:SkippingTaskCounters,ReduceProcessedGroups,1"
        print(text, file=sys.stderr, flush=True)  # of the group before
    last = key
    sys.stdout.write(line)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name, text in (("map.py", MAPPER), ("reduce.py", REDUCER)):
        (tmp_path / name).write_text(f"#!{sys.executable} -ES\n{text}")
    return tmp_path


def lines(home: Path, bad: set[int], count: int = 500) -> list[str]:
    made = [f"{'bad' if number in bad else 'good'} line {number}" for number in range(count)]
    (home / "in.txt").write_text("".join(f"{line}\n" for line in made))
    return made


def words(home: Path, *more: str, reducer: str = "NONE") -> list[str]:
    words = [*more, "-files", f"{home}/map.py,{home}/reduce.py", "-cmdenv", f"LOG={home}/log"]
    words += ["-input", f"{home}/in.txt", "-output", f"{home}/out", "-mapper", "map.py"]
    return [*words, "-reducer", reducer]


def skip(most: int, *more: str, side: str = "map.skip.maxrecords") -> list[str]:
    return ["-D", f"mapreduce.{side}={most}", "-D", "mapreduce.job.maps=2", *more]


def output(home: Path) -> list[str]:
    parts = sorted((home / "out").glob("part-*"))
    return [line for part in parts for line in part.read_text().splitlines()]


def mapped(made: list[str]) -> list[str]:
    return [f"{(len(line) + 1) % 7}\t{line}" for line in made]


@pytest.mark.parametrize("report", ["", "1"])
def test_bad_records_are_left_out(home: Path, streaming: Run, report: str) -> None:
    bad = {0, 7, 8, 120, 377, 499}
    made = lines(home, bad)
    done = streaming(*words(home, *skip(1)), "-cmdenv", f"REPORT={report}", "--json")
    assert done.returncode == 0, done.stderr
    good = [line for number, line in enumerate(made) if number not in bad]
    assert sorted(output(home)) == sorted(mapped(good))
    report_ = json.loads(done.stdout)
    counters = report_["counters"]
    assert (counters["MAP_SKIPPED_RECORDS"], counters["MAP_INPUT_RECORDS"]) == (6, 494)
    # Only the runs that count have their counters counted.
    users = {"ends": 2} | ({"lines": 494} if report else {})
    assert report_["user_counters"]["own"] == users
    log = (home / "log").read_text().split()
    assert log.count("false") == 4  # two attempts of two tasks
    if report:
        assert report_["user_counters"]["SkippingTaskCounters"] == {"MapProcessedRecords": 494}


@pytest.mark.parametrize("seed", range(4))
def test_any_bad_records_are_left_out(home: Path, streaming: Run, seed: int) -> None:
    chance = random.Random(seed)
    bad = {chance.randrange(300) for _ in range(chance.randrange(8))}
    made = lines(home, bad, 300)
    most = chance.choice([1, 2, 5, 1000])
    done = streaming(*words(home, *skip(most), reducer="cat"), "--json")
    assert done.returncode == 0, done.stderr
    counters = json.loads(done.stdout)["counters"]
    found = {int(line.rsplit(" ", 1)[1]) for line in output(home)}
    out = set(range(300)) - found
    assert bad <= out
    assert counters["MAP_SKIPPED_RECORDS"] == len(out) <= most * len(bad)
    assert sorted(output(home)) == sorted(mapped([made[number] for number in found]))
    if most == 1:
        assert out == bad


@pytest.mark.parametrize("report", ["", "1"])
def test_bad_groups_are_left_out(home: Path, streaming: Run, report: str) -> None:
    made = mapped(lines(home, set()))
    given = [*skip(1, side="reduce.skip.maxgroups"), "-D", "mapreduce.job.reduces=3"]
    where = words(home, *given, "-cmdenv", "BAD=3,5", reducer="reduce.py")
    done = streaming(*where, "-cmdenv", f"REPORT={report}", "--json")
    assert done.returncode == 0, done.stderr
    kept = [line for line in made if line[0] not in "35"]
    assert sorted(output(home)) == sorted(kept)
    counters = json.loads(done.stdout)["counters"]
    assert counters["REDUCE_SKIPPED_GROUPS"] == len({line[0] for line in made} & {"3", "5"}) > 0
    assert counters["REDUCE_SKIPPED_RECORDS"] == 500 - len(kept)
    assert counters["REDUCE_INPUT_GROUPS"] == len({line[0] for line in kept})
    assert counters["REDUCE_INPUT_RECORDS"] == len(kept) == counters["REDUCE_OUTPUT_RECORDS"]
    records = [
        record
        for path in (home / "out/_logs/skip").iterdir()
        for record in sequence(path.read_bytes())[1]
    ]
    assert len(records) == 500 - len(kept)
    assert {key for key, _ in records} <= {b"\x013", b"\x015"}


def test_what_is_left_out_is_kept(home: Path, streaming: Run) -> None:
    made = lines(home, {3, 400})
    offsets = [sum(len(line) + 1 for line in made[:number]) for number in (3, 400)]
    assert streaming(*words(home, *skip(1))).returncode == 0
    kept: list[tuple[bytes, bytes]] = []
    for path in sorted((home / "out/_logs/skip").iterdir()):
        assert path.name.startswith("attempt_")
        assert path.name.endswith(("_m_000000_2", "_m_000001_2"))
        head, records = sequence(path.read_bytes())
        assert head[:2] == [b"org.apache.hadoop.io.LongWritable", b"org.apache.hadoop.io.Text"]
        assert head[2] == b"org.apache.hadoop.io.compress.DefaultCodec"
        kept += records
    expected = [
        (offset.to_bytes(8, "big"), bytes([len(made[number])]) + made[number].encode())
        for offset, number in zip(offsets, (3, 400), strict=True)
    ]
    assert sorted(kept) == expected
    # The next job does not read it; one over it replaces it.
    done = streaming(*words(home, *skip(1), "-D", "mapreduce.job.skip.outdir=none"), "--overwrite")
    assert done.returncode == 0, done.stderr
    assert not (home / "out/_logs").exists()
    assert "2 bad records, 0 bad groups left out, kept nowhere" in done.stderr
    elsewhere = home / "elsewhere/skipped"
    given = words(home, *skip(1), "-D", f"mapred.skip.out.dir=file://{elsewhere}")
    done = streaming(*given, "--overwrite")
    assert done.returncode == 0, done.stderr
    assert len(list(elsewhere.iterdir())) == 2
    assert f"kept in {elsewhere}" in done.stderr
    assert not (home / "out/_logs").exists()


def test_skip_mode_begins_after_so_many_attempts(home: Path, streaming: Run) -> None:
    lines(home, {3})
    one = ["-D", "mapreduce.job.maps=1"]
    for attempts, start, code in ((4, 3, 0), (3, 3, 1), (1, 0, 0)):
        (home / "log").unlink(missing_ok=True)
        given = skip(1, "-D", f"mapreduce.task.skip.start.attempts={start}", *one)
        given += ["-D", f"mapreduce.map.maxattempts={attempts}"]
        given += ["-D", "mapreduce.reduce.maxattempts=1"]
        done = streaming(*words(home, *given), "--overwrite")
        assert done.returncode == code, done.stderr
        assert (home / "log").read_text().split().count("false") == min(attempts, start)
        assert ("no record is left out" in done.stderr) == (code == 1)


def test_a_script_that_always_fails_still_fails(home: Path, streaming: Run) -> None:
    lines(home, set(range(500)))
    given = skip(1, "-D", "mapreduce.map.maxattempts=1", "-D", "mapreduce.reduce.maxattempts=1")
    given += ["-D", "mapreduce.task.skip.start.attempts=0", "-D", "mapreduce.job.maps=1"]
    done = streaming(*words(home, *given))
    assert done.returncode == 1
    assert "whether the script fails at all records" in done.stderr
    assert (home / "log").read_text().count("true") == 100
    assert not (home / "out").exists()


def test_runs_that_do_not_count_leave_nothing(home: Path, streaming: Run) -> None:
    lines(home, {5})
    text = MAPPER + (
        "folder = os.environ['mapreduce_task_output_dir']\n"
        "assert not os.listdir('.')[3:] or 'left' not in os.listdir('.')\n"
        "open('left', 'w').close()\n"
        "open(f'{folder}/side-{os.getpid()}', 'w').close()\n"
    )
    (home / "map.py").write_text(f"#!{sys.executable} -ES\n{text}")
    done = streaming(*words(home, *skip(1, "-D", "mapreduce.job.maps=1")))
    assert done.returncode == 0, done.stderr
    assert len(list((home / "out").glob("side-*"))) == 1


def test_only_scripts_count(home: Path, streaming: Run) -> None:
    lines(home, {5}, 20)
    given = ["-D", "mapred.skip.map.auto.incr.proc.count=true"]
    given += ["-D", "mapreduce.reduce.skip.proc-count.auto-incr=true"]
    done = streaming(*words(home, *given, *skip(1)))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("auto") == 2
    assert "SkippingTaskCounters" not in done.stderr


def test_splits_of_several_files(home: Path, streaming: Run) -> None:
    made = lines(home, {3, 490})
    (home / "more.txt").write_text("bad first\ngood last\n")
    given = words(home, *skip(1, "-D", "stream.map.input.ignoreKey=true"), reducer="cat")
    given += ["-inputformat", "CombineTextInputFormat"]
    done = streaming(*given, "-input", str(home / "more.txt"), "--json")
    assert done.returncode == 0, done.stderr
    good = [line for line in [*made, "bad first", "good last"] if not line.startswith("bad")]
    assert sorted(output(home)) == sorted(mapped(good))
    assert json.loads(done.stdout)["counters"]["MAP_SKIPPED_RECORDS"] == 3
