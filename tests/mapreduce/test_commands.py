"""`gristmill run` and `gristmill check`, as a user runs them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.harness import GRISTMILL
from tests.mapreduce.harness import gristmill

JOB = """
import gristmill as gm
from helper import split


def words(line):
    for word in split(line):
        yield word, 1


job = gm.Job(gm.text("in.txt"), map=words, reduce=gm.sum(), output=gm.tsv("counts"))
"""

FUNCTION = """
import gristmill as gm


def job(n, input="in.txt", output="out"):
    def lengths(line):
        for word in line.split():
            if len(word) >= int(n):
                yield word, len(word)
    return gm.Job(gm.text(input), map=lengths, reduce=gm.max(), output=gm.tsv(output))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in.txt").write_text("to be or\nnot to be\n0\n")
    (tmp_path / "helper.py").write_text("def split(line):\n    return line.split()\n")
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "function.py").write_text(FUNCTION)
    return tmp_path


def counts(path: Path) -> dict[str, int]:
    lines = (path / "part-r-00000.tsv").read_text().splitlines()
    return {word: int(n) for word, n in (line.split("\t") for line in lines)}


def test_run(folder: Path) -> None:
    done = gristmill("run", "job.py", cwd=folder)
    assert done.stdout.startswith("5 records, 25 B, in 1 file of counts\n")
    assert done.stderr == ""
    assert counts(folder / "counts") == {"be": 2, "not": 1, "or": 1, "to": 2, "0": 1}


def test_other_files(folder: Path) -> None:
    (folder / "b.txt").write_text("b\n")
    arguments = ("run", "job.py", "--input", "b.txt", "--output", "other", "--json")
    report = json.loads(gristmill(*arguments, "--workers", "1", cwd=folder).stdout)
    assert (report["records"], report["workers"]) == (1, 1)
    assert counts(folder / "other") == {"b": 1}


def test_settings(folder: Path) -> None:
    gristmill("run", "function.py", "--set", "n=3", "--output", "long", cwd=folder)
    assert counts(folder / "long") == {"not": 3}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["none.py"], "none.py: it does not exist"),
        (["job.py", "--job", "other"], "it does not define other. What to do: give --job job."),
        (["job.py", "--set", "n=3"], "defines a job, not a function"),
        (["function.py", "--set", "m=3", "--set", "n=1"], "no such settings"),
        (["function.py"], "the function job needs a value for n. What to do: give --set n=VALUE."),
        (["job.py", "--set", "n"], "'n' is not NAME=VALUE"),
        (["job.py", "--only", "here"], "'here' is not FILE:OFFSET"),
        (["job.py", "--input", "none"], "none does not exist"),
        (["job.py", "--memory", "lots"], "memory"),
    ],
)
def test_wrong_command_lines(folder: Path, arguments: list[str], says: str) -> None:
    done = gristmill("run", *arguments, cwd=folder, status=2)
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_a_file_that_cannot_be_loaded(folder: Path) -> None:
    (folder / "bad.py").write_text("import gristmill\n\n1 / 0\n")
    done = gristmill("run", "bad.py", cwd=folder, status=2)
    assert "bad.py (line 3 of" in done.stderr
    (folder / "worse.py").write_text("def (\n")
    assert "SyntaxError" in gristmill("run", "worse.py", cwd=folder, status=2).stderr


def test_a_failure_and_its_record_again(folder: Path) -> None:
    (folder / "helper.py").write_text("def split(line):\n    return [1 // (line != '0'), line]\n")
    done = gristmill("run", "job.py", cwd=folder, status=1)
    first, *rest = done.stderr.splitlines()
    assert first.startswith("gristmill run: cannot map a record: map words: ZeroDivisionError")
    assert "offset 19" in first
    assert rest[0] == "In your code:"
    *_, last = rest
    assert last.startswith("To try it again alone: ")
    command = ["run", "job.py", "--only", "in.txt:19"]
    again = gristmill(*command, cwd=folder, status=1)
    assert again.stdout == "record 2 of its split: '0'\n"
    assert "in split" in again.stderr
    (folder / "helper.py").write_text("def split(line):\n    return [line]\n")
    assert gristmill(*command, cwd=folder).stdout.endswith("\n  ('0', 1)\n")
    none = gristmill(*command[:-1], "in.txt:3", cwd=folder, status=2)
    assert "none of gm.text('in.txt') begins at offset 3" in none.stderr


