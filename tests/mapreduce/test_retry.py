"""Every failure of user code ends with a command that tries it again, and that works as printed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

GRISTMILL = Path(sys.executable).with_name("gristmill")

BEGIN = """
import os, signal, sys, time
import gristmill as gm

def fail(what="no such luck"):
    print("printed before")
    print("warned before", file=sys.stderr)
    {how}

def pairs(record):
    if {bad}:
        fail()
    return [(str(record)[:1], 1)]

TEXT = gm.text("in put's.txt")
"""

RAISE = "raise LookupError(what)"
NEVER = "False"
OF_TEXT = "'line 7' in str(record)"

JOBS: dict[str, tuple[str, str, str]] = {
    # name: what makes a record bad, the job, what the retry says
    "text": (OF_TEXT, "gm.Job(TEXT, map=pairs, reduce=gm.sum(), output=gm.tsv('out')).run()",
             "'line 7'"),
    "no reduce": (OF_TEXT, "gm.Job(TEXT, map=pairs, output=gm.kv('out')).run()", "'line 7'"),
    "several splits": (
        OF_TEXT, "gm.Job(TEXT, map=pairs, output=gm.kv('out'), split_max=20).run()", "'line 7'"),
    "two lines": (OF_TEXT, "gm.Job(gm.text(TEXT.paths, lines=2), map=pairs,"
                  " output=gm.kv('out')).run()", "['line 6', 'line 7']"),
    "two files": (OF_TEXT, "gm.Job(gm.text(['a.txt', *TEXT.paths]), map=pairs,"
                  " output=gm.kv('out')).run()", "'line 7'"),
    "compressed": (OF_TEXT, "gm.Job(gm.text('in.txt.gz'), map=pairs, output=gm.kv('out')).run()",
                   "'line 7'"),
    "jsonl": ("record['n'] == 7", "gm.Job(gm.jsonl('in.jsonl'), map=pairs,"
              " output=gm.kv('out')).run()", "{'n': 7}"),
    "csv": ("record['n'] == '7'", "gm.Job(gm.csv('in.csv'), map=pairs,"
            " output=gm.kv('out')).run()", "{'n': '7', 't': 'a\\nb7'}"),
    "items": ("record == 300", "gm.Job(gm.items(range(600)), map=pairs,"
              " output=gm.kv('out')).run()", "300"),
    "parquet": ("record['n'] == 7", "gm.Job(gm.parquet('in.parquet'), map=pairs,"
                " output=gm.kv('out')).run()", "{'n': 7}"),
    "several small tables": (
        "record['n'] == 7", "gm.Job(gm.parquet(['small.parquet', 'in.parquet']), map=pairs,"
        " output=gm.kv('out')).run()", "{'n': 7}"),
    "batches": ("7 in record['n'].to_pylist()", "gm.Job(gm.parquet('in.parquet'),"
                " map_batches=pairs, output=gm.kv('out')).run()", "a batch of 10 rows"),
    "a chain": ("record == ('l', '12')", "gm.Job(TEXT, map=lambda line: [(line[:1], 1)],"
                " reduce=lambda key, values: [(key, str(sum(values)))])"
                ".then(map=pairs, output=gm.kv('out')).run()", "('l', '12')"),
    "run_all": (OF_TEXT, "gm.run_all([gm.Job(TEXT, map=pairs, output=gm.kv('out'))])", "'line 7'"),
    "a reduce": (NEVER, "gm.Job(gm.items(range(9000)), map=lambda n: [(n % 97, n)], parts=3,"
                 " reduce=lambda key, values: fail(sum(values)) if key == 50 else [(key, 1)],"
                 " output=gm.kv('out')).run()", "key 50"),
    "a reduce in order": (
        NEVER, "gm.Job(gm.items(range(900)), map=lambda n: [((n % 9, n), n)],"
        " group_by=lambda key: key[0], sort_by=lambda key, n: -n,"
        " reduce=lambda key, values: fail() if key == 5 and next(values) == 5 else [(key, 1)],"
        " output=gm.kv('out')).run()", "value 5"),
    "a reduce of ranges": (
        NEVER, "gm.Job(gm.items(range(900)), map=lambda n: [((n % 9) + (n % 2) / 2, n)],"
        " partition_by=gm.ranges([3, 6.5]), parts=3, reduce=lambda key, values:"
        " fail(sum(values)) if key == 4.5 else [(key, 1)], output=gm.kv('out')).run()",
        "key 4.5"),
    "a reduce of batches": (
        NEVER, "gm.Job(gm.items(range(300_000)), map=lambda n: [(n % 150_000, n)],"
        " reduce_batches=lambda batches: [fail() for batch in batches if"
        " 140_001 in batch['key'].to_pylist()], output=gm.kv('out')).run()", "a batch of "),
    "the last value of a key": (
        NEVER, "gm.Job(gm.items(range(50_000)), map=lambda n: [('k', n)],"
        " reduce=lambda key, values: [fail() for n in values if n == 49_999],"
        " output=gm.kv('out')).run()", "key 'k'"),
}  # fmt: skip

HOWS = {
    "raises": (RAISE, "LookupError: ", 1),
    "exits": ("sys.exit('left')", "SystemExit: left", 1),
    "dies": ("os.kill(os.getpid(), signal.SIGSEGV)", "Segmentation fault", -11),
}


ODD: dict[str, tuple[str, str, str]] = {
    "combine": (NEVER, "gm.Job(gm.items(range(100)), map=lambda n: [(n % 7, n)],"
                " combine=lambda key, values: fail() if key == 3 and sum(values) > 90 else [1],"
                " reduce=gm.Job and (lambda key, values: [key]), output=gm.kv('out')).run()",
                "LookupError"),
    "setup": (NEVER, "gm.Job(TEXT, map=pairs, setup=lambda context: fail(),"
              " output=gm.kv('out')).run()", "LookupError"),
    "setup of a reduce": (
        NEVER, "gm.Job(TEXT, map=pairs, reduce=gm.sum(), output=gm.kv('out'),"
        " setup=lambda context: fail() if context.kind == 'reduce' else None).run()",
        "LookupError"),
    "teardown": (NEVER, "gm.Job(TEXT, map=pairs, teardown=lambda context: fail(),"
                 " output=gm.kv('out')).run()", "LookupError"),
    "partition": (NEVER, "gm.Job(TEXT, map=pairs, reduce=gm.sum(), parts=2,"
                  " partition_by=lambda key, parts: fail(), output=gm.kv('out')).run()",
                  "no such luck"),
    "no text": (NEVER, "gm.Job(gm.text('latin.txt'), map=pairs, output=gm.kv('out')).run()",
                "not UTF-8"),
    "output": (NEVER, "gm.Job(TEXT, map=lambda line: [{1, 2}], output=gm.jsonl('out')).run()",
               "set"),
    "one bad too many": (
        OF_TEXT, "gm.Job(gm.text(['latin.txt', *TEXT.paths]), map=pairs, skip_bad=1,"
        " output=gm.kv('out')).run()", "'line 7'"),
    "an environment": (
        OF_TEXT, "os.environ['LUCK'] = 'bad'; os.chdir('/'); sys.path.append('/nowhere')\n"
        "gm.Job(gm.text(HERE + \"/in put's.txt\"), map=lambda line:"
        " fail(os.environ['LUCK'] + os.getcwd() + str('/nowhere' in sys.path))"
        " if line == 'line 7' else [],"
        " output=gm.kv(HERE + '/out')).run()", "bad/True"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an odd name, and a history of its own."""
    import gzip

    import pyarrow
    import pyarrow.parquet as parquet

    folder = tmp_path / "it's a folder"
    folder.mkdir()
    lines = "".join(f"line {n}\n" for n in range(12))
    (folder / "in put's.txt").write_text(lines)
    (folder / "in.txt.gz").write_bytes(gzip.compress(lines.encode()))
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "latin.txt").write_bytes(b"fine\n\xe9\n")
    (folder / "in.jsonl").write_text("".join(f'{{"n": {n}}}\n' for n in range(12)))
    (folder / "in.csv").write_text("n,t\n" + "".join(f'{n},"a\nb{n}"\n' for n in range(12)))
    table = pyarrow.table({"n": list(range(12))})
    parquet.write_table(table, folder / "in.parquet", row_group_size=10)
    parquet.write_table(table.slice(0, 3), folder / "small.parquet")
    monkeypatch.setenv("GRISTMILL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return folder


def script(how: str, bad: str, job: str, folder: Path) -> str:
    return BEGIN.format(how=how, bad=bad) + f"HERE = {str(folder)!r}\n" + job + "\n"


def failing(command: list[str | Path], folder: Path, text: str = "") -> tuple[str, str]:
    """What a command says that fails, and what it says to try."""
    done = subprocess.run(
        command, cwd=folder, input=text, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "defect of Gristmill" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("To try it again alone: "), done.stderr
    return done.stderr, last.removeprefix("To try it again alone: ")


def retried(command: str, tmp_path: Path, status: int) -> str:
    """What the command says, from another folder and a shell of its own."""
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    said = done.stdout + done.stderr
    expected = (status, 128 - status) if status < 0 else (status,)
    assert done.returncode in expected, said
    assert "defect of Gristmill" not in said
    return said


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", JOBS)
def test_the_command_tries_what_failed(folder: Path, name: str, how: str) -> None:
    bad, job, says = JOBS[name]
    code, error, status = HOWS[how]
    text = script(code, bad, job, folder)
    _, command = failing([sys.executable, "-"], folder, text)
    said = retried(command, folder.parent, status)
    assert says in said, said
    assert error in said
    assert said.count("printed before") == 1


@pytest.mark.parametrize("name", ODD)
def test_whatever_fails_is_tried(folder: Path, name: str) -> None:
    bad, job, says = ODD[name]
    text = script(RAISE, bad, job, folder)
    _, command = failing([sys.executable, "-"], folder, text)
    assert says in retried(command, folder.parent, 1)


def test_a_hang_says_where_it_stands_again(folder: Path) -> None:
    job = "gm.Job(TEXT, map=pairs, output=gm.kv('out')).run(timeout_s=1, attempts=1)"
    text = script("time.sleep(600)", OF_TEXT, job, folder)
    (folder / "analysis.py").write_text(text)
    _, command = failing([sys.executable, "analysis.py"], folder)
    said = retried(command, folder.parent, 1)
    assert "'line 7'" in said
    assert "in fail" in said


def test_too_much_memory_says_where_again(folder: Path) -> None:
    job = "gm.Job(TEXT, map=pairs, output=gm.kv('out')).run(worker_memory='300M', attempts=1)"
    grow = "held = []\n    while True: held.append(bytearray(10_000_000))"
    _, command = failing([sys.executable, "-"], folder, script(grow, OF_TEXT, job, folder))
    said = retried(command, folder.parent, 1)
    assert "'line 7'" in said
    assert "MemoryError" in said
    assert "in fail" in said


def test_the_memory_of_the_job_does_not_matter(folder: Path) -> None:
    job = (
        "gm.Job(TEXT, map=pairs, reduce=lambda key, values: [key], output=gm.kv('out'))"
        ".run(memory='8G', workers=1, worker_memory='300M', attempts=1)"
    )
    grow = "held = []\n    while True: held.append(bytearray(10_000_000))"
    _, command = failing([sys.executable, "-"], folder, script(grow, OF_TEXT, job, folder))
    said = retried(command, folder.parent, 1)
    assert "'line 7'" in said
    assert "MemoryError" in said
    assert "refused" not in said


@pytest.mark.parametrize(
    ("end", "status"), [("os._exit(3)", 3), ("os.abort()", -6), (HOWS["raises"][0], 1)]
)
def test_no_folder_is_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch, end: str, status: int
) -> None:
    job = "gm.Job(TEXT, map=pairs, output=gm.kv('out')).run(attempts=1)"
    _, command = failing([sys.executable, "-"], folder, script(end, OF_TEXT, job, folder))
    place = folder.parent / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    assert "'line 7'" in retried(command, folder.parent, status)
    deadline = time.monotonic() + 60
    while list(place.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.01)  # another process removes it
    assert list(place.iterdir()) == []


JOB = """
import gristmill as gm

def made(input="a.txt", n="0"):
    def divided(line):
        return [(line, 1 // int(n))]

    return gm.Job(gm.text(input), map=divided, reduce=gm.sum(), output=gm.kv("out"))
"""


def test_options_of_the_command_line_are_those_of_the_job(folder: Path) -> None:
    (folder / "job's.py").write_text(JOB)
    name = "in put's.txt"
    given = ["--job", "made", "--set", "n=0", "--input", name, "--output", "o"]
    _, command = failing([GRISTMILL, "run", "job's.py", *given], folder)
    said = retried(command, folder.parent, 1)
    assert "'line 0'" in said
    assert "ZeroDivisionError" in said


def test_the_program_is_named_so_that_the_shell_finds_it(folder: Path) -> None:
    text = script(RAISE, OF_TEXT, JOBS["text"][1], folder)
    path = f"{GRISTMILL.parent}{os.pathsep}{os.environ['PATH']}"
    command = ["/usr/bin/env", f"PATH={path}", sys.executable, "-"]
    assert failing(command, folder, text)[1].startswith("gristmill retry job_")


def test_the_last_is_the_latest_that_failed_in_user_code(folder: Path) -> None:
    failing([sys.executable, "-"], folder, script(RAISE, OF_TEXT, JOBS["text"][1], folder))
    good = "gm.Job(TEXT, map=pairs, output=gm.kv('well')).run(history=True)"
    subprocess.run(
        [sys.executable, "-"], cwd=folder, input=script(RAISE, NEVER, good, folder), text=True,
        check=True,
    )  # fmt: skip
    assert "'line 7'" in retried(f"{GRISTMILL} retry last", folder.parent, 1)


def test_a_record_that_does_not_fail_alone(folder: Path) -> None:
    job = (
        "seen = []\n"
        "gm.Job(TEXT, map=lambda line: [(line, seen.append(line))] if len(seen) < 5 else fail(),"
        " output=gm.kv('out')).run()"
    )
    _, command = failing([sys.executable, "-"], folder, script(RAISE, NEVER, job, folder))
    assert "did not fail this time" in retried(command, folder.parent, 0)
    assert "LookupError" in retried(f"{command} --whole-task", folder.parent, 1)


def test_nothing_is_kept_of_a_job_that_succeeds(folder: Path) -> None:
    once = "open(HERE + '/once', 'x').close(); raise LookupError(what)"
    text = script(
        f"if not os.path.exists(HERE + '/once'):\n        {once}",
        OF_TEXT, "gm.Job(TEXT, map=pairs, output=gm.kv('out')).run(history=True)", folder,
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-"], cwd=folder, input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (job,) = (folder.parent / "home" / "jobs").iterdir()
    assert not (job / "failed").exists()
    said = retried(f"{GRISTMILL} retry {job.name}", folder.parent, 1)
    assert "did not fail in user code" in said


def test_what_somebody_else_could_have_written_is_not_run(folder: Path) -> None:
    text = script(RAISE, OF_TEXT, JOBS["text"][1], folder)
    _, command = failing([sys.executable, "-"], folder, text)
    (task,) = (folder.parent / "home" / "jobs").glob("*/failed/*/task")
    assert task.stat().st_mode & 0o777 == 0o600
    task.chmod(0o644)
    assert "holds code" in retried(command, folder.parent, 1)


def test_stdout_and_stderr_are_told_apart(folder: Path) -> None:
    text = script(RAISE, OF_TEXT, JOBS["text"][1], folder)
    said, _ = failing([sys.executable, "-"], folder, text)
    assert "The last lines of its stdout:\nprinted before\n" in said
    assert "The last lines of its stderr:\nwarned before\n" in said