def test_explain(folder: Path) -> None:
    done = gristmill("run", "job.py", "--explain", cwd=folder)
    assert "words, gm.sum()" in done.stdout
    assert not (folder / "counts").exists()


def test_bad_records_are_told(folder: Path) -> None:
    text = JOB.replace("reduce=gm.sum()", "reduce=gm.sum(), skip_bad=5")
    (folder / "job.py").write_text(text.replace("yield word, 1", "yield word, 1 // len(word[1:])"))
    done = gristmill("run", "job.py", cwd=folder)
    assert "1 bad record left out, kept in counts/_bad-*" in done.stdout


HOARD = """
import subprocess
import sys
import time
import gristmill as gm

HOLD = "import time; held = b'x' * {n}_000_000; time.sleep(2)"


def hold(line):
    held = b"x" * (int(line) * 1_000_000)
    subprocess.run([sys.executable, "-c", HOLD.format(n=line)], check=True)
    yield "n", len(held)


def job(n):
    return gm.Job(gm.items([n]), map=hold, reduce=gm.sum(), output=gm.kv("out" + n))
"""


def test_memory_of_workers_counts(folder: Path) -> None:
    """And that of what they begin; in the report, and in the samples of the history."""
    (folder / "hoard.py").write_text(HOARD)
    command = ("run", "hoard.py", "--workers", "1", "--json", "--history")
    peaks: list[int] = []
    for n in (0, 100):
        report = json.loads(gristmill(*command, "--set", f"n={n}", cwd=folder).stdout)
        peaks.append(report["peak_anon_bytes"])
        events = Path(report["history"], "events.jsonl").read_text().splitlines()
        samples = [json.loads(event) for event in events if '"event":"sample"' in event]
        assert max(sample["anon_bytes"] for sample in samples) > n * 1_000_000
    assert 190_000_000 < peaks[1] - peaks[0] < 300_000_000
    text = gristmill(*command[:4], "--set", "n=1", cwd=folder).stdout
    assert "with workers, budget" in text


# --- check ---

CHECKED = """
import gristmill as gm
import itertools, random, time

seen = []


def words(line):
    {map}
    for word in line.split():
        yield word, float(len(word)) / 10


def reduce(key, values):
    yield key, {reduce}


{more}
job = gm.Job(gm.text("in.txt"), map=words, reduce=reduce, output=gm.tsv("out"), **options)
"""


@pytest.mark.parametrize(
    ("name", "map_line", "reduce", "more", "says"),
    [
        ("good", "pass", "max(values)", "options = {}", None),
        ("good combiner", "pass", "max(values)",
         "options = dict(combine=lambda key, values: [max(values)])", None),
        ("random", "line += str(random.random())", "max(values)", "options = {}",
         "the same circumstances"),
        ("order", "pass", "list(values)[:3] + [0.1 + next(itertools.count())]",
         "options = dict(sort_by=lambda key, value: value)", None),
        ("state", "seen.append(line); line += str(len(seen))", "max(values)", "options = {}",
         "attempts killed and begun again"),
        ("combine", "pass", "sum(values)",
         "options = dict(combine=lambda key, values: [1 + sum(values)])", "splits of"),
    ],
)  # fmt: skip
def test_check(
    folder: Path, name: str, map_line: str, reduce: str, more: str, says: str | None
) -> None:
    lines = "".join(f"{'ab' * (n % 7)} {n % 3} c\n" for n in range(200))
    (folder / "in.txt").write_text(lines)
    (folder / "job.py").write_text(CHECKED.format(map=map_line, reduce=reduce, more=more))
    done = gristmill("check", "job.py", cwd=folder, status=0 if says is None else 1)
    if says is None:
        assert done.stdout.startswith("deterministic: "), name
        assert "  workers\n" in done.stdout
    else:
        assert f"the output differs with {says}" in done.stdout, done.stdout
        assert "not deterministic" in done.stdout


def test_check_notes_what_depends_on_the_order_of_values(folder: Path) -> None:
    lines = "".join(f"{'a' * (n % 7 + 1)} x\n" for n in range(60))
    (folder / "in.txt").write_text(lines)
    text = CHECKED.format(map="pass", reduce="list(values)", more="options = {}")
    (folder / "job.py").write_text(text.replace("yield word, float", "yield 'k', float"))
    done = gristmill("check", "job.py", "--no-workers", "--json", cwd=folder)
    found = json.loads(done.stdout)
    assert (found["deterministic"], found["differences"]) == (True, []), "it is promised"
    (note,) = found["notes"]
    assert note.startswith("reduce reduce depends on the order of a key's values.")


def test_a_check_leaves_no_bad_records_out(folder: Path) -> None:
    done = gristmill("check", "job.py", "--skip-bad", "3", cwd=folder, status=2)
    says = "gristmill check: a check leaves no bad records out (--skip-bad). What to do: name an"
    assert done.stderr.startswith(says)


def test_what_runs_where_is_told_of_functions(folder: Path) -> None:
    told = " ".join(gristmill("run", "--help", cwd=folder).stdout.split())
    assert "Your functions run in worker processes either way." in told
    assert "Your functions" not in gristmill("sort", "--help", cwd=folder).stdout


def test_a_job_that_fails_cannot_be_checked(folder: Path) -> None:
    (folder / "helper.py").write_text("def split(line):\n    return [][0]\n")
    done = gristmill("check", "job.py", cwd=folder, status=1)
    assert "cannot check the job: IndexError" in done.stderr


ENDINGS = {
    "os._exit(0)": "ended the process with exit code 0 (map: record 1 of split 0)",
    "os._exit(3)": "ended the process with exit code 3 (map: record 1 of split 0)",
    "ctypes.string_at(0)": "ended the process by signal 11 (SIGSEGV) (map: record 1 of split 0)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_code_that_ends_the_process_fails_a_check(folder: Path, ending: str) -> None:
    (folder / "helper.py").write_text(
        "import ctypes, os\n"
        f"def split(line):\n    line[:1] == 'n' and {ending}\n    return [line]\n"
    )
    done = gristmill("check", "job.py", "--json", cwd=folder, status=1)
    message = json.loads(done.stdout)["error"]["message"]
    assert ENDINGS[ending] in message
    assert message in done.stderr


def test_a_process_that_a_reduce_ends_fails_a_check(folder: Path) -> None:
    job = JOB.replace("gm.sum()", "lambda key, values: os._exit(0) if key == 'be' else [key]")
    (folder / "job.py").write_text(f"import os\n{job}")
    done = gristmill("check", "job.py", cwd=folder, status=1)
    assert "(reduce: key 1 of partition 0)" in done.stderr


@pytest.mark.parametrize("command", [["run"], ["run", "--explain"], ["check"]])
def test_what_user_code_prints_is_not_in_the_json(folder: Path, command: list[str]) -> None:
    (folder / "helper.py").write_text(
        "import os\ndef split(line):\n    os.system('echo there')\n    return [line]\n"
    )
    (folder / "job.py").write_text(f"print('hi')\n{JOB}")
    done = gristmill(*command, "job.py", "--json", cwd=folder)
    assert json.loads(done.stdout)
    assert "hi\n" in done.stderr
    without = [
        sys.executable,
        "-c",
        "import os, sys; os.close(2); os.execv(sys.argv[1], sys.argv[1:])",
    ]
    program = [GRISTMILL, *command, "job.py", "--json", "--output", "other"]
    alone = subprocess.run([*without, *program], cwd=folder, stdout=subprocess.PIPE, check=False)
    assert json.loads(alone.stdout), "without a stderr too"


def test_a_check_names_the_line_and_the_record_of_a_wrong_value(folder: Path) -> None:
    (folder / "job.py").write_text(JOB.replace("map=words", "map=lambda line: len(line)"))
    done = gristmill("check", "job.py", cwd=folder, status=1)
    says = "cannot check the job: map <lambda> returned 8, an int: pairs of a key and a value are"
    assert says in done.stderr
    assert "job.py, line 11) (map: record 0 of split 0). What to do: yield each" in done.stderr


def test_a_check_of_no_records_blames_no_function(folder: Path) -> None:
    (folder / "in.txt").write_text("")
    done = gristmill("check", "job.py", cwd=folder)
    assert "note: the output is empty, as the input has no records\n" in done.stdout
    assert "yield" not in done.stdout


BUSY = """
import time

import gristmill as gm


def busy(item):
    begun = time.process_time()
    while time.process_time() < begun + 1.5:
        pass
    yield "done", 1


job = gm.Job(gm.items(["a"]), map=busy, reduce=gm.sum(), output=gm.kv("out"))
job.run(workers=1)
"""


def test_shells_see_what_workers_took(folder: Path) -> None:
    (folder / "busy.py").write_text(BUSY)
    before = os.times()
    subprocess.run([sys.executable, "busy.py"], cwd=folder, check=True)
    after = os.times()
    user_s = after.children_user - before.children_user
    assert user_s + after.children_system - before.children_system > 1.5
